// What one execution of a pooling kernel tells it. Shared by host code and kernels.
#pragma once

struct PoolingParams {
  const void* x;       // of an average's gradient: not there
  const void* dy;      // backward
  void* out;           // y, or dx
  double alpha, beta;  // exact for either compute type; beta 0: the output is not read
  long long images;    // N
};

static_assert(sizeof(PoolingParams) == 48, "host and device must agree");
