// Products of small matrices by a warp on the tensor cores (mma.sync, sm_80 and later), with
// accumulators that are ordinary variables. kernel_sources/host/warp_product.cuh defines the same
// names for the host device.
#pragma once

#include "target/half.cuh"
#include "target/kernel.cuh"
#include "target/matrix_load.cuh"

// Adds left (16 x 16) times right (16 x 8) to sums, for 16-bit elements T. mma_16x8x16() (mma.cuh)
// tells which elements a lane holds. All 32 lanes must take part. Sums are rounded toward zero.
template <class T>
device_inline void add_product(float (&sums)[4], const u32 (&left)[4], const u32 (&right)[2]) {
#if __CUDA_ARCH__ >= 800
#define KILN_PRODUCT(type)                                                   \
  asm("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                 \
      ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])           \
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]))
  if constexpr (is_bf16(T{}))
    KILN_PRODUCT("bf16");
  else
    KILN_PRODUCT("f16");
#undef KILN_PRODUCT
#endif
}

// Like the above in TF32 with a reduction of 8; see mma_16x8x8() (mma.cuh).
device_inline void add_product(float (&sums)[4], const float (&left)[4], const float (&right)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(__float_as_uint(left[0])), "r"(__float_as_uint(left[1])), "r"(__float_as_uint(left[2])),
        "r"(__float_as_uint(left[3])), "r"(__float_as_uint(right[0])),
        "r"(__float_as_uint(right[1])));
#endif
}
// Sets sums to left times right, so that no registers need to be cleared before.
device_inline void set_product(float (&sums)[4], const float (&left)[4], const float (&right)[2]) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"
      : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
      : "r"(__float_as_uint(left[0])), "r"(__float_as_uint(left[1])), "r"(__float_as_uint(left[2])),
        "r"(__float_as_uint(left[3])), "r"(__float_as_uint(right[0])),
        "r"(__float_as_uint(right[1])), "f"(0.0f));
#endif
}
