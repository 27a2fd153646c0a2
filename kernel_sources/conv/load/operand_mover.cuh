// How the threads of a slice (a block, unless several slices share its tile) walk a tile of an
// operand, [TILE_K][OUTER], and the way of one element from global to shared memory.
#pragma once

#include "common/compute_type.cuh"
#include "target/async_copy.cuh"

// By how the operand lies in memory:
//   lanes along the outer index   a warp takes one k, 32 outer a turn
//   lanes along the reduction     a warp takes 8 k of 4 outer
// A thread keeps one k a pass, so the reduction index is taken apart once a pass, and its outer
// indices are STEP apart and the same in every pass.
template <int OUTER, bool ON_K>
struct Lanes {
  static constexpr int K_STEP = ON_K ? 8 : SLICE_THREADS / 32;
  static constexpr int STEP = ON_K ? SLICE_THREADS / 8 : 32;
  static constexpr int PASSES = TILE_K / K_STEP;
  static constexpr int COUNT = OUTER / STEP;  // outer indices of a thread
  static_assert(PASSES * K_STEP == TILE_K && COUNT * STEP == OUTER);

  device_inline static int first_k(int thread) { return ON_K ? thread % 8 : thread / 32; }
  device_inline static int first_outer(int thread) { return ON_K ? thread / 8 : thread % 32; }
};

// A thread's share of its passes, of SHARES that are loaded among products, or of all: 1.
template <int PASSES, int SHARES>
struct PassShare {
  int begin, end;
  device_inline explicit PassShare(int share)
      : begin(share * PASSES / SHARES), end((share + 1) * PASSES / SHARES) {}
};

// Where the element type is the compute type, an asynchronous copy; otherwise the element waits in
// a register until its tile may be written.
template <int COUNT>
struct Mover {
  element_t staged[ASYNC ? 1 : COUNT];

  // Where `active`, which all are unless AMONG_PRODUCTS.
  template <bool AMONG_PRODUCTS = false>
  device_inline void load(int index, compute_t* shared, const element_t* global, bool valid,
                          bool active = true) {
    if constexpr (AMONG_PRODUCTS) {
      async_copy_if<sizeof(element_t)>(active, shared, global, valid);
    } else if constexpr (ASYNC) {
      async_copy<sizeof(element_t)>(shared, global, valid);
    } else {
      staged[index] = valid ? *global : element_t{};
    }
  }
  device_inline void store(int index, compute_t* shared) const {
    if constexpr (!ASYNC) *shared = to_compute(staged[index]);
  }
};
