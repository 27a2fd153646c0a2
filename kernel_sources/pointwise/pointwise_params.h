// The parameters of one execution of a pointwise kernel. Shared by host code and kernels.
#pragma once

struct PointwiseParams {
  const void* in[2];
  void* out;
  double alpha, beta, alpha2;  // exact for either compute type; beta 0: the output is not read
  double coef[2];              // the activation's coefficients
  long long images;            // N
};

static_assert(sizeof(PointwiseParams) == 72, "host and device must agree");
