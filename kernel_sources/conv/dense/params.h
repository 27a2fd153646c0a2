// The parameters of one execution of a dense convolution. Shared by host code and kernels.
#pragma once

#include "common/tensor_map.h"

// Tensor maps follow the struct: for each phase the source's, the filter's and, if TMA stores the
// results, the output's; then, with RESIDUAL, the residual's; then those of a normalization's
// gradient: its x and, with NORM_RESIDUAL, its residual.
struct alignas(64) DenseParams {
  const void* bias;
  double alpha;  // exact for either compute type
  double beta;   // 0: the tensor that it scales is not read
  double coef[2];
  unsigned tiles[8];  // tiles of pixels by rows, in all phases up to and including this one
  // For results that threads store: the output, the tensor that beta scales, and the number of
  // images.
  void* out;
  const void* z;
  unsigned images;
};

static_assert(sizeof(DenseParams) == 128, "host and device must agree");
