// Rows of a channels-last tensor with few channels, which come to shared memory as they lie.
#pragma once

#include "target/async_copy.cuh"
#include "target/half.cuh"
#include "target/kernel.cuh"
#include "target/vector_access.cuh"

constexpr int ROW_ELEMENT_BYTES = static_cast<int>(sizeof(element_t));

// Of FEW channels, in copies of BYTES, from where a copy begins on: a row's first element, that of
// column `lowest` of a tile's first pixel, lies so many elements behind it. A tile begins at a
// multiple of 16 pixels, of f32 of 8.
template <int BYTES>
device_inline constexpr int elements_before(int lowest, int few) {
  constexpr int COPY = BYTES / ROW_ELEMENT_BYTES;
  return (lowest * few % COPY + COPY) % COPY;
}
// The copies of a row of so many elements.
template <int BYTES>
device_inline constexpr int row_copies(int before, int elements) {
  constexpr int COPY = BYTES / ROW_ELEMENT_BYTES;
  return (before + elements + COPY - 1) / COPY;
}

// Starts to copy ROWS rows, PITCH bytes apart in shared memory, `stride` elements in global memory:
// COPIES each from element `first` of row `row` on. Of `rows` rows of LENGTH elements each, which
// end where copies do; what lies outside, or all if !exists, is zero.
template <int THREADS, int ROWS, int COPIES, int PITCH, int BYTES, int LENGTH, class T>
device_inline void copy_whole_rows(unsigned char* shared, const T* tensor, i64 stride, int row,
                                   int rows, int first, bool exists) {
  static_assert(COPIES * BYTES <= PITCH && LENGTH * ROW_ELEMENT_BYTES % BYTES == 0);
#pragma unroll 1
  for (int i = thread_x(); i < ROWS * COPIES; i += THREADS) {
    const int number = i / COPIES, copy = i - number * COPIES;
    const int at_row = row + number, at = first + copy * (BYTES / ROW_ELEMENT_BYTES);
    const bool inside = exists && static_cast<u32>(at_row) < static_cast<u32>(rows) &&
                        static_cast<u32>(at) < static_cast<u32>(LENGTH);
    const T* const from = tensor + (static_cast<i64>(at_row) * stride + at);
    unsigned char* const to = shared + number * PITCH + copy * BYTES;
    if constexpr (BYTES > 2)
      async_copy<BYTES>(to, from, inside);
    else
      *reinterpret_cast<unsigned short*>(to) =
          static_cast<unsigned short>(load_short(from, inside));
  }
}

// An element of 16 bits of them.
device_inline u32 short_at(const unsigned char* at) {
  return *reinterpret_cast<const unsigned short*>(at);
}
