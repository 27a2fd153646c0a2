// How the threads of a block share an operation that combines many elements into one result, and
// where their vectors are in memory. src/engines/common/block_layout.hpp is the host's side.
//
// An axis is either kept (every index along it has its own result) or combined. Vectors of VECTOR
// elements run along the innermost axis. If that axis is combined (INNER), the elements of a vector
// are combined at the end; else a thread holds LANES = VECTOR results at a time. A block has GROUPS
// groups of TX x TY threads: TX threads along the kept axes, TY along the combined ones.
#pragma once

#include "common/magic.cuh"
#include "common/vector.cuh"
#include "target/cluster.cuh"
#include "target/shared_memory.cuh"

constexpr int THREADS = TX * TY * GROUPS;
constexpr int LANES = INNER ? 1 : VECTOR;
constexpr int RESULTS = TX * GROUPS;  // of a block; each has LANES elements
static_assert(TX <= 32 && THREADS % 32 == 0);

device_inline int thread_tx() { return thread_x() % TX; }
device_inline int thread_ty() { return thread_x() / TX % TY; }
// The index of this thread's result among the block's RESULTS.
device_inline int thread_result() { return thread_x() / (TX * TY) * TX + thread_tx(); }

// A vector's index along each of its axes, outermost first; 0 for axes that the tensors lack.
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

// A tensor's strides in elements: between images, and between vectors along the kept axes and the
// combined axes.
template <i64 N, i64 K0, i64 K1, i64 K2, i64 K3, i64 C0, i64 C1, i64 C2, i64 C3>
struct Strides {
  static constexpr i64 IMAGE = N;

  device_inline static offset_t kept(const Place& place) { return offset<K0, K1, K2, K3>(place); }
  device_inline static offset_t combined(index_t i) {
    return offset<C0, C1, C2, C3>(combined_place(i));
  }
  // The address of vector `i` + `more` of a row that begins at `row`. `more` is a compile-time
  // constant: along a single axis, it becomes part of the load's address operand.
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

// Threads exchange their results WORD elements (at most 16 bytes) at a time.
constexpr int LARGEST_WORD = 16 / sizeof(compute_t);
constexpr int WORD = LANES < LARGEST_WORD ? LANES : LARGEST_WORD;
constexpr int WORDS = LANES / WORD;
using Word = Pack<compute_t, WORD>;

constexpr int SIDE = TX * TY;  // threads that share results
constexpr int SIDE_WARPS = SIDE > 32 ? SIDE / 32 : 1;
// Bytes of shared memory for one combine_ty().
constexpr int COMBINE_BYTES = SIDE_WARPS > 1 ? THREADS / 32 * TX* LANES * sizeof(compute_t) : 0;

// Combines `values` over the TY threads that share results, always in the same order. All of these
// threads get the outcome; without EVERYONE, only those in the first warp of each group do. All
// threads of the block must take part. `offset` is that of COMBINE_BYTES of shared memory, which
// may be reused after a barrier.
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
    // With many warps, the 32 / TX threads of a warp that share a result divide the warps' values
    // among them, and combine their parts by shuffles.
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

// Copies COUNT values at `mine` from the shared memory of each of the cluster's `blocks` blocks to
// `here`, in the order of ranks. All threads must take part. The caller must call cluster_barrier()
// between writing `mine` and this, and a block barrier before it reads `here`.
template <int COUNT>
device_inline void gather_from_cluster(compute_t* mine, compute_t* here, u32 blocks) {
  // Another block's memory is far away, so a thread asks for several words at once. Clusters have
  // at most 16 blocks.
  constexpr int MOST = (16 * COUNT + THREADS - 1) / THREADS, AT_ONCE = MOST < 8 ? MOST : 8;
  const u32 all = blocks * COUNT;
#pragma unroll 1
  for (u32 first = thread_x(); first < all; first += AT_ONCE * THREADS) {
    compute_t words[AT_ONCE];
#pragma unroll
    for (int u = 0; u < AT_ONCE; ++u)
      if (const u32 i = first + u * THREADS; i < all)
        words[u] = cluster_shared(mine, i / COUNT)[i % COUNT];
#pragma unroll
    for (int u = 0; u < AT_ONCE; ++u)
      if (const u32 i = first + u * THREADS; i < all) here[i] = words[u];
  }
}
