// Products of small matrices by a warp, on the host device: see
// kernel_sources/cuda/warp_product.cuh.
#pragma once

#include "target/mma.cuh"

template <class T>
device_inline void add_product(float (&sums)[4], const u32 (&left)[4], const u32 (&right)[2]) {
  mma_sums(sums, mma_rows_of<T>(left), mma_columns_of<T>(right));
}

device_inline void add_product(float (&sums)[4], const float (&left)[4], const float (&right)[2]) {
  float a[4], b[2];
  tf32_of(left, a), tf32_of(right, b);
  const MmaLines<8> rows = mma_rows<8, 1>(a);
  mma_sums(sums, rows, mma_columns<8, 1>(b));
}
device_inline void set_product(float (&sums)[4], const float (&left)[4], const float (&right)[2]) {
  for (float& sum : sums) sum = 0;
  add_product(sums, left, right);
}
