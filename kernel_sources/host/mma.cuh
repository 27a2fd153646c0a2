// Products of small matrices by a warp, on the host device: see kernel_sources/cuda/mma.cuh.
#pragma once

#include "target/half.cuh"
#include "target/kernel.cuh"
#include "target/matrix_load.cuh"

device_inline float tf32_of(float x) {
  return __builtin_bit_cast(float, __builtin_bit_cast(u32, x) & 0xffffe000u);
}
device_inline double tf32_of(double x) { return x; }

device_inline double mma_round(double sum, double) { return sum; }
// Rounds toward zero, but to infinity from 2^128 on.
device_inline float mma_round(double sum, float) {
  const float nearest = static_cast<float>(sum);
  if (!(__builtin_fabs(nearest) > __builtin_fabs(sum))) return nearest;
  if (__builtin_fabs(sum) >= 0x1p128) return nearest;
  return __builtin_bit_cast(float, __builtin_bit_cast(u32, nearest) - 1);
}

// Two rows of operand A, or two columns of operand B, with K elements each.
template <int K>
struct MmaLines {
  double line[2][K];
};
// Computes a lane's four sums of a 16 x 8 product: rows g and g + 8, columns 2 * t and 2 * t + 1,
// where g is lane / 4 and t is lane % 4. The chains are interleaved, so that an addition does not
// wait for the one before. For f64 the operation is fused. Otherwise a and b have at most 11
// significant bits, so their product in f64 is exact.
template <int K, class Sum>
device_inline void mma_sums(Sum (&c)[4], const MmaLines<K>& rows, const MmaLines<K>& columns) {
  const auto& row = rows.line;
  const auto& column = columns.line;
  if constexpr (sizeof(Sum) == 8) {
    for (int k = 0; k < K; ++k)
      for (int i = 0; i < 4; ++i) c[i] = __builtin_fma(row[i / 2][k], column[i % 2][k], c[i]);
  } else {
    doublex2 sums0{c[0], c[1]}, sums1{c[2], c[3]};
    for (int k = 0; k < K; ++k) {
      const doublex2 both{column[0][k], column[1][k]};
      sums0 += row[0][k] * both;
      sums1 += row[1][k] * both;
    }
    c[0] = mma_round(sums0[0], Sum()), c[1] = mma_round(sums0[1], Sum());
    c[2] = mma_round(sums1[0], Sum()), c[3] = mma_round(sums1[1], Sum());
  }
}

// Gather a lane's rows of A and columns of B from the other lanes. Lanes 4 * g to 4 * g + 3 hold
// rows g and g + 8 of A, and column g of B; each holds K / 4 elements of a row or column, `run` of
// them contiguous.
template <int K, int run, class T>
device_inline MmaLines<K> mma_rows(const T (&mine)[K / 2]) {
  struct Lane {
    T element[K / 2];
  };
  const auto* const lanes =
      static_cast<const Lane*>(kiln_context->warp_exchange(kiln_context, mine, sizeof mine));
  const u32 g = kiln_context->lane(kiln_context) / 4;
  MmaLines<K> out;
  for (u32 row = 0; row < 2; ++row)
    for (u32 part = 0; part < K / (4 * run); ++part)
      for (u32 lane = 0; lane < 4; ++lane)
        for (u32 i = 0; i < run; ++i)
          out.line[row][(part * 4 + lane) * run + i] =
              lanes[g * 4 + lane].element[(part * 2 + row) * run + i];
  return out;
}
template <int K, int run, class T>
device_inline MmaLines<K> mma_columns(const T (&mine)[K / 4]) {
  struct Lane {
    T element[K / 4];
  };
  const auto* const lanes =
      static_cast<const Lane*>(kiln_context->warp_exchange(kiln_context, mine, sizeof mine));
  const u32 t = kiln_context->lane(kiln_context) % 4;
  MmaLines<K> out;
  for (u32 column = 0; column < 2; ++column)
    for (u32 part = 0; part < K / (4 * run); ++part)
      for (u32 lane = 0; lane < 4; ++lane)
        for (u32 i = 0; i < run; ++i)
          out.line[column][(part * 4 + lane) * run + i] =
              lanes[(2 * t + column) * 4 + lane].element[part * run + i];
  return out;
}

template <int COUNT>
device_inline void tf32_of(const float (&from)[COUNT], float (&to)[COUNT]) {
  for (int i = 0; i < COUNT; ++i) to[i] = tf32_of(from[i]);
}
template <int L, class Sums, int RIGHT>
device_inline void mma_16x8x8(Sums& sums, const float (&left)[4], const float (&right)[RIGHT][2]) {
  float a[4], b[2];
  tf32_of(left, a);
  const MmaLines<8> rows = mma_rows<8, 1>(a);
  for (int r = 0; r < RIGHT; ++r) {
    tf32_of(right[r], b);
    mma_sums(sums.part[L][r], rows, mma_columns<8, 1>(b));
  }
}
template <int L, class Sums, int RIGHT>
device_inline void mma_16x8x4(Sums& sums, const double (&left)[2],
                              const double (&right)[RIGHT][1]) {
  const MmaLines<4> rows = mma_rows<4, 1>(left);
  for (int r = 0; r < RIGHT; ++r) mma_sums(sums.part[L][r], rows, mma_columns<4, 1>(right[r]));
}

device_inline float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }
device_inline u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }
device_inline double double_of(u32 low, u32 high) {
  return __builtin_bit_cast(double, static_cast<u64>(high) << 32 | low);
}

// Converts the 16-bit elements in words to f32.
template <class T, int COUNT>
device_inline void elements_of(const u32 (&words)[COUNT], float (&elements)[2 * COUNT]) {
  for (int i = 0; i < 2 * COUNT; ++i)
    elements[i] = to_float(T{static_cast<unsigned short>(words[i / 2] >> 16 * (i % 2))});
}
template <class T>
device_inline MmaLines<16> mma_rows_of(const u32 (&left)[4]) {
  float mine[8];
  elements_of<T>(left, mine);
  return mma_rows<16, 2>(mine);
}
template <class T>
device_inline MmaLines<16> mma_columns_of(const u32 (&right)[2]) {
  float mine[4];
  elements_of<T>(right, mine);
  return mma_columns<16, 2>(mine);
}
template <class T, int L, class Sums, int RIGHT>
device_inline void mma_16x8x16(Sums& sums, const u32 (&left)[4], const u32 (&right)[RIGHT][2]) {
  const MmaLines<16> rows = mma_rows_of<T>(left);
  for (int r = 0; r < RIGHT; ++r) mma_sums(sums.part[L][r], rows, mma_columns_of<T>(right[r]));
}
