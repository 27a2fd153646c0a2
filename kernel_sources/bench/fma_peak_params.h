// The parameters of one execution of the FMA-peak kernel. Shared by host code and kernels.
#pragma once

struct FmaPeakParams {
  void* out;             // one element, which is never written
  double factor, added;  // parameters, so that the compiler does not know them
  int rounds;
};

static_assert(sizeof(FmaPeakParams) == 32, "host and device must agree");
