// Products of small matrices by a warp, on the tensor cores (from sm_80 on).
// kernel_sources/host/mma.cuh gives the same names.
#pragma once

#include "target/half.cuh"
#include "target/kernel.cuh"

// c += a b, 16 x 8 over 8. Lane l, with g = l / 4 and t = l % 4, holds
//   of a  (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
//   of b  (t, g), (t + 4, g)
//   of c  (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
// All 32 lanes take part. f32: the low 13 bits of a and b are not looked at, and sums are rounded
// toward zero. f64: fused multiply-adds one after the other.
device_inline void mma_16x8x8(float (&c)[4], const float (&a)[4], const float (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(__float_as_uint(a[0])), "r"(__float_as_uint(a[1])), "r"(__float_as_uint(a[2])),
        "r"(__float_as_uint(a[3])), "r"(__float_as_uint(b[0])), "r"(__float_as_uint(b[1])));
#endif
}

#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 900
device_inline void mma_8x8x4(double& c0, double& c1, double a, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(c0), "+d"(c1)
               : "d"(a), "d"(b));
}
#endif
device_inline void mma_16x8x8(double (&c)[4], const double (&a)[4], const double (&b)[2]) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#elif __CUDA_ARCH__ >= 800
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    mma_8x8x4(c[0], c[1], a[2 * k], b[k]);
    mma_8x8x4(c[2], c[3], a[2 * k + 1], b[k]);
  }
#endif
}

// c += a b, 16 x 8 over 16, of elements of 16 bits. Lane l holds pairs of elements side by side
// along the reduction: of a pairs (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4); of b pairs
// (t, g), (t + 4, g); of c what mma_16x8x8 has. Sums are f32, rounded toward zero.
template <class T>
device_inline void mma_16x8x16(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  if constexpr (is_bf16(T{}))
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

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

// The same bits.
device_inline float float_of(u32 bits) { return __uint_as_float(bits); }
device_inline u32 bits_of(float x) { return __float_as_uint(x); }

// The part of x that mma_16x8x8 looks at.
device_inline float tf32_of(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }
device_inline double tf32_of(double x) { return x; }
