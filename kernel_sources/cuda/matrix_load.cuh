// Matrices from shared memory to the registers of a warp (from sm_80 on).
// kernel_sources/host/matrix_load.cuh gives the same names.
#pragma once

#include "target/kernel.cuh"

// Four 8 x 16-byte matrices from shared memory into registers: lane l gives the address (a multiple
// of 16) of row l % 8 of matrix l / 8, and gets of each matrix the 4 bytes (l / 4, l % 4).
device_inline void load_matrices(u32 (&out)[4], const void* row) {
#if __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(static_cast<u32>(__cvta_generic_to_shared(row)))
               : "memory");
#endif
}
// The same, transposed, of elements of 2 bytes: the lane gets elements (2t, g) and (2t + 1, g).
device_inline void load_matrices_transposed(u32 (&out)[4], const void* row) {
#if __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
               : "r"(static_cast<u32>(__cvta_generic_to_shared(row)))
               : "memory");
#endif
}
