// Normalizations by the statistics of rows, the elements that share a mean and a deviation: the
// channels of a pixel, or a group of an image's channels. y with mean and deviation, or dx and
// dresidual.
//
// The TY threads of a row, in all blocks of its cluster, take its vectors in turn, UNROLL at a
// time. Their totals become those of the row (running_totals.cuh); then they store the same
// vectors: out of registers if they have at most UNROLL each (HELD), else read again, the last ones
// first, which the L2 cache may still have.
//
// Where rows are too few for all of the chip, and with workspace, the same is done in stages:
// TOTALS_ALONE of `parts` blocks a row, which rows_finish.cu joins, and RESULTS_ALONE of as many.
//
// Shared memory: the exchange of combine_threads(); then, of clusters and BY_CHANNEL, the block's
// totals [TOTALS], those of all blocks [block][TOTALS], and what rows become of them [row][2].
#include "normalization/row.cuh"

constexpr int SLOTS = RESULTS * LANES;
constexpr int TOTALS = SLOTS * 2;
constexpr u32 OWN_OFFSET = COMBINE_BYTES;
constexpr u32 ALL_OFFSET = OWN_OFFSET + in_words(TOTALS * sizeof(compute_t));
constexpr u32 ROWS_OFFSET = ALL_OFFSET + in_words(LARGEST_CLUSTER * TOTALS * sizeof(compute_t));
static_assert(ROWS_OFFSET + in_words(TOTALS * sizeof(compute_t)) == SHARED_BYTES,
              "host and device must agree");

struct RowSums : RunningMoments {
  template <int COUNT, bool WHOLE>
  device_inline void add(const Part& part, const Vectors<COUNT>& from, index_t at, index_t step,
                         const Shift& shift, const Statistics& given, i64 left) {
    if constexpr (BACKWARD)
      part.add<COUNT, WHOLE>(*this, from, at, step, given, left);
    else
      add_moments<COUNT, WHOLE>(from.x, shift, left);
  }
};

// BY_CHANNEL: joins the totals of channels, `all` of `parts` blocks, to those of rows, and puts
// their outcomes where their shifts were in shared memory. The first block stores statistics.
device_inline void join_channels(const NormalizationParams& params, const Row& row, compute_t* all,
                                 u32 parts, u32 rank) {
  compute_t* const outcomes = shared_array<compute_t, TOTALS>(ROWS_OFFSET);
  // Each channel's totals of all blocks go where those of the first block are; a thread a channel.
#pragma unroll 1
  for (int slot = static_cast<int>(thread_x()); slot < SLOTS; slot += THREADS) {
    const int mine = slot / LANES * (LANES * 2) + slot % LANES;
    const TotalsOf<1> joined = joined_parts<TOTALS, 1>(
        params, all, parts, mine, static_cast<compute_t>(params.share * GROUP));
    all[mine] = joined.first[0], all[mine + LANES] = joined.second[0];
  }
  block_barrier();
  const compute_t n = static_cast<compute_t>(static_cast<i64>(COMBINED) * ELEMENTS);
  for (u32 group = thread_x(); group < CHUNK * LANES / GROUP; group += THREADS) {
    const i64 channel = static_cast<i64>(row.first) * LANES + group * GROUP;
    if (channel >= static_cast<i64>(KEPT) * LANES) break;
    const auto first_at = [&](u32 c) {
      const u32 slot = group * GROUP + c;
      return slot / LANES * (LANES * 2) + slot % LANES;
    };
    const compute_t* const scale = static_cast<const compute_t*>(params.scale);
    compute_t first = 0, second = 0;
#pragma unroll 4
    for (u32 c = 0; c < GROUP; ++c) {
      const compute_t weight = !BACKWARD   ? compute_t(1) / compute_t(GROUP)
                               : HAS_SCALE ? scale[channel + c]
                                           : compute_t(1);
      first = math_fma(all[first_at(c)], weight, first);
      if constexpr (BACKWARD) second = math_fma(all[first_at(c) + LANES], weight, second);
    }
    if constexpr (!BACKWARD) {
#pragma unroll 4
      for (u32 c = 0; c < GROUP; ++c) {
        const compute_t d = all[first_at(c)] - first;
        second +=
            CENTERED ? math_fma(d * d, n, all[first_at(c) + LANES]) : all[first_at(c) + LANES];
      }
    }
    const i64 at = row.image * (KEPT * LANES / GROUP) + channel / GROUP;
    const compute_t deviation =
        BACKWARD ? static_cast<const compute_t*>(params.deviation)[at] : compute_t(0);
    const Outcome outcome = outcome_of(params, first, second, outcomes[group * 2], deviation);
    outcomes[group * 2] = outcome.first;
    outcomes[group * 2 + 1] = outcome.second;
    if (!BACKWARD && rank == 0) store_statistics(params, at, outcome);
  }
  block_barrier();
}

