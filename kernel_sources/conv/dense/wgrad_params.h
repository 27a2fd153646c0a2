// What one execution of a dense filter gradient tells its kernels. Shared by host code and kernels.
#pragma once

#include "common/tensor_map.h"

// dw = alpha * sum + beta * dw. Tensor maps follow: that of x, that of dy.
struct alignas(64) DenseWgradParams {
  void* dw;
  // Where groups of blocks leave their sums, if there are several: [group][tile][quad][thread] of
  // four floats each (wgrad_sums.cuh).
  void* partials;
  double alpha;     // exact for either compute type
  double beta;      // 0: dw is not read
  unsigned steps;   // of STEP_PIXELS pixels of dy: the length of every sum
  unsigned groups;  // of blocks that share a tile: of PARTIAL kernels
  // For sums that are added up once more by their definition.
  const void* x;
  const void* dy;
  unsigned images;
  unsigned continued;  // the workspace holds sums of other images, to which these are added
};

static_assert(sizeof(DenseWgradParams) == 64, "host and device must agree");
