// Pixels of channels-last tensors of which a thread reads one channel or two, COUNT, that begin at
// any multiple of their size; zeros where there is no pixel.
#pragma once

#include "common/compute_type.cuh"
#include "common/vector.cuh"

template <class T, int COUNT, bool NARROW = sizeof(T) == 2>
struct NarrowPixel {
  Pack<T, COUNT> value = {};
  device_inline void read(const T* from) { value = *reinterpret_cast<const Pack<T, COUNT>*>(from); }
  device_inline compute_t of(int c) const { return to_compute(value.element[c]); }
};

// Elements of 16 bits stay together until they are used: zeros are then one move a pixel, where
// halves of a register take four.
template <class T, int COUNT>
struct NarrowPixel<T, COUNT, true> {
  u32 value = 0;
  device_inline void read(const T* from) {
    if constexpr (COUNT == 2)
      value = *reinterpret_cast<const u32*>(from);
    else
      value = from->bits;
  }
  device_inline compute_t of(int c) const {
    T element;
    element.bits = static_cast<unsigned short>(value >> 16 * c);
    return to_compute(element);
  }
};

// Reads a row of pixels from column `first` on, which `line` points to; `inside`: whether the
// tensor has the row, of WIDTH pixels that are STRIDE elements apart.
template <int WIDTH, i64 STRIDE, int COUNT, int COLUMNS>
device_inline void read_row(const element_t* line, bool inside, int first,
                            NarrowPixel<element_t, COUNT> (&row)[COLUMNS]) {
#pragma unroll
  for (int x = 0; x < COLUMNS; ++x) {
    row[x] = {};
    if (inside && static_cast<u32>(first + x) < static_cast<u32>(WIDTH))
      row[x].read(line + x * STRIDE);
  }
}
