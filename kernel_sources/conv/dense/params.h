// What one execution of a dense convolution kernel tells it. Shared by host code and kernels.
#pragma once

#include "common/tensor_map.h"

// Tensor maps follow: for each phase those of the source, of the filter and of the output; then,
// with RESIDUAL, that of what beta scales. With classes of channels (tile.cuh), the source's, the
// filter's, the output's and the residual's.
struct alignas(64) DenseParams {
  const void* bias;
  double alpha;  // exact for either compute type
  double beta;   // 0: what it scales is not read
  double coef[2];
  unsigned tiles[8];  // of pixels by rows, in all phases up to the end of this one
  // Of results that threads store: where they go, what beta scales, images.
  void* out;
  const void* z;
  unsigned images;
};

static_assert(sizeof(DenseParams) == 128, "host and device must agree");
