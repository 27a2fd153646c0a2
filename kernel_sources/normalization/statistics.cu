// The totals of each channel (totals.cuh): the first step of training and of its gradient.
//
// Forward, a thread joins UNROLL vectors at a time: their own mean, the squares of deviations from
// it, then Chan's formula with what it has. So nothing large cancels, whatever the first element
// is. Backward, sums of UNROLL vectors are added up.
//
// The blocks of a cluster share channels and store results; or, PARTIAL, `parts` blocks share them
// and leave totals in the workspace for finish.cu.
//
// STORES_GRADIENT: the totals are those of gradients as they are stored, dx in place of dy.
#include "normalization/totals.cuh"

using Walk = WalkFrom<false>;

constexpr int TOTALS = RESULTS * LANES * 2;
constexpr u32 OWN_OFFSET = COMBINE_BYTES;
constexpr u32 ALL_OFFSET = OWN_OFFSET + (TOTALS * sizeof(compute_t) + 15) / 16 * 16;
static_assert(ALL_OFFSET + (LARGEST_CLUSTER * TOTALS * sizeof(compute_t) + 15) / 16 * 16 ==
                  SHARED_BYTES,
              "host and device must agree");

struct Sums : RunningMoments {
  // STORES_GRADIENT: `to` takes them from `walk` on.
  template <int COUNT, bool WHOLE, class Map>
  device_inline void add_gradients(const Pack<element_t, VECTOR> (&x)[COUNT],
                                   const Pack<element_t, VECTOR> (&dy)[COUNT],
                                   const Pack<element_t, VECTOR> (&residual)[COUNT], Map& map,
                                   i64 left, element_t* to, Walk walk) {
    compute_t sum[LANES], products[LANES];
#pragma unroll
    for (int i = 0; i < LANES; ++i) sum[i] = products[i] = 0;
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      if (WHOLE || u < left) {
        compute_t gradients[VECTOR];
        map.seat(walk);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
          const int lane = lane_of(i);
          const compute_t value = to_compute(x[u].element[i]);
          compute_t g =
              map.gradient(to_compute(dy[u].element[i]), value, i,
                           HAS_RESIDUAL ? to_compute(residual[u].element[i]) : compute_t(0));
          if constexpr (STORES_GRADIENT) g = to_compute(from_compute<element_t>(g));
          gradients[i] = g;
          sum[lane] += g;
          products[lane] = math_fma(g, map.along(value, i), products[lane]);
        }
        if constexpr (STORES_GRADIENT)
          store_vector<VECTOR>(walk.template in<Out>(to), COUNT > 1, gradients);
      }
      if constexpr (STORES_GRADIENT || OWN_STATISTICS) walk.next();
    }
#pragma unroll
    for (int i = 0; i < LANES; ++i) first[i] += sum[i], second[i] += products[i];
  }
};

struct Reading {
  const element_t *x, *dy, *residual;
  element_t* out;
  bool aligned;
  device_inline Reading(const NormalizationParams& params, const Channels& channels)
      : x(row_of<X>(params.x, channels)),
        dy(row_of<DY>(params.dy, channels)),
        residual(row_of<R>(params.residual, channels)),
        out(row_of<Out>(params.out, channels)),
        aligned(is_aligned<element_t, VECTOR>(params.x) &&
                (!STORES_GRADIENT || is_aligned<element_t, VECTOR>(params.out)) &&
                (!BACKWARD || is_aligned<element_t, VECTOR>(params.dy)) &&
                (!HAS_RESIDUAL || is_aligned<element_t, VECTOR>(params.residual))) {}
};

// Adds the next COUNT vectors, or as many as are left.
template <int COUNT, bool WHOLE, class Extra>
device_inline void add_next(Sums& sums, const Reading& from, Walk& walk, Extra& extra, i64 left) {
  Pack<element_t, VECTOR> x[COUNT];
  load_packs<COUNT, WHOLE, X>(x, from.x, walk, left);
  if constexpr (BACKWARD) {
    Pack<element_t, VECTOR> dy[COUNT], residual[COUNT];
    load_packs<COUNT, WHOLE, DY>(dy, from.dy, walk, left);
    if constexpr (HAS_RESIDUAL && ACTIVATION != Act::IDENTITY)
      load_packs<COUNT, WHOLE, R>(residual, from.residual, walk, left);
    sums.template add_gradients<COUNT, WHOLE>(x, dy, residual, extra, left, from.out, walk);
  } else {
    sums.template add_moments<COUNT, WHOLE>(x, extra, left);
  }
#pragma unroll
  for (int u = 0; u < COUNT; ++u) walk.next();
}

template <class Extra>
device_inline void add_all(Sums& sums, const Reading& from, Walk walk, Extra extra, i64 steps) {
  if (from.aligned) {
#pragma unroll 1
    for (; steps >= UNROLL; steps -= UNROLL) add_next<UNROLL, true>(sums, from, walk, extra, steps);
    if (steps > 0) add_next<UNROLL, false>(sums, from, walk, extra, steps);
  } else {
#pragma unroll 1
    for (; steps > 0; --steps) add_next<1, true>(sums, from, walk, extra, steps);
  }
}

KILN_KERNEL(statistics, THREADS, MIN_BLOCKS, NormalizationParams, params) {
  const u32 parts = PARTIAL ? params.parts : cluster_size();
  const u32 rank = PARTIAL ? block_x() % parts : cluster_rank();
  const Channels channels(PARTIAL ? block_x() / parts : cluster_number());

  Sums sums;
  const u32 first = rank * TY + thread_ty();
  const i64 steps = params.steps + (first < params.rest ? 1 : 0);
  if (channels.present) {
    const Reading from(params, channels);
    const Walk walk(first, parts * TY, params.images);
    if constexpr (OWN_STATISTICS)
      add_all(sums, from, walk, OwnMap(params, channels), steps);
    else if constexpr (BACKWARD)
      add_all(sums, from, walk, Map(params, channels), steps);
    else
      add_all(sums, from, walk, Shift(params, channels), steps);
  }
  combine_threads(sums, static_cast<compute_t>(sums.n), elements_of_part(params, rank));

  const bool speaks = thread_ty() == 0 && channels.present;
  if constexpr (PARTIAL) {
    if (!speaks) return;
    compute_t* const to = static_cast<compute_t*>(params.partials) +
                          (static_cast<u64>(channels.group) * parts + rank) * (2 * LANES);
#pragma unroll
    for (int i = 0; i < LANES; ++i) to[i] = sums.first[i], to[LANES + i] = sums.second[i];
    return;
  }
  if (CLUSTERED && parts > 1) {
    compute_t* const own = shared_array<compute_t, TOTALS>(OWN_OFFSET);
    compute_t* const all = shared_array<compute_t, LARGEST_CLUSTER * TOTALS>(ALL_OFFSET);
    const int mine = thread_result() * LANES * 2;
    if (thread_ty() == 0) {
#pragma unroll
      for (int i = 0; i < LANES; ++i)
        own[mine + i] = sums.first[i], own[mine + LANES + i] = sums.second[i];
    }
    cluster_barrier();
    if (rank == 0) gather_from_cluster<TOTALS>(own, all, parts);
    block_barrier();
    cluster_arrive();  // they wait at the end, and the first one does not wait for them here
    if (rank == 0) {
      const Totals joined =
          joined_parts<TOTALS>(params, all, parts, mine, static_cast<compute_t>(params.share));
      if (speaks) store_totals(params, channels, joined);
    }
    cluster_wait();
    return;
  }
  if (speaks) store_totals(params, channels, sums);
}
