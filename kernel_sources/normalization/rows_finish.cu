// The step between the stages of rows.cu: a block joins the totals that blocks have left of a row,
// and stores its mean and deviation, or for the gradient what dx needs. OF_CHANNELS, a block adds
// up those of a channel in all images: dscale and dbias. Always in the same order.
#include "common/block_sum.cuh"
#include "normalization/row.cuh"

constexpr u32 SUM_OFFSET = 0, JOINED_OFFSET = THREADS / 32 * sizeof(compute_t);

// The sum of term(slot, part) over all parts of `count` slots, from slot `first` on, each `step`
// further; all threads get it.
template <class Term>
device_inline compute_t joined(u64 first, u64 step, u64 count, u32 parts, const Term& term) {
  compute_t sum = 0;
  for (u64 i = thread_x(); i < count * parts; i += THREADS)
    sum += term(first + i / parts * step, static_cast<u32>(i % parts));
  compute_t* const all = shared_array<compute_t, 1>(JOINED_OFFSET);
  sum = block_sum<THREADS>(sum, SUM_OFFSET);
  if (thread_x() == 0) *all = sum;
  block_barrier();
  const compute_t out = *all;
  block_barrier();  // both arrays are used again
  return out;
}

KILN_KERNEL(rows_finish, THREADS, 1, NormalizationParams, params) {
  constexpr u64 CHANNELS_OF_IMAGE = static_cast<u64>(KEPT) * LANES;
  const Partials partials(params);
  const compute_t* const deviations = static_cast<const compute_t*>(params.deviation);
  const u64 number = block_x();
  if constexpr (OF_CHANNELS) {
    // In stages a channel has a slot in each image; after rows_gradient.cu, one slot.
    const u64 count = WEIGHED ? static_cast<u64>(params.images) : 1;
    const compute_t dscale =
        joined(number, CHANNELS_OF_IMAGE, count, params.parts, [&](u64 slot, u32 part) {
          const compute_t product = partials.totals(slot, part)[1];
          return WEIGHED ? product * deviations[slot / GROUP] : product;
        });
    if (thread_x() == 0) static_cast<compute_t*>(params.dscale)[number] = dscale;
    if constexpr (HAS_BIAS) {
      const compute_t dbias =
          joined(number, CHANNELS_OF_IMAGE, count, params.parts,
                 [&](u64 slot, u32 part) { return partials.totals(slot, part)[0]; });
      if (thread_x() == 0) static_cast<compute_t*>(params.dbias)[number] = dbias;
    }
    return;
  }
  const compute_t* const scale = static_cast<const compute_t*>(params.scale);
  const compute_t share = static_cast<compute_t>(params.share);
  const auto weight = [&](u64 slot, u32 part) {
    if constexpr (!BACKWARD) return elements_of_part(params, part) * share;
    return BY_CHANNEL && HAS_SCALE ? scale[slot % CHANNELS_OF_IMAGE] : compute_t(1);
  };
  const u64 slot = number * GROUP;
  compute_t first = 0;
  if constexpr (CENTERED)
    first = joined(slot, 1, GROUP, params.parts, [&](u64 at, u32 part) {
      return partials.totals(at, part)[0] * weight(at, part);
    });
  const compute_t second = joined(slot, 1, GROUP, params.parts, [&](u64 at, u32 part) {
    const compute_t* const totals = partials.totals(at, part);
    if constexpr (BACKWARD) return totals[1] * weight(at, part);
    const compute_t d = CENTERED ? totals[0] - first : compute_t(0);
    return math_fma(d * d, elements_of_part(params, part), totals[1]);
  });
  if (thread_x() != 0) return;
  compute_t* const row = partials.row(number);
  const compute_t deviation = BACKWARD ? deviations[number] : compute_t(0);
  const Outcome outcome = outcome_of(params, first, second, row[0], deviation);
  if constexpr (BACKWARD)
    row[0] = outcome.first, row[1] = outcome.second;
  else
    store_statistics(params, static_cast<i64>(number), outcome);
}
