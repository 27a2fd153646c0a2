// The parameters of one execution of the FMA-peak kernel. Shared by host code and kernels.
#pragma once

struct FmaPeakParams {
  void* out;             // one element; never written in fact
  double factor, added;  // what the compiler may not know
  int rounds;
};

static_assert(sizeof(FmaPeakParams) == 32, "host and device must agree");
