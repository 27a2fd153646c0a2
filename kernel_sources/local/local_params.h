// The parameters of one execution of a locally connected layer. Shared by host code and kernels.
#pragma once

struct LocalParams {
  const void* x;       // forward, filter gradient
  const void* w;       // forward, data gradient
  const void* dy;      // the gradients
  const void* bias;    // forward, with BIAS
  void* out;           // y, dx or dw
  double alpha, beta;  // exact for either compute type; beta 0: the output is not read
  long long images;    // N
};

static_assert(sizeof(LocalParams) == 64, "host and device must agree");
