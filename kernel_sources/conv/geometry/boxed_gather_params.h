// The parameters of one execution of a gathering kernel whose source TMA loads. Shared by host code
// and kernels.
#pragma once

#include "common/tensor_map.h"
#include "conv/geometry/gather_params.h"

struct BoxedGatherParams {
  GatherParams common;  // tiles: those of all images, for one tile of channels
  TensorMap source;     // {channel, w, h, n}
};

static_assert(sizeof(BoxedGatherParams) == 256, "host and device must agree");
