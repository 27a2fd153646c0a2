// c = alpha * reduce(a) + beta * c over some of a's axes.
//
// The TY threads of a result, and the blocks of a cluster where its elements are many, take every
// so-many-th vector, UNROLL at a time, image after image where images are reduced too
// (!BATCH_KEPT). Each adds up on its own, and all of them in a fixed order, so that the bits depend
// on no timing and errors grow with the logarithm of the threads. The first block of a cluster has
// the last word.
#include "common/block_layout.cuh"
#include "reduction/reduction_params.h"
#include "target/math.cuh"

// With the values of kilnReduceTensorOp_t.
enum ReduceOperation { SUM = 1100, MEAN, MAX, MIN, NORM2, MUL, NORM1, AMAX };

static_assert(UNROLL > 1);  // a walk one vector at a time is the one for unaligned memory

using A = STRIDES(A);
using C = STRIDES(C);

// Shared memory: an exchange between a block's threads, one between blocks.
constexpr int TOTALS = RESULTS * LANES;
constexpr u32 OWN_OFFSET = COMBINE_BYTES;
constexpr u32 ALL_OFFSET = OWN_OFFSET + (TOTALS * sizeof(compute_t) + 15) / 16 * 16;
static_assert(ALL_OFFSET + (LARGEST_CLUSTER * TOTALS * sizeof(compute_t) + 15) / 16 * 16 ==
                  SHARED_BYTES,
              "host and device must agree");

// A norm adds up squares three times (SUMS): as they are, of elements scaled up, of elements scaled
// down. Whatever the elements, one of the sums neither overflows nor loses what counts; sums beside
// it may, and are not looked at. f16 needs no more than the first.
static_assert(SUMS == 1 || OPERATION == NORM2);
constexpr bool SINGLE = sizeof(compute_t) == 4;
constexpr compute_t UP = SINGLE ? compute_t(0x1p100) : compute_t(0x1p700);
constexpr compute_t DOWN = SINGLE ? compute_t(0x1p-100) : compute_t(0x1p-700);
constexpr compute_t LEAST = SINGLE ? compute_t(0x1p-80) : compute_t(0x1p-900);  // of plain squares

device_inline compute_t norm_of(const compute_t (&sums)[SUMS]) {
  if constexpr (SUMS > 1) {
    if (!(sums[0] < math_infinity<compute_t>())) return math_sqrt(sums[SUMS - 1]) * UP;
    if (sums[0] < LEAST) return math_sqrt(sums[1]) * DOWN;
  }
  return math_sqrt(sums[0]);
}

// Of nothing.
device_inline compute_t identity() {
  if constexpr (OPERATION == MUL) return 1;
  if constexpr (OPERATION == MAX) return -math_infinity<compute_t>();
  if constexpr (OPERATION == MIN) return math_infinity<compute_t>();
  return 0;
}
// NaN beside anything is NaN: a comparison with it is false, and b is taken unless a is the NaN.
device_inline compute_t combine(compute_t a, compute_t b) {
  if constexpr (OPERATION == MAX || OPERATION == AMAX) return a > b || a != a ? a : b;
  if constexpr (OPERATION == MIN) return a < b || a != a ? a : b;
  if constexpr (OPERATION == MUL) return a * b;
  return a + b;
}
// What an element adds to sum number `sum`.
device_inline compute_t term(compute_t a, int sum) {
  if constexpr (OPERATION == NORM2) {
    const compute_t scaled = sum == 0 ? a : a * (sum == 1 ? UP : DOWN);
    return scaled * scaled;
  }
  return OPERATION == NORM1 || OPERATION == AMAX ? math_abs(a) : a;
}

// One thread's way through its vectors.
struct Walk {
  const element_t* image;
  index_t at, at_step;
  i64 image_step;  // elements

  // From vector `first` of what is combined, every `stride`-th.
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

  // The next COUNT vectors, or as many of them as are left, into `sums`; first among each other,
  // which makes the chain of roundings COUNT times as short.
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
  // Whole vectors many at a time; elements of vectors that are not aligned, a vector at a time.
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
  const u32 rank = cluster_rank(), parts = cluster_size();
  u64 result = static_cast<u64>(cluster_number()) * RESULTS + thread_result();
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
    if (sum > 0) block_barrier();  // until then the last exchange is read
    combine_ty(totals[sum], 0, combine);
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
      cluster_barrier();  // a block's memory is read until then
      if (rank != 0) continue;
#pragma unroll 1
      for (u32 other = 1; other < parts; ++other)
#pragma unroll
        for (int i = 0; i < LANES; ++i)
          totals[sum][i] = combine(totals[sum][i], all[other * TOTALS + mine + i]);
    }
    if (rank != 0) return;
  }
  if (thread_ty() != 0 || !present) return;

  const compute_t alpha = static_cast<compute_t>(params.alpha);
  const compute_t beta = static_cast<compute_t>(params.beta);
  element_t* const c =
      static_cast<element_t*>(params.c) + static_cast<i64>(n) * C::IMAGE + C::kept(kept);
#pragma unroll
  for (int i = 0; i < LANES; ++i) {
    compute_t value = totals[0][i];
    if constexpr (OPERATION == MEAN) value *= static_cast<compute_t>(params.share);
    if constexpr (OPERATION == NORM2) {
      compute_t of_result[SUMS];
#pragma unroll
      for (int sum = 0; sum < SUMS; ++sum) of_result[sum] = totals[sum][i];
      value = norm_of(of_result);
    }
    value *= alpha;
    element_t* const to = c + static_cast<i64>(i) * C_STRIDE_LANE;
    if (beta != compute_t(0)) value += beta * to_compute(*to);
    *to = from_compute<element_t>(value);
  }
}
