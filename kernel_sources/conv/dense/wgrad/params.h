// The parameters of one execution of a dense filter gradient. Shared by host code and kernels.
#pragma once

#include "common/tensor_map.h"

// dw = alpha * sum + beta * dw. The tensor maps of x and of dy follow the struct.
struct alignas(64) DenseWgradParams {
  void* dw;
  // With several groups of blocks, their sums: [group][tile][quad][thread] of four floats
  // (wgrad_sums.cuh).
  void* partials;
  double alpha;     // exact for either compute type
  double beta;      // 0: dw is not read
  unsigned steps;   // steps of STEP_PIXELS pixels of dy in every sum
  unsigned groups;  // PARTIAL: groups of blocks that share a tile
  // For sums that are computed again by their definition.
  const void* x;
  const void* dy;
  unsigned images;
  unsigned continued;  // 1: adds to the sums in the workspace, which are of other images
};

static_assert(sizeof(DenseWgradParams) == 64, "host and device must agree");

// The second step of several groups. A block of slices x parts warps finishes slices x 32 threads'
// quads; the parts divide the groups, and their sums are added in order.
struct DenseWgradFinishParams {
  DenseWgradParams common;
  unsigned slices, parts;
};
