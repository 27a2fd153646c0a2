// Matrices from a warp's registers to shared memory, on the host device: see
// kernel_sources/cuda/matrix_store.cuh.
#pragma once

#include "target/mma.cuh"

device_inline void store_matrices(void* row, const u32 (&words)[4]) {
  const unsigned char* const* const rows = matrix_rows(row);
  const u32 lane = kiln_context->lane(kiln_context);
  for (u32 i = 0; i < 4; ++i)
    __builtin_memcpy(const_cast<unsigned char*>(rows[8 * i + lane / 4]) + lane % 4 * 4, &words[i],
                     4);
}
device_inline void store_matrices_transposed(void* column, const u32 (&words)[4]) {
  const unsigned char* const* const columns = matrix_rows(column);
  const u32 lane = kiln_context->lane(kiln_context);
  for (u32 i = 0; i < 4; ++i)
    for (u32 k = 0; k < 2; ++k) {
      const unsigned short element = static_cast<unsigned short>(words[i] >> 16 * k);
      __builtin_memcpy(const_cast<unsigned char*>(columns[8 * i + lane % 4 * 2 + k]) + lane / 4 * 2,
                       &element, 2);
    }
}
