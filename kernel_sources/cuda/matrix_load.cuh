// Loads of 8 x 8 matrices from shared memory into a warp's registers (ldmatrix, sm_80 and later).
// kernel_sources/host/matrix_load.cuh defines the same names for the host device.
#pragma once

#include "target/kernel.cuh"

// Loads four matrices of 8 rows of 16 bytes. Lane l passes the address (a multiple of 16) of row l
// % 8 of matrix l / 8, and gets in out[i] word l % 4 (4 bytes) of row l / 4 of matrix i.
device_inline void load_matrices(u32 (&out)[4], const void* row) {
#if __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(static_cast<u32>(__cvta_generic_to_shared(row)))
               : "memory");
#endif
}
// Like load_matrices(), but transposes matrices of 16-bit elements: with g = l / 4 and t = l % 4,
// lane l gets elements (2t, g) and (2t + 1, g).
device_inline void load_matrices_transposed(u32 (&out)[4], const void* row) {
#if __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(static_cast<u32>(__cvta_generic_to_shared(row)))
               : "memory");
#endif
}
