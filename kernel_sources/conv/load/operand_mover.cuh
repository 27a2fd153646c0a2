// How the threads of a slice (or of the block, if it has one slice) share a tile of an operand,
// [TILE_K][OUTER], and how one element is copied from global to shared memory.
#pragma once

#include "common/compute_type.cuh"
#include "target/async_copy.cuh"

// How lanes run, depending on the operand's layout in memory:
//   along the outer index   a warp takes one k and 32 outer indices in a turn
//   along the reduction     a warp takes 8 k of 4 outer indices
// A thread has one k in each pass, so the reduction index is decoded once per pass. Its outer
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

// The passes of a thread in share `share` of SHARES, which are loaded among products. With SHARES 1
// there is one share, of all passes.
template <int PASSES, int SHARES>
struct PassShare {
  int begin, end;
  device_inline explicit PassShare(int share)
      : begin(share * PASSES / SHARES), end((share + 1) * PASSES / SHARES) {}
};

// Copies an element asynchronously if its type is the compute type. Otherwise the element waits in
// a register until its tile may be written.
template <int COUNT>
struct Mover {
  element_t staged[ASYNC ? 1 : COUNT];

  // Copies if `active`, which is always true without AMONG_PRODUCTS.
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
