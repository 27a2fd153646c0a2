// Stores of 8 x 8 matrices of 16-bit elements from a warp's registers to shared memory (stmatrix,
// sm_90 and later). Registers hold them as load_matrices() leaves them: words[i] belongs to matrix
// i, and lane l has columns 2 (l % 4) and 2 (l % 4) + 1 of its row l / 4.
// kernel_sources/host/matrix_store.cuh defines the same names for the host device.
#pragma once

#include "target/kernel.cuh"

// Stores four matrices. Lane l passes the address (a multiple of 16) of row l % 8 of matrix l / 8;
// a row has 16 bytes.
device_inline void store_matrices(void* row, const u32 (&words)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   static_cast<u32>(__cvta_generic_to_shared(row))),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
#endif
}
// Like store_matrices(), but transposes the matrices: lane l passes the address of column l % 8.
device_inline void store_matrices_transposed(void* column, const u32 (&words)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   static_cast<u32>(__cvta_generic_to_shared(column))),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
#endif
}
