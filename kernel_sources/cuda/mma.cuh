// Products of small matrices by a warp on the tensor cores (mma.sync, sm_80 and later). Each
// function multiplies one left operand by all right ones and adds to accumulators that are PTX
// registers with names (sum_registers.cuh). kernel_sources/host/mma.cuh defines the same names for
// the host device.
#pragma once

#include "target/half.cuh"
#include "target/kernel.cuh"
#include "target/matrix_load.cuh"

#define KILN_SUMS(r) "{s%6_" #r "_0, s%6_" #r "_1, s%6_" #r "_2, s%6_" #r "_3}"
#define KILN_MMA(instruction, r, operand, of)                                                   \
  asm volatile("mma.sync.aligned." instruction " " KILN_SUMS(                                   \
                   r) ", {%0, %1, %2, %3}, {%4, %5}, " KILN_SUMS(r) ";" ::operand(of(left[0])), \
               operand(of(left[1])), operand(of(left[2])), operand(of(left[3])),                \
               operand(of(right[r][0])), operand(of(right[r][1])), "n"(L));

// Adds left (16 x 8) times right[r] (8 x 8) to sums (L, r), for every r, in TF32. Lane l, with g =
// l / 4 and t = l % 4, holds
//   of left   (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)
//   of right  (t, g), (t + 4, g)
//   of sums   (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
// All 32 lanes must take part. The hardware ignores the low 13 bits of the operands and rounds the
// sums toward zero.
template <int L, class Sums, int RIGHT>
device_inline void mma_16x8x8(Sums&, const float (&left)[4], const float (&right)[RIGHT][2]) {
#if __CUDA_ARCH__ >= 800
#define KILN_MMA_OF(r) KILN_MMA("m16n8k8.row.col.f32.tf32.tf32.f32", r, "r", __float_as_uint)
  EACH_RIGHT(KILN_MMA_OF)
#undef KILN_MMA_OF
#endif
}

// Like mma_16x8x8(), in f64 with a reduction of 4, as a chain of fused multiply-adds. Lane l holds
// (g, t) and (g + 8, t) of left, and (t, g) of right. A reduction of 8 would need right operands in
// adjacent registers, and so extra moves.
template <int L, class Sums, int RIGHT>
device_inline void mma_16x8x4(Sums&, const double (&left)[2], const double (&right)[RIGHT][1]) {
#if __CUDA_ARCH__ >= 900
#define KILN_MMA_OF(r)                                                                   \
  asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {s%3_" #r "_0, s%3_" #r \
               "_1, s%3_" #r "_2, s%3_" #r "_3}, {%0, %1}, {%2}, {s%3_" #r "_0, s%3_" #r \
               "_1, s%3_" #r "_2, s%3_" #r "_3};" ::"d"(left[0]),                        \
               "d"(left[1]), "d"(right[r][0]), "n"(L));
  EACH_RIGHT(KILN_MMA_OF)
#undef KILN_MMA_OF
#elif __CUDA_ARCH__ >= 800
  // sm_80 has f64 products of 8 rows only, so each product is computed in two halves.
#define KILN_HALF(r, c0, c1, a)                                                          \
  "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {s%3_" #r "_" #c0 ", s%3_" #r "_" #c1 \
  "}, {%" #a "}, {%2}, {s%3_" #r "_" #c0 ", s%3_" #r "_" #c1 "};"
#define KILN_MMA_OF(r)                                                                  \
  asm volatile(KILN_HALF(r, 0, 1, 0) KILN_HALF(r, 2, 3, 1)::"d"(left[0]), "d"(left[1]), \
               "d"(right[r][0]), "n"(L));
  EACH_RIGHT(KILN_MMA_OF)
#undef KILN_MMA_OF
#undef KILN_HALF
#endif
}

// Like mma_16x8x8(), for 16-bit elements T with a reduction of 16. Words hold pairs of elements
// that are adjacent along the reduction: lane l holds pairs (g, t), (g + 8, t), (g, t + 4), (g + 8,
// t + 4) of left, and pairs (t, g), (t + 4, g) of right. Sums are f32, rounded toward zero.
template <class T, int L, class Sums, int RIGHT>
device_inline void mma_16x8x16(Sums&, const u32 (&left)[4], const u32 (&right)[RIGHT][2]) {
#if __CUDA_ARCH__ >= 800
#define KILN_MMA_BF16(r) KILN_MMA("m16n8k16.row.col.f32.bf16.bf16.f32", r, "r", )
#define KILN_MMA_F16(r) KILN_MMA("m16n8k16.row.col.f32.f16.f16.f32", r, "r", )
  if constexpr (is_bf16(T{})) {
    EACH_RIGHT(KILN_MMA_BF16)
  } else {
    EACH_RIGHT(KILN_MMA_F16)
  }
#undef KILN_MMA_F16
#undef KILN_MMA_BF16
#endif
}
#undef KILN_MMA
#undef KILN_SUMS

// Reinterpret bits as a number and a number as bits.
device_inline float float_of(u32 bits) { return __uint_as_float(bits); }
device_inline u32 bits_of(float x) { return __float_as_uint(x); }
device_inline double double_of(u32 low, u32 high) {
  return __hiloint2double(static_cast<int>(high), static_cast<int>(low));
}

// The TF32 part of x, which is all that mma_16x8x8() reads.
device_inline float tf32_of(float x) { return __uint_as_float(__float_as_uint(x) & 0xffffe000u); }
device_inline double tf32_of(double x) { return x; }
