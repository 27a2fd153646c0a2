// How the threads of a block share operations that combine many elements into one result, and where
// in memory their vectors lie: the device's side of src/engines/common/block_layout.hpp.
//
// Axes of an image are either kept (each place along them has a result of its own) or combined.
// Vectors of VECTOR elements run along the innermost axis; if that is a combined one (INNER), the
// elements of a vector join in the end, else a thread holds LANES = VECTOR results at a time. TX
// threads lie side by side along what is kept, TY along what is combined, GROUPS times.
#pragma once

#include "common/magic.cuh"
#include "common/vector.cuh"
#include "target/cluster.cuh"
#include "target/shared_memory.cuh"

constexpr int THREADS = TX * TY * GROUPS;
constexpr int LANES = INNER ? 1 : VECTOR;
constexpr int RESULTS = TX * GROUPS;  // of a block; each is LANES results
static_assert(TX <= 32 && THREADS % 32 == 0);

device_inline int thread_tx() { return thread_x() % TX; }
device_inline int thread_ty() { return thread_x() / TX % TY; }
// The index of this thread's result among the block's RESULTS.
device_inline int thread_result() { return thread_x() / (TX * TY) * TX + thread_tx(); }

// A vector's place along its axes, outermost first; axes that the tensors lack are at 0.
struct Place {
  index_t at[4];
};

device_inline Place kept_place(index_t i) {
  Place place{};
  if constexpr (KEPT_AXES > 3) place.at[0] = DIVIDE(DIV_K123, i), i -= place.at[0] * DIV_K123;
  if constexpr (KEPT_AXES > 2) place.at[1] = DIVIDE(DIV_K23, i), i -= place.at[1] * DIV_K23;
  if constexpr (KEPT_AXES > 1) place.at[2] = DIVIDE(DIV_K3, i), i -= place.at[2] * DIV_K3;
  place.at[3] = i;
  return place;
}
device_inline Place combined_place(index_t i) {
  Place place{};
  if constexpr (COMBINED_AXES > 3) place.at[0] = DIVIDE(DIV_C123, i), i -= place.at[0] * DIV_C123;
  if constexpr (COMBINED_AXES > 2) place.at[1] = DIVIDE(DIV_C23, i), i -= place.at[1] * DIV_C23;
  if constexpr (COMBINED_AXES > 1) place.at[2] = DIVIDE(DIV_C3, i), i -= place.at[2] * DIV_C3;
  place.at[3] = i;
  return place;
}

// A tensor's strides, in elements: from image to image, and from vector to vector along the kept
// axes and the combined ones.
template <i64 N, i64 K0, i64 K1, i64 K2, i64 K3, i64 C0, i64 C1, i64 C2, i64 C3>
struct Strides {
  static constexpr i64 IMAGE = N;

  device_inline static offset_t kept(const Place& place) { return offset<K0, K1, K2, K3>(place); }
  device_inline static offset_t combined(index_t i) {
    return offset<C0, C1, C2, C3>(combined_place(i));
  }
  // The vector `i` + `more` of a row that begins at `row`. `more` is known at compile time: along a
  // single axis it becomes part of the instruction that loads.
  template <class T>
  device_inline static T* at(T* row, index_t i, int more) {
    if constexpr (COMBINED_AXES > 1) return row + combined(i + more);
    return row + static_cast<offset_t>(i) * static_cast<offset_t>(C3) + more * C3;
  }

 private:
  template <i64 S0, i64 S1, i64 S2, i64 S3>
  device_inline static offset_t offset(const Place& place) {
    return static_cast<offset_t>(place.at[0]) * static_cast<offset_t>(S0) +
           static_cast<offset_t>(place.at[1]) * static_cast<offset_t>(S1) +
           static_cast<offset_t>(place.at[2]) * static_cast<offset_t>(S2) +
           static_cast<offset_t>(place.at[3]) * static_cast<offset_t>(S3);
  }
};

