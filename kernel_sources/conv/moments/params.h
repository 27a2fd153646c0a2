// The parameters of the step that joins the moments of blocks. Shared by host code and kernels.
#pragma once

// Part i has every `parts`-th tile of pixels, from tile i on.
struct MomentsFinishParams {
  const void* partials;  // [part][row] of PartialMoments
  void* moments;         // [n, mean, M2][channel], as kiln/normalization.h has them
  long long pixels;      // elements of a channel
  unsigned channels;
  unsigned rows;  // at least as many as channels
  unsigned parts, tiles, tile_pixels;
};

static_assert(sizeof(MomentsFinishParams) == 48, "host and device must agree");
