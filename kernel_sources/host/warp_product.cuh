// Products of small matrices by a warp, on the host device: see
// kernel_sources/cuda/warp_product.cuh.
#pragma once

#include "target/mma.cuh"

template <class T>
device_inline void add_product(float (&sums)[4], const u32 (&left)[4], const u32 (&right)[2]) {
  mma_sums(sums, mma_rows_of<T>(left), mma_columns_of<T>(right));
}
