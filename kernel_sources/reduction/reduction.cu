// c = alpha * reduce(a) + beta * c over some of a's axes.
//
// The TY threads of a result, in all blocks of the cluster if it has many elements, take vectors in
// turn, UNROLL at a time, image after image if images are reduced, too (!BATCH_KEPT). Each thread
// adds up its own elements, then the threads' sums are combined in a fixed order, so results are
// bit-identical and errors grow with the logarithm of the number of threads. The first block of a
// cluster stores the result.
#include "reduction/operation.cuh"

static_assert(UNROLL > 1);  // one vector at a time is only for unaligned memory

using A = STRIDES(A);
// Shared memory holds an exchange between a block's threads, and one between blocks.
constexpr int TOTALS = RESULTS * LANES;
constexpr u32 OWN_OFFSET = COMBINE_BYTES;
constexpr u32 ALL_OFFSET = OWN_OFFSET + (TOTALS * sizeof(compute_t) + 15) / 16 * 16;
static_assert(ALL_OFFSET + (LARGEST_CLUSTER * TOTALS * sizeof(compute_t) + 15) / 16 * 16 ==
                  SHARED_BYTES,
              "host and device must agree");

// The term that an element adds to sum number `sum`.
device_inline compute_t term(compute_t a, int sum) {
  if constexpr (OPERATION == NORM2) {
    const compute_t scaled = sum == 0 ? a : a * (sum == 1 ? UP : DOWN);
    return scaled * scaled;
  }
  return OPERATION == NORM1 || OPERATION == AMAX ? math_abs(a) : a;
}

// A thread's iteration over its vectors.
struct Walk {
  const element_t* image;
  index_t at, at_step;
  i64 image_step;  // elements from one image to the next

  // Every `stride`-th vector of the combined axes, from vector `first` on.
  device_inline Walk(const element_t* row, u32 first, u32 stride)
      : image(row), at(first), at_step(stride), image_step(0) {
    if constexpr (!BATCH_KEPT) {
      image += static_cast<i64>(at / COMBINED) * A::IMAGE;
      at %= COMBINED;
      image_step = static_cast<i64>(at_step / COMBINED) * A::IMAGE;
      at_step %= COMBINED;
    }
  }
  device_inline void next() {
    at += at_step;
    if constexpr (!BATCH_KEPT) {
      image += image_step;
      if (at >= COMBINED) {
        at -= COMBINED;
        image += A::IMAGE;
      }
    }
  }

  // Adds the next COUNT vectors, or as many as are left, to `sums`. They are combined with each
  // other first, which makes the chain of roundings COUNT times shorter.
  template <int COUNT, bool WHOLE>
  device_inline void add_to(compute_t (&sums)[SUMS][VECTOR], i64 left) {
    Pack<element_t, VECTOR> packs[COUNT];
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      if (WHOLE || u < left) packs[u] = load_pack<VECTOR>(A::at(image, at, 0), COUNT > 1);
      next();
    }
#pragma unroll
    for (int sum = 0; sum < SUMS; ++sum)
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) {
        compute_t joined = term(to_compute(packs[0].element[i]), sum);
#pragma unroll
        for (int u = 1; u < COUNT; ++u)
          if (WHOLE || u < left)
            joined = combine(joined, term(to_compute(packs[u].element[i]), sum));
        sums[sum][i] = combine(sums[sum][i], joined);
      }
  }
  // Adds all vectors: UNROLL at a time if they are aligned, else one at a time, element by element.
  device_inline void add_all(compute_t (&sums)[SUMS][VECTOR], i64 steps, bool aligned) {
    if (aligned) {
#pragma unroll 1
      for (; steps >= UNROLL; steps -= UNROLL) add_to<UNROLL, true>(sums, steps);
      if (steps > 0) add_to<UNROLL, false>(sums, steps);
    } else {
#pragma unroll 1
      for (; steps > 0; --steps) add_to<1, true>(sums, steps);
    }
  }
};

