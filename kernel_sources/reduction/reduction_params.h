// What one execution of a reduction tells its kernel. Shared by host code and kernels.
#pragma once

// c = alpha * reduce(a) + beta * c
struct ReductionParams {
  const void* a;
  void* c;
  double alpha, beta;  // exact for either compute type; beta 0: c is not read
  double share;        // what a mean multiplies its sum by: 1 / the number of elements
  long long images;    // N
  // All threads that share a result take `steps` vectors each, the first `rest` of them one more.
  long long steps;
  unsigned rest;
};

static_assert(sizeof(ReductionParams) == 64, "host and device must agree");
