// The parameters of one execution of a filter gradient with few channels per group. Shared by host
// code and kernels.
#pragma once

// dw = alpha * sum + beta * dw
struct DepthwiseWgradParams {
  const void* x;
  const void* dy;
  void* dw;
  void* partials;     // sums of groups of blocks: [group][tile][tap][channel of x][channel of dy]
  double alpha;       // exact for either compute type
  double beta;        // 0: dw is not read
  long long units;    // tiles of pixels of dy: the length of every sum
  unsigned groups;    // groups of blocks, each with a part of the units (PARTIAL kernels)
  unsigned elements;  // number of a group's partial sums
};

static_assert(sizeof(DepthwiseWgradParams) == 64, "host and device must agree");
