// The filter of a step as operand A of wgmma.
#pragma once

#include "conv/halo/filter_loader.cuh"
#include "conv/halo/warpgroup_tile.cuh"

// The layout that wgmma reads: planes of 16 bytes of each line, and the lines of a plane are
// contiguous.
struct FilterInPlanes {
  static constexpr int LINE = 16, PART = FILTER_PLANE * 16;
  static constexpr int BYTES = FILTER_PARTS * PART;
  static_assert(FILTER_PLANE == 0 || FILTER_PLANE >= FILTER_LINES);
  device_inline static int spread(int line) { return line; }
};

// Operand A in shared memory.
struct LeftInPlace {
  using Layout = FilterInPlanes;
  static constexpr bool IN_PLACE = true;
  static constexpr int HALVES = 1;  // groups of products in a step

  SharedMatrix filters, step;

  device_inline explicit LeftInPlace(const byte_t* first_slot)
      : filters(
            FILTER_ROWS_INNER
                ? SharedMatrix(first_slot + warpgroup_m() * (64 / VECTOR_ELEMENTS * Layout::PART),
                               128, Layout::PART)
                : SharedMatrix(first_slot + warpgroup_m() * (64 * 16), Layout::PART, 128)),
        step(filters) {}

  // The functions below use the step whose filter is in `slot`.
  device_inline void start(int slot) { step = filters.moved(slot); }
  device_inline void load(int) {}
  template <class Products, class Sums>
  device_inline void multiply(Products& products, Sums& sums, int fragment,
                              const SharedMatrix& right, bool add) const {
    constexpr int NEXT = FILTER_ROWS_INNER ? FRAGMENT_K * 16 : 2 * Layout::PART;
    products.template multiply<FILTER_ROWS_INNER, 0>(sums, step.moved(fragment * NEXT), right, add);
  }
};

// Operand A in registers, for any layout: while the products of one half of a step run, the next
// half is read.
struct LeftInRegisters {
  using Layout = FilterInLines;
  static constexpr bool IN_PLACE = false;
  static constexpr int HALVES = 2, HALF_STEP = CHUNK_STEPS / HALVES;
  static_assert(CHUNK_STEPS % HALVES == 0);

  FilterReader reader;
  Fragments filter[CHUNK_STEPS];
  int step = 0;

  device_inline explicit LeftInRegisters(const byte_t* first_slot)
      : reader(first_slot, warpgroup_position(), static_cast<int>(thread_x()) % 32) {}

  device_inline void start(int slot) { step = slot; }
  device_inline void load(int half) {
#pragma unroll
    for (int fragment = half * HALF_STEP; fragment < (half + 1) * HALF_STEP; ++fragment)
      reader.load(filter[fragment], step, fragment);
  }
  template <class Products, class Sums>
  device_inline void multiply(Products& products, Sums& sums, int fragment,
                              const SharedMatrix& right, bool add) const {
    products.template multiply<false, 0>(sums, filter[fragment].m[0], right, add);
  }
};

// wgmma transposes a shared-memory operand only for 16-bit types.
template <bool IN_PLACE>
struct LeftChoice {
  using Type = LeftInPlace;
};
template <>
struct LeftChoice<false> {
  using Type = LeftInRegisters;
};
using LeftOperand = LeftChoice<(FILTER_PLANE > 0)>::Type;
