// The parameters of one execution of a normalization's kernel. Shared by host code and kernels.
#pragma once

// Operands by the names of src/problem/normalization.hpp; null where the problem lacks one.
struct NormalizationParams {
  const void* x;
  const void* residual;
  const void* dy;
  const void* scale;
  const void* bias;
  void* mean;       // training writes mean and deviation
  void* deviation;  // the inverse deviation; inference: the variance
  void* running_mean;
  void* running_variance;
  void* dscale;
  void* dbias;
  void* dresidual;
  void* out;                   // y or dx
  double alpha, beta, factor;  // exact for either compute type; beta 0: `out` is not read
  double epsilon;
  double coef[2];    // the activation's coefficients
  double share;      // 1 / n, of the n elements of a channel
  double unbiased;   // 1 / (n - 1)
  long long images;  // N
  // Each thread that shares a channel has `steps` vectors; the first `rest` threads have one more.
  long long steps;
  unsigned rest;
  // The blocks that share a channel and leave their totals in the workspace, [channels of a
  // thread][part][2][lane] in the compute type; 0: clusters, which leave none. Of pointwise passes:
  // the blocks that share a channel.
  unsigned parts;
  void* partials;
  long long rows;  // of stages (rows.cu): sets of rows, each of which `parts` blocks share
};

static_assert(sizeof(NormalizationParams) == 208, "host and device must agree");
