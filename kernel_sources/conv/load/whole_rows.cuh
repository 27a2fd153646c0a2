// Copies whole rows of a channels-last tensor with few channels to shared memory, in the layout of
// global memory.
#pragma once

#include "target/async_copy.cuh"
#include "target/half.cuh"
#include "target/kernel.cuh"
#include "target/vector_access.cuh"

constexpr int ROW_ELEMENT_BYTES = static_cast<int>(sizeof(element_t));

// The number of elements from where the first copy of BYTES bytes begins to a row's first element,
// which is that of column `lowest`, with `few` channels. It is the same for all tiles, because they
// begin at multiples of 16 pixels (f32: 8).
template <int BYTES>
device_inline constexpr int elements_before(int lowest, int few) {
  constexpr int COPY = BYTES / ROW_ELEMENT_BYTES;
  return (lowest * few % COPY + COPY) % COPY;
}
// The number of copies of a row of `elements` elements.
template <int BYTES>
device_inline constexpr int row_copies(int before, int elements) {
  constexpr int COPY = BYTES / ROW_ELEMENT_BYTES;
  return (before + elements + COPY - 1) / COPY;
}

// Starts to copy ROWS rows, which are PITCH bytes apart in shared memory and `stride` elements in
// global memory, with COPIES copies each, from element `first` of row `row` on. The tensor has
// `rows` rows of LENGTH elements each, a multiple of a copy. What is outside, or everything if
// !exists, becomes zero.
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

// Like copy_whole_rows(), by copies of 16 bytes of rows that begin at any element, such as those of
// images of odd width. Element `first` of row `row` lands `before` elements behind `shared`, which
// has to be as far from a multiple of 16 bytes as the element is in global memory. The same holds
// for the other rows, because PITCH and the distance of rows in global memory differ by a multiple
// of 16 bytes.
template <int THREADS, int ROWS, int COPIES, int PITCH, int LENGTH, class T>
device_inline void copy_uneven_rows(unsigned char* shared, const T* tensor, i64 stride, int row,
                                    int rows, int first, int before, bool exists) {
  constexpr int COPY = 16 / ROW_ELEMENT_BYTES, ROW = PITCH / ROW_ELEMENT_BYTES;
  static_assert(ROW_ELEMENT_BYTES == 2 && COPIES * COPY <= ROW);
#pragma unroll 2
  for (int i = thread_x(); i < ROWS * COPIES; i += THREADS) {
    const int number = i / COPIES, copy = i - number * COPIES;
    const int begin = before + number * ROW, place = begin / COPY * COPY + copy * COPY;
    const int at_row = row + number, at = first + place - begin;
    const bool in_rows = exists && static_cast<u32>(at_row) < static_cast<u32>(rows);
    const T* const from = tensor + (static_cast<i64>(at_row) * stride + at);
    unsigned char* const to = shared + place * ROW_ELEMENT_BYTES;
    if (in_rows && at < LENGTH && at > -COPY && (at < 0 || at > LENGTH - COPY)) {
      // The row begins or ends within the copy: an asynchronous copy cannot leave out its
      // beginning, and would end beyond the tensor after its last row.
#pragma unroll
      for (int element = 0; element < COPY; ++element)
        reinterpret_cast<unsigned short*>(to)[element] = static_cast<unsigned short>(
            load_short(from + element, static_cast<u32>(at + element) < static_cast<u32>(LENGTH)));
    } else {
      async_copy<16>(to, from, in_rows && at >= 0 && at < LENGTH);
    }
  }
}

// The 16-bit element at `at` in shared memory.
device_inline u32 short_at(const unsigned char* at) {
  return *reinterpret_cast<const unsigned short*>(at);
}
