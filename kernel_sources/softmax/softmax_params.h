// What one execution of a softmax kernel tells it. Shared by host code and kernels.
#pragma once

struct SoftmaxParams {
  const void* in[2];   // forward: x; backward: y, dy
  void* out;           // y; dx
  double alpha, beta;  // exact for either compute type; beta 0: the output is not read
  long long images;    // N
  // Of long rows: how many rows on the one is that a block asks for, 0 for none, and how many
  // vectors of it a thread stands for.
  unsigned ahead, ahead_vectors;
};

static_assert(sizeof(SoftmaxParams) == 56, "host and device must agree");
