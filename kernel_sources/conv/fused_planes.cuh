// f32 in planes by fused multiply-adds: slow, and right where infinities are about.
#pragma once

#include "conv/filter_reader.cuh"
#include "conv/warpgroup_tile.cuh"

// Of the thread's first column, in pixels of the halo, at the topmost, leftmost tap.
device_inline int position_in_halo() {
  return first_pixel_of_group() + static_cast<int>(thread_x()) % LANES_N * RUN_N;
}

// A step. filter: at the thread's first row, whose planes lie FILTER_PART bytes apart; pixels: at
// its first column.
template <int FILTER_PART>
device_inline void add_fused(Sums& sums, const unsigned char* filter, const unsigned char* pixels) {
  const auto word = [](const unsigned char* at) { return *reinterpret_cast<const float*>(at); };
#pragma unroll 1
  for (int channel = 0; channel < CHUNK_CHANNELS; ++channel) {
    const int plane = channel / 4, within = channel % 4 * 4;
    float of_rows[THREAD_M];
#pragma unroll
    for (int i = 0; i < THREAD_M; ++i)
      of_rows[i] = word(filter + plane * FILTER_PART + row_step(i) * 16 + within);
#pragma unroll
    for (int j = 0; j < THREAD_N; ++j) {
      const int place = j / RUN_N * NEXT_PIXELS + j % RUN_N;
      const float pixel = word(pixels + plane * PLANE_BYTES + place * 16 + within);
#pragma unroll
      for (int i = 0; i < THREAD_M; ++i) sums.sum[i][j] += of_rows[i] * pixel;
    }
  }
}
