// The parameters of the step that joins the sums of blocks. Shared by host code and kernels.
#pragma once

struct GradientFinishParams {
  const void* partials;   // [part][row] of PartialSums
  const void* deviation;  // the normalization's inverse deviation
  void *dscale, *dbias;
  unsigned channels;
  unsigned rows;  // at least as many as channels
  unsigned parts;
};

static_assert(sizeof(GradientFinishParams) == 48, "host and device must agree");
