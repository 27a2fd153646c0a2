// The parameters of one execution of a filter gradient whose operands TMA loads. Shared by host
// code and kernels.
#pragma once

#include "common/tensor_map.h"
#include "conv/geometry/depthwise_wgrad_params.h"

struct BoxedWgradParams {
  DepthwiseWgradParams common;  // units: tiles of pixels of dy, of all images
  TensorMap x, dy;              // {channel, w, h, n}
};

static_assert(sizeof(BoxedWgradParams) == 320, "host and device must agree");
