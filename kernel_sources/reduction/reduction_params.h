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
  // Of a reduction in two steps: how many blocks share a result, and where their sums wait, as
  // [result][sum][part][lane] of the compute type. No parts in a reduction of one step.
  unsigned parts;
  void* partials;
};

static_assert(sizeof(ReductionParams) == 72, "host and device must agree");