// Adds up a thread's vectors; HELD, they stay in `vectors`.
device_inline void add_all(RowSums& sums, Vectors<UNROLL>& vectors, const Part& part, index_t first,
                           index_t step, i64 steps, const Shift& shift, const Statistics& given) {
  if constexpr (HELD) {
    if (steps <= 0) return;
    part.load<UNROLL, false>(vectors, first, step, steps);
    sums.add<UNROLL, false>(part, vectors, first, step, shift, given, steps);
    return;
  }
  index_t at = first;
  i64 left = steps;
#pragma unroll 1
  for (; left >= UNROLL; left -= UNROLL, at += UNROLL * step) {
    part.load<UNROLL, true>(vectors, at, step, left);
    sums.add<UNROLL, true>(part, vectors, at, step, shift, given, left);
  }
  if (left > 0) {
    part.load<UNROLL, false>(vectors, at, step, left);
    sums.add<UNROLL, false>(part, vectors, at, step, shift, given, left);
  }
}

// Stores a thread's vectors; those that are read again, the last ones first.
device_inline void store_all(Vectors<UNROLL>& vectors, const Part& part, index_t first,
                             index_t step, i64 steps, const Statistics& statistics,
                             const Totals& means) {
  NoColumns none;
  if constexpr (HELD) {
    if (steps > 0) part.store<UNROLL, false>(vectors, first, step, statistics, means, steps, none);
    return;
  }
  index_t at = first + static_cast<index_t>(steps) * step;
  i64 left = steps;
#pragma unroll 1
  for (; left >= UNROLL; left -= UNROLL) {
    at -= UNROLL * step;
    part.load<UNROLL, true>(vectors, at, step, left);
    part.store<UNROLL, true>(vectors, at, step, statistics, means, left, none);
  }
  if (left > 0) {
    part.load<UNROLL, false>(vectors, first, step, left);
    part.store<UNROLL, false>(vectors, first, step, statistics, means, left, none);
  }
}

// TOTALS_ALONE: leaves those of a block for rows_finish.cu, and what they are relative to.
device_inline void leave_totals(const NormalizationParams& params, const Row& row,
                                const Totals& totals, const Shift& shift, u32 rank) {
  if (thread_ty() != 0 || !row.present) return;
  const Partials partials(params);
#pragma unroll
  for (int i = 0; i < LANES; ++i) {
    const u64 slot = (static_cast<u64>(row.image) * KEPT + row.kept) * LANES + i;
    compute_t* const to = partials.totals(slot, rank);
    to[0] = totals.first[i], to[1] = totals.second[i];
    if (rank == 0 && slot % GROUP == 0) partials.row(slot / GROUP)[0] = shift.value[i];
  }
}

