// The totals of channels: around what they are taken, and what they give. Backward: the sum of g,
// and that of g (x - mean), or, of OWN_STATISTICS, of g (x - mean) s.
#pragma once

#include "normalization/channels.cuh"
#include "normalization/results.cuh"
#include "normalization/running_totals.cuh"

// The shift: the first element of each of the thread's channels; 0 where there is none.
struct Shift {
  compute_t value[LANES];
  device_inline Shift(const NormalizationParams& params, const Channels& channels) {
    const element_t* const x = row_of<X>(params.x, channels);
#pragma unroll
    for (int i = 0; i < LANES; ++i) value[i] = params.images > 0 ? to_compute(x[i]) : compute_t(0);
  }
};

// Stores what the totals of whole channels give. A thread of each group of channels calls it.
device_inline void store_totals(const NormalizationParams& params, const Channels& channels,
                                const Totals& totals) {
  if constexpr (BACKWARD) {
    const OfChannels deviation(OWN_STATISTICS ? nullptr : params.deviation, channels, 1);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      if (!OWN_STATISTICS || params.dbias != nullptr)
        static_cast<compute_t*>(params.dbias)[channels.first() + i] = totals.first[i];
      static_cast<compute_t*>(params.dscale)[channels.first() + i] =
          totals.second[i] * deviation.value[i];
    }
  } else {
    const Shift shift(params, channels);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      const u32 channel = channels.first() + i;
      const compute_t m2 = totals.second[i];
      // An infinity among the elements makes both NaN.
      const compute_t mean = m2 != m2 ? m2 : shift.value[i] + totals.first[i];
      const Moments moments{static_cast<compute_t>(params.images * COMBINED * ELEMENTS), mean, m2};
      if constexpr (MOMENTS)
        store_moments<KEPT * LANES>(params, channel, moments);
      else
        store_statistics(params, channel, moments, static_cast<compute_t>(params.share),
                         static_cast<compute_t>(params.unbiased), true);
    }
  }
}
