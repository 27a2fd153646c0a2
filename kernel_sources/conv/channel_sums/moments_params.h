// The parameters of the step that joins the moments of blocks. Shared by host code and kernels.
#pragma once

// Part i has every `parts`-th tile of pixels, from tile i on: `tiles` of them, one more if i is
// below `more`. The last tile, which part `last` has, reaches `beyond` pixels over the end.
struct MomentsFinishParams {
  const void* partials;  // [part][row] of PartialMoments
  void* moments;         // [n, mean, M2][channel], as kiln/normalization.h has them
  long long pixels;      // elements of a channel
  unsigned channels;
  unsigned rows;  // at least as many as channels
  unsigned parts, tiles, more, last, tile_pixels, beyond;
};

static_assert(sizeof(MomentsFinishParams) == 56, "host and device must agree");