#define STRIDES(T)                                                                                 \
  Strides<T##_STRIDE_N, T##_STRIDE_K0, T##_STRIDE_K1, T##_STRIDE_K2, T##_STRIDE_K3, T##_STRIDE_C0, \
          T##_STRIDE_C1, T##_STRIDE_C2, T##_STRIDE_C3>

// A thread's results are exchanged WORD elements (at most 16 bytes) at a time.
constexpr int LARGEST_WORD = 16 / sizeof(compute_t);
constexpr int WORD = LANES < LARGEST_WORD ? LANES : LARGEST_WORD;
constexpr int WORDS = LANES / WORD;
using Word = Pack<compute_t, WORD>;

constexpr int SIDE = TX * TY;  // threads that share results
constexpr int SIDE_WARPS = SIDE > 32 ? SIDE / 32 : 1;
// Bytes of shared memory for one combine_ty().
constexpr int COMBINE_BYTES = SIDE_WARPS > 1 ? THREADS / 32 * TX* LANES * sizeof(compute_t) : 0;

// Combines `values` over the TY threads that share results, always in the same order; every one of
// them gets the outcome or, not EVERYONE, those of their first warp alone. All threads of the block
// take part. `offset`: of COMBINE_BYTES of shared memory, free for another use after a barrier.
template <bool EVERYONE = true, class Combine>
device_inline void combine_ty(compute_t (&values)[LANES], u32 offset, const Combine& combine) {
#pragma unroll
  for (u32 mask = TX; mask < 32 && mask < SIDE; mask *= 2)
#pragma unroll
    for (int i = 0; i < LANES; ++i)
      values[i] = combine(values[i], warp_shuffle_xor(values[i], mask));
  if constexpr (SIDE_WARPS > 1) {
    // [warp][word][tx]
    Word* const shared = shared_array<Word, THREADS / 32 * TX * WORDS>(offset);
    const u32 warp = thread_x() / 32;
    if (thread_x() % 32 < TX) {
#pragma unroll
      for (int i = 0; i < WORDS; ++i) {
        Word word;
#pragma unroll
        for (int j = 0; j < WORD; ++j) word.element[j] = values[i * WORD + j];
        shared[(warp * WORDS + i) * TX + thread_tx()] = word;
      }
    }
    block_barrier();
    if (!EVERYONE && warp % SIDE_WARPS != 0) return;
    // Of many warps each takes but a few, as many as there are threads of a result in it.
    constexpr int SHARING = SIDE_WARPS > 8 ? (32 / TX < SIDE_WARPS ? 32 / TX : SIDE_WARPS) : 1;
    const Word* const first = shared + warp / SIDE_WARPS * SIDE_WARPS * (WORDS * TX) + thread_tx();
    const int from = thread_x() % 32 / TX % SHARING;
#pragma unroll
    for (int i = 0; i < WORDS; ++i) {
      Word sum = first[(from * WORDS + i) * TX];
#pragma unroll 4
      for (int other = SHARING; other < SIDE_WARPS; other += SHARING) {
        const Word word = first[((from + other) * WORDS + i) * TX];
#pragma unroll
        for (int j = 0; j < WORD; ++j) sum.element[j] = combine(sum.element[j], word.element[j]);
      }
#pragma unroll
      for (int j = 0; j < WORD; ++j) values[i * WORD + j] = sum.element[j];
    }
#pragma unroll
    for (u32 mask = TX; mask < TX * SHARING; mask *= 2)
#pragma unroll
      for (int i = 0; i < LANES; ++i)
        values[i] = combine(values[i], warp_shuffle_xor(values[i], mask));
  }
}

// Copies `count` values at `mine` in the shared memory of every block of a cluster to `here`, in
// the order of ranks. All threads take part; what was written to `mine` before may be read through
// cluster_shared() from a cluster_barrier() on, and `here` after the block's next barrier.
template <int COUNT>
device_inline void gather_from_cluster(compute_t* mine, compute_t* here, u32 blocks) {
#pragma unroll 1
  for (u32 i = thread_x(); i < blocks * COUNT; i += THREADS)
    here[i] = cluster_shared(mine, i / COUNT)[i % COUNT];
}
