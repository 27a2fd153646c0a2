// The filter of a step as the left operand of products of warpgroups.
#pragma once

#include "conv/filter_loader.cuh"
#include "conv/warpgroup_tile.cuh"

// Planes of 16 bytes, a plane's lines one behind the other, as wgmma reads them.
struct FilterInPlanes {
  static constexpr int LINE = 16, PART = FILTER_PLANE * 16;
  static constexpr int BYTES = FILTER_PARTS * PART;
  static_assert(FILTER_PLANE == 0 || FILTER_PLANE >= FILTER_LINES);
  device_inline static int spread(int line) { return line; }
};

// Read where it lies.
struct LeftInPlace {
  using Layout = FilterInPlanes;
  static constexpr bool IN_PLACE = true;

  SharedMatrix filters, step;

  device_inline explicit LeftInPlace(const byte_t* first_slot)
      : filters(
            FILTER_ROWS_INNER
                ? SharedMatrix(first_slot + warpgroup_m() * (64 / VECTOR_ELEMENTS * Layout::PART),
                               128, Layout::PART)
                : SharedMatrix(first_slot + warpgroup_m() * (64 * 16), Layout::PART, 128)),
        step(filters) {}

  device_inline void load(int, int slot) { step = filters.moved(slot); }
  template <class Products, class Sum>
  device_inline void multiply(Products& products, Sum& sums, int, int fragment,
                              const SharedMatrix& right) const {
    constexpr int NEXT = FILTER_ROWS_INNER ? FRAGMENT_K * 16 : 2 * Layout::PART;
    products.template multiply<FILTER_ROWS_INNER>(sums, step.moved(fragment * NEXT), right);
  }
};

// By way of registers, which take it however it lies: while the products of one step run, the next
// one's is read.
struct LeftInRegisters {
  using Layout = FilterInLines;
  static constexpr bool IN_PLACE = false;

  FilterReader reader;
  Fragments filter[2][CHUNK_STEPS];  // sets, in which steps take turns

  device_inline explicit LeftInRegisters(const byte_t* first_slot)
      : reader(first_slot, warpgroup_position(), static_cast<int>(thread_x()) % 32) {}

  device_inline void load(int set, int slot) {
#pragma unroll
    for (int fragment = 0; fragment < CHUNK_STEPS; ++fragment)
      reader.load(filter[set][fragment], slot, fragment);
  }
  template <class Products, class Sum>
  device_inline void multiply(Products& products, Sum& sums, int set, int fragment,
                              const SharedMatrix& right) const {
    products.multiply(sums, filter[set][fragment].m[0], right);
  }
};

// The tensor cores transpose 16 bits alone.
template <bool IN_PLACE>
struct LeftChoice {
  using Type = LeftInPlace;
};
template <>
struct LeftChoice<false> {
  using Type = LeftInRegisters;
};
using LeftOperand = LeftChoice<(FILTER_PLANE > 0)>::Type;
