// The parameters of one execution of a filter gradient. Shared by host code and kernels.
#pragma once

// dw = alpha * sum + beta * dw
struct WgradParams {
  const void* x;
  const void* dy;
  void* dw;
  double alpha;               // exact for either compute type
  double beta;                // 0: dw is not read
  unsigned long long pixels;  // N * O * P * Q: the length of every sum
};

static_assert(sizeof(WgradParams) == 48, "host and device must agree");
