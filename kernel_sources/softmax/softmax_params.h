// The parameters of one execution of a softmax kernel. Shared by host code and kernels.
#pragma once

struct SoftmaxParams {
  const void* in[2];   // forward: x; backward: y, dy
  void* out;           // y; dx
  double alpha, beta;  // exact for either compute type; beta 0: the output is not read
  long long images;    // N
};

static_assert(sizeof(SoftmaxParams) == 48, "host and device must agree");
