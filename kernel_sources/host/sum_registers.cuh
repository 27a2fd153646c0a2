// A thread's sums of products, on the host device: see kernel_sources/cuda/sum_registers.cuh. They
// are not numbers until they are given a value.
#pragma once

#include "target/kernel.cuh"

template <int LEFT, int RIGHT, bool TOTALS, bool HELD = false>
struct SumRegisters {
  float part[LEFT][RIGHT][4], total[TOTALS ? LEFT : 1][TOTALS ? RIGHT : 1][4];
  float held[HELD ? LEFT : 1][HELD ? RIGHT : 1][4];

  device_inline void declare() {
    fill(part, __builtin_nanf(""));
    fill(total, __builtin_nanf(""));
    fill(held, __builtin_nanf(""));
  }
  device_inline void clear() { fill(part, 0); }
  device_inline void clear_totals() { fill(total, 0); }
  device_inline void add_to_totals() {
    for (int l = 0; l < LEFT; ++l)
      for (int r = 0; r < RIGHT; ++r)
        for (int c = 0; c < 4; ++c) total[l][r][c] += part[l][r][c];
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
  template <class Place>
  device_inline void read(float* array) const {
    each([&](int l, int r, int c, float sum) { array[Place::of(l, r, c)] = sum; });
  }
  template <class Place>
  device_inline void put(float* first) const {
    each([&](int l, int r, int c, float sum) { first[at<Place>(Place::of, l, r, c)] = sum; });
  }
  template <class Place, int LINES>
  device_inline void put_lines(float* first, u32 line) const {
    each([&](int l, int r, int c, float sum) {
      if (static_cast<u32>(at<Place>(Place::line, l, r, c)) - line < LINES)
        first[at<Place>(Place::of, l, r, c)] = sum;
    });
  }

 private:
  // What PTX makes of the steps of place(l, r, c).
  template <class Place>
  device_inline static int at(int (*place)(int, int, int), int l, int r, int c) {
    return l * place(1, 0, 0) + r / Place::RUN * place(0, Place::RUN, 0) +
           r % Place::RUN * place(0, 1, 0) + c / 2 * place(0, 0, 2) + c % 2 * place(0, 0, 1);
  }
  template <class Each>
  device_inline void each(const Each& each_sum) const {
    for (int l = 0; l < LEFT; ++l)
      for (int r = 0; r < RIGHT; ++r)
        for (int c = 0; c < 4; ++c) {
          if constexpr (TOTALS)
            each_sum(l, r, c, total[l][r][c]);
          else
            each_sum(l, r, c, part[l][r][c]);
        }
  }
  template <int M, int N>
  device_inline static void fill(float (&sums)[M][N][4], float value) {
    for (auto& row : sums)
      for (auto& product : row)
        for (float& sum : product) sum = value;
  }
};
