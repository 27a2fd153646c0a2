// The parameters of one execution of a reduction. Shared by host code and kernels.
#pragma once

// c = alpha * reduce(a) + beta * c
struct ReductionParams {
  const void* a;
  void* c;
  double alpha, beta;  // exact for either compute type; beta 0: c is not read
  double share;        // the factor of a mean: 1 / the number of elements
  long long images;    // N
  // Each thread that shares a result has `steps` vectors; the first `rest` threads have one more.
  long long steps;
  unsigned rest;
  // For a reduction in two steps: the number of blocks that share a result, and their sums in the
  // workspace, [result][sum][part][lane] in the compute type. 0 parts in a reduction of one step.
  unsigned parts;
  void* partials;
};

static_assert(sizeof(ReductionParams) == 72, "host and device must agree");
