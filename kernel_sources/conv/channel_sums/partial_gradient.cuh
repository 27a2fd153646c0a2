// The two sums of a part of a channel that a normalization's gradient begins with.
#pragma once

#include "target/math.cuh"

struct PartialSums {
  float gradients = 0, products = 0;  // of gradients g, of g (x - mean)

  device_inline void add(float g, float centered) {
    gradients += g;
    products = math_fma(g, centered, products);
  }
  device_inline void join(const PartialSums& other) {
    gradients += other.gradients;
    products += other.products;
  }
};
