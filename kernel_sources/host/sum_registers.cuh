// A thread's accumulators on the host device: see kernel_sources/cuda/sum_registers.cuh. They are
// NaN until they are set.
#pragma once

#include "target/kernel.cuh"

template <class T, int LEFT, int RIGHT, bool TOTALS, bool HELD = false>
struct SumRegisters {
  T part[LEFT][RIGHT][4], total[TOTALS ? LEFT : 1][TOTALS ? RIGHT : 1][4];
  T held[HELD ? LEFT : 1][HELD ? RIGHT : 1][4];

  device_inline void declare() {
    fill(part, static_cast<T>(__builtin_nanf("")));
    fill(total, static_cast<T>(__builtin_nanf("")));
    fill(held, static_cast<T>(__builtin_nanf("")));
  }
  device_inline void clear() { fill(part, 0); }
  device_inline void clear_totals() { fill(total, 0); }
  device_inline void add_to_totals() {
    for (int l = 0; l < LEFT; ++l)
      for (int r = 0; r < RIGHT; ++r)
        for (int c = 0; c < 4; ++c) total[l][r][c] += part[l][r][c];
  }
  template <int L>
  device_inline void add_products(T left, const T (&right)[4 * RIGHT]) {
    for (int r = 0; r < RIGHT; ++r)
      for (int c = 0; c < 4; ++c) part[L][r][c] += left * right[4 * r + c];
  }
  device_inline void hold() {
    for (int l = 0; l < LEFT; ++l)
      for (int r = 0; r < RIGHT; ++r)
        for (int c = 0; c < 4; ++c) held[l][r][c] = part[l][r][c];
  }
  device_inline void add_held() {
    for (int l = 0; l < LEFT; ++l)
      for (int r = 0; r < RIGHT; ++r)
        for (int c = 0; c < 4; ++c) part[l][r][c] += held[l][r][c];
  }
  template <int L, int R>
  device_inline void take(T (&four)[4]) const {
    for (int c = 0; c < 4; ++c) four[c] = stored()[L][R][c];
  }
  template <class Place>
  device_inline void put(T* first) const {
    each([&](int l, int r, int c, T sum) { first[at<Place>(Place::of, l, r, c)] = sum; });
  }
  template <class Place, int LINES>
  device_inline void put_lines(T* first, u32 line) const {
    each([&](int l, int r, int c, T sum) {
      if (static_cast<u32>(at<Place>(Place::line, l, r, c)) - line < LINES)
        first[at<Place>(Place::of, l, r, c)] = sum;
    });
  }

  // The final sums.
  device_inline auto& stored() {
    if constexpr (TOTALS)
      return total;
    else
      return part;
  }

 private:
  // Computes place(l, r, c) from its terms, as the PTX address does.
  template <class Place>
  device_inline static int at(int (*place)(int, int, int), int l, int r, int c) {
    return l / Place::LEFT_RUN * place(Place::LEFT_RUN, 0, 0) +
           l % Place::LEFT_RUN * place(1, 0, 0) + r / Place::RUN * place(0, Place::RUN, 0) +
           r % Place::RUN * place(0, 1, 0) + c / 2 * place(0, 0, 2) + c % 2 * place(0, 0, 1);
  }
  device_inline const auto& stored() const { return const_cast<SumRegisters*>(this)->stored(); }
  template <class Each>
  device_inline void each(const Each& each_sum) const {
    for (int l = 0; l < LEFT; ++l)
      for (int r = 0; r < RIGHT; ++r)
        for (int c = 0; c < 4; ++c) each_sum(l, r, c, stored()[l][r][c]);
  }
  template <int M, int N>
  device_inline static void fill(T (&sums)[M][N][4], T value) {
    for (auto& row : sums)
      for (auto& product : row)
        for (T& sum : product) sum = value;
  }
};
