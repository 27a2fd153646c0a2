// What one execution of a depthwise convolution by halos tells its kernel. Shared by host code and
// kernels.
#pragma once

#include "common/tensor_map.h"
#include "conv/geometry/gather_params.h"

struct DepthwiseHaloParams {
  GatherParams common;  // tiles: of all images, of one tile of channels
  TensorMap source;     // {channel, w, h, n}, as boxes of what a tile of pixels meets
};

static_assert(sizeof(DepthwiseHaloParams) == 256, "host and device must agree");
