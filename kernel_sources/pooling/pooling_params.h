// The parameters of one execution of a pooling kernel. Shared by host code and kernels.
#pragma once

struct PoolingParams {
  const void* x;       // not used by the gradient of an average
  const void* dy;      // backward
  void* out;           // y, or dx
  double alpha, beta;  // exact for either compute type; beta 0: the output is not read
  long long images;    // N
};

static_assert(sizeof(PoolingParams) == 48, "host and device must agree");
