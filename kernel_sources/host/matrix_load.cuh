// Matrices from shared memory to the registers of a warp, on the host device: see
// kernel_sources/cuda/matrix_load.cuh.
#pragma once

#include "target/kernel.cuh"

// The row addresses that the 32 lanes pass.
device_inline const unsigned char* const* matrix_rows(const void* row) {
  return static_cast<const unsigned char* const*>(
      kiln_context->warp_exchange(kiln_context, &row, sizeof row));
}
device_inline void load_matrices(u32 (&out)[4], const void* row) {
  const unsigned char* const* const rows = matrix_rows(row);
  const u32 lane = kiln_context->lane(kiln_context);
  for (u32 i = 0; i < 4; ++i)
    out[i] = reinterpret_cast<const u32*>(rows[8 * i + lane / 4])[lane % 4];
}
device_inline void load_matrices_transposed(u32 (&out)[4], const void* row) {
  const unsigned char* const* const rows = matrix_rows(row);
  const u32 lane = kiln_context->lane(kiln_context), g = lane / 4, t = lane % 4;
  for (u32 i = 0; i < 4; ++i) {
    const auto element = [&](u32 k) {
      return static_cast<u32>(reinterpret_cast<const unsigned short*>(rows[8 * i + k])[g]);
    };
    out[i] = element(2 * t) | element(2 * t + 1) << 16;
  }
}
