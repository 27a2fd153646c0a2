// What one execution of a filter gradient by Toeplitz products tells its kernels. Shared by host
// code and kernels.
#pragma once

#include "common/tensor_map.h"
#include "conv/direct/depthwise_wgrad_params.h"

struct WgradToeplitzParams {
  DepthwiseWgradParams common;  // units: tiles of pixels of dy, of all images
  TensorMap x, dy;              // {channel, w, h, n}
};

static_assert(sizeof(WgradToeplitzParams) == 320, "host and device must agree");
