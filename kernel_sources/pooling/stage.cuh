// The copy in shared memory of what a tile's windows read of x. The asynchronous copies of a whole
// tile are under way at once, so a multiprocessor's few blocks keep memory busy.
#pragma once

#include "pooling/choose.cuh"
#include "target/async_copy.cuh"
#include "target/shared_memory.cuh"

struct Stage {
  const element_t* first;  // where the copy would have the image's first pixel
  offset_t plane = 0;      // with PLANES: how far the second plane is from the first

  // Starts the copies of the tile's channels, of which `x` is the first pixel.
  device_inline Stage(const element_t* x, const Tile& tile, const Access& of_x) {
    const int unclipped = (tile.h / STRIDE_H + FIRST_P) * STRIDE_H - PAD_H;
    const int begin = unclipped < 0 ? 0 : unclipped;
    const int end = least(IN_H, unclipped + (WINDOWS_H - 1) * STRIDE_H + WINDOW_H);
    element_t* const area = shared_array<element_t, STAGED_ELEMENTS>(STAGE_OFFSET);
    if constexpr (CHANNELS_INNER) {
      const int left_of = (tile.w / STRIDE_W + FIRST_Q) * STRIDE_W - PAD_W;
      const int column = left_of < 0 ? 0 : left_of;
      const int columns = least(IN_W, left_of + (WINDOWS_W - 1) * STRIDE_W + WINDOW_W) - column;
      start_channels(x + (static_cast<offset_t>(begin) * X_STRIDE_H +
                          static_cast<offset_t>(column) * X_STRIDE_W),
                     of_x.aligned, end - begin, columns, CHANNELS - tile.c, area);
      first = area - (begin * TAP_STRIDE_H + column * TAP_STRIDE_W);
    } else {
      const element_t* const from = x + static_cast<offset_t>(begin) * X_STRIDE_H;
      const int shift = start_rows(from, end - begin, area);
      first = area + (shift - begin * TAP_STRIDE_H);
      if (PLANES && of_x.plane != 0)
        plane =
            STAGE_PLANE - shift + start_rows(from + of_x.plane, end - begin, area + STAGE_PLANE);
    }
    async_commit();
  }

 private:
  // Copies vectors of channels; `left` channels are left from the first one on.
  device_inline static void start_channels(const element_t* from, bool aligned, int rows,
                                           int columns, int left, element_t* area) {
#pragma unroll 1
    for (int index = thread_x(); index < READ_H * READ_W * LANES; index += THREADS) {
      const int lane = index % LANES, at = index / LANES, row = at / READ_W, column = at % READ_W;
      if (row >= rows || column >= columns || lane * VECTOR >= left) continue;
      const element_t* const vector =
          from + (static_cast<offset_t>(row) * X_STRIDE_H +
                  static_cast<offset_t>(column) * X_STRIDE_W + lane * VECTOR);
      start(vector, aligned, area + index * VECTOR);
    }
  }
  device_inline static void start(const element_t* from, bool aligned, element_t* to) {
    constexpr int BYTES =
        sizeof(Gradient) < 4 ? 4 : sizeof(Gradient);  // staged ones have 4 or more
    if (aligned) {
      async_copy<BYTES>(to, from, true);
      return;
    }
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) to[i] = from[i];
  }

  // Copies contiguous rows of a plane, 16 bytes at a time. Returns how many elements after `area`
  // they begin.
  device_inline static int start_rows(const element_t* from, int rows, element_t* area) {
    const int shift = static_cast<int>(reinterpret_cast<u64>(from) / sizeof(element_t) % UNIT);
    const int end = shift + rows * IN_W;
#pragma unroll 1
    for (int at = thread_x() * UNIT; at < end; at += THREADS * UNIT) {
      if (at >= shift && at + UNIT <= end) {
        async_copy<16>(area + at, from + (at - shift), true);
        continue;
      }
#pragma unroll
      for (int i = at; i < at + UNIT; ++i)
        if (i >= shift && i < end) area[i] = from[i - shift];
    }
    return shift;
  }
};
