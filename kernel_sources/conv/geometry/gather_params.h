// The parameters of one execution of a gathering convolution kernel (forward propagation, data
// gradient). Shared by host code and kernels.
#pragma once

// out[pixel, row] = act(alpha * sum + beta * z[pixel, row] + bias[row]), or with RESIDUAL_LAST as
// epilogue.cuh says.
struct GatherParams {
  const void* source;
  const void* w;
  const void* bias;
  const void* z;  // the output itself if there is no residual
  void* out;
  double alpha;      // exact for either compute type
  double beta;       // 0: z is not read
  double coef[2];    // the activation's coefficients
  long long images;  // N
  long long tiles;   // tiles of pixels in the phase that has the most
};

static_assert(sizeof(GatherParams) == 88, "host and device must agree");