KILN_KERNEL(rows, THREADS, MIN_BLOCKS, NormalizationParams, params) {
  constexpr bool STAGED = STAGE != ALL_AT_ONCE;
  const u32 parts = STAGED ? params.parts : cluster_size();
  // The results begin where the totals have ended.
  const u32 block =
      STAGE == RESULTS_ALONE ? static_cast<u32>(params.rows) * parts - 1 - block_x() : block_x();
  const u32 rank = STAGED ? block % parts : cluster_rank();
  const Row row(params, STAGED ? block / parts : cluster_number());
  const Part part(params, row);
  const u32 first = rank * TY + thread_ty();
  const index_t step = parts * TY;
  const i64 steps = row.present ? params.steps + (first < params.rest ? 1 : 0) : 0;

  Statistics statistics;
#pragma unroll
  for (int i = 0; i < LANES; ++i) {
    statistics.mean[i] = 0;
    if constexpr (BACKWARD || STAGE == RESULTS_ALONE) {
      const i64 at = row.statistic(i);
      if constexpr (CENTERED) statistics.mean[i] = static_cast<const compute_t*>(params.mean)[at];
      statistics.deviation[i] = static_cast<const compute_t*>(params.deviation)[at];
    }
  }
  const bool clustered = !STAGED && CLUSTERED && parts > 1;
  Vectors<UNROLL> vectors;
  Totals means;
  if constexpr (STAGE != RESULTS_ALONE) {
    const Shift shift(params, row);
    RowSums sums;
    add_all(sums, vectors, part, first, step, steps, shift, statistics);
    combine_threads(sums, static_cast<compute_t>(sums.n), elements_of_part(params, rank));
    if constexpr (STAGE == TOTALS_ALONE) {
      leave_totals(params, row, sums, shift, rank);
      return;
    }
    Totals totals = sums;
    if (BY_CHANNEL || clustered) {
      compute_t* const own = shared_array<compute_t, TOTALS>(OWN_OFFSET);
      compute_t* const all = shared_array<compute_t, LARGEST_CLUSTER * TOTALS>(ALL_OFFSET);
      const int mine = thread_result() * LANES * 2;
      compute_t* const to = clustered ? own : all;
      if (thread_ty() == 0) {
#pragma unroll
        for (int i = 0; i < LANES; ++i) {
          to[mine + i] = totals.first[i], to[mine + LANES + i] = totals.second[i];
          // x itself may be y, and another block of the cluster may store it before this one reads
          // it.
          if (BY_CHANNEL && row.present && (thread_result() * LANES + i) % GROUP == 0)
            shared_array<compute_t, TOTALS>(ROWS_OFFSET)[Row::group_of(i) * 2] = shift.value[i];
        }
      }
      if (clustered) {
        cluster_barrier();
        gather_from_cluster<TOTALS>(own, all, parts);
      }
      block_barrier();
      if (clustered) cluster_arrive();  // the blocks wait at the end
      if constexpr (BY_CHANNEL)
        join_channels(params, row, all, parts, rank);
      else
        totals =
            joined_parts<TOTALS>(params, all, parts, mine, static_cast<compute_t>(params.share));
    }
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      Outcome outcome;
      if constexpr (BY_CHANNEL) {
        const compute_t* const outcomes = shared_array<compute_t, TOTALS>(ROWS_OFFSET);
        const int group = row.present ? Row::group_of(i) : 0;
        outcome = {outcomes[group * 2], outcomes[group * 2 + 1]};
      } else {
        outcome = outcome_of(params, totals.first[i], totals.second[i], shift.value[i],
                             BACKWARD ? statistics.deviation[i] : compute_t(0));
      }
      if constexpr (BACKWARD)
        means.first[i] = outcome.first, means.second[i] = outcome.second;
      else
        statistics.mean[i] = outcome.first, statistics.deviation[i] = outcome.second;
      if (!BACKWARD && !BY_CHANNEL && rank == 0 && thread_ty() == 0 && row.present)
        store_statistics(params, row.statistic(i), outcome);
    }
  } else if constexpr (BACKWARD) {
    const Partials partials(params);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      const u64 slot = (static_cast<u64>(row.image) * KEPT + row.kept) * LANES + i;
      const compute_t* const outcome = partials.row(slot / GROUP);
      means.first[i] = outcome[0], means.second[i] = outcome[1];
    }
  }
  store_all(vectors, part, first, step, steps, statistics, means);
  if (clustered) cluster_wait();
}
