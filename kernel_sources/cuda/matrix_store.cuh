// Four matrices of 8 x 8 elements of 16 bits from a warp's registers to shared memory (stmatrix,
// sm_90 and up), laid out as load_matrices has them (matrix i is word i; lane l has of it row l /
// 4, columns 2 (l % 4) and the next). kernel_sources/host/matrix_store.cuh gives the same names.
#pragma once

#include "target/kernel.cuh"

// Lane l gives where row l % 8 of matrix l / 8 goes, 16 bytes.
device_inline void store_matrices(void* row, const u32 (&words)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   static_cast<u32>(__cvta_generic_to_shared(row))),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
#endif
}
// The same of the transposed matrices: lane l gives where column l % 8 goes.
device_inline void store_matrices_transposed(void* column, const u32 (&words)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
                   static_cast<u32>(__cvta_generic_to_shared(column))),
               "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
               : "memory");
#endif
}
