// What one execution of a gathering kernel tells it whose source the copy engine brings. Shared by
// host code and kernels.
#pragma once

#include "common/tensor_map.h"
#include "conv/geometry/gather_params.h"

struct BoxedGatherParams {
  GatherParams common;  // tiles: of all images, of one tile of channels
  TensorMap source;     // {channel, w, h, n}
};

static_assert(sizeof(BoxedGatherParams) == 256, "host and device must agree");
