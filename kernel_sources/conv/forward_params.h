// What one execution of a forward convolution tells its kernel. Shared by host code and kernels.
#pragma once

// y[pixel, k] = alpha * sum + beta * y[pixel, k]; pixels are counted over all images.
struct ForwardParams {
  const void* x;
  const void* w;
  void* y;
  double alpha;      // exact for either compute type
  double beta;       // 0: y is not read
  long long images;  // N
  long long pixels;  // N * O * P * Q
};

static_assert(sizeof(ForwardParams) == 56, "host and device must agree");