KILN_KERNEL(reduction, THREADS, MIN_BLOCKS, ReductionParams, params) {
  const u32 parts = PARTIAL ? params.parts : cluster_size();
  const u32 rank = PARTIAL ? block_x() % parts : cluster_rank();
  const u32 number = PARTIAL ? block_x() / parts : cluster_number();
  u64 result = static_cast<u64>(number) * RESULTS + thread_result();
  u64 n = BATCH_KEPT ? DIVIDE(ROWS_DIV_KEPT, result) : 0;
  const bool present = BATCH_KEPT ? n < static_cast<u64>(params.images) : result < KEPT;
  if (!present) result = n = 0;
  const Place kept = kept_place(static_cast<index_t>(result - n * KEPT));

  compute_t sums[SUMS][VECTOR];
#pragma unroll
  for (int sum = 0; sum < SUMS; ++sum)
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) sums[sum][i] = identity();
  if (present) {
    const u32 first = rank * TY + thread_ty();
    Walk walk(
        static_cast<const element_t*>(params.a) + static_cast<i64>(n) * A::IMAGE + A::kept(kept),
        first, parts * TY);
    walk.add_all(sums, params.steps + (first < params.rest ? 1 : 0),
                 is_aligned<element_t, VECTOR>(params.a));
  }

  compute_t totals[SUMS][LANES];
#pragma unroll
  for (int sum = 0; sum < SUMS; ++sum) {
#pragma unroll
    for (int i = 0; i < LANES; ++i) totals[sum][i] = sums[sum][i];
    if constexpr (INNER) {
#pragma unroll
      for (int i = 1; i < VECTOR; ++i) totals[sum][0] = combine(totals[sum][0], sums[sum][i]);
    }
    if (sum > 0) block_barrier();  // all threads have read the exchange, which is overwritten
    combine_ty<false>(totals[sum], 0, combine);
  }

  if constexpr (PARTIAL) {
    if (thread_ty() != 0 || !present) return;
    compute_t* const partials = static_cast<compute_t*>(params.partials);
    // FOLD neighboring sums are parts of one result.
    const index_t number_kept = static_cast<index_t>(result - n * KEPT);
    const u64 row = n * (KEPT / FOLD) + number_kept % (KEPT / FOLD);
    const u32 part = static_cast<u32>(number_kept / (KEPT / FOLD)) * parts + rank;
#pragma unroll
    for (int sum = 0; sum < SUMS; ++sum)
#pragma unroll
      for (int i = 0; i < LANES; ++i)
        partials[((row * SUMS + sum) * (FOLD * parts) + part) * LANES + i] = totals[sum][i];
    return;
  }

  if (CLUSTERED && parts > 1) {
    compute_t* const own = shared_array<compute_t, TOTALS>(OWN_OFFSET);
    compute_t* const all = shared_array<compute_t, LARGEST_CLUSTER * TOTALS>(ALL_OFFSET);
    const int mine = thread_result() * LANES;
#pragma unroll
    for (int sum = 0; sum < SUMS; ++sum) {
      if (thread_ty() == 0) {
#pragma unroll
        for (int i = 0; i < LANES; ++i) own[mine + i] = totals[sum][i];
      }
      cluster_barrier();
      if (rank == 0) gather_from_cluster<TOTALS>(own, all, parts);
      if (sum + 1 < SUMS) {
        cluster_barrier();  // other blocks read this block's shared memory until here
      } else {
        block_barrier();
        cluster_arrive();  // they wait at the end, and the first one does not wait for them here
      }
      if (rank != 0) continue;
#pragma unroll 4
      for (u32 other = 1; other < parts; ++other)
#pragma unroll
        for (int i = 0; i < LANES; ++i)
          totals[sum][i] = combine(totals[sum][i], all[other * TOTALS + mine + i]);
    }
  }
  if (rank == 0 && thread_ty() == 0 && present) store_result(params, n, kept, totals);
  if (CLUSTERED && parts > 1) cluster_wait();
}
