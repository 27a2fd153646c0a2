// Products of small matrices by a warp, on the tensor cores (from sm_80 on), added to sums that the
// compiler knows. kernel_sources/host/warp_product.cuh gives the same names.
#pragma once

#include "target/half.cuh"
#include "target/kernel.cuh"
#include "target/matrix_load.cuh"

// sums += left right, 16 x 8 over 16, of elements T of 16 bits. Which elements a lane holds is told
// at mma_16x8x16 (mma.cuh). All 32 lanes take part. Sums are rounded toward zero.
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

// The same over 8, of f32 of which 11 bits are read (mma_16x8x8, mma.cuh).
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
// sums = left right: no registers are cleared for it.
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
