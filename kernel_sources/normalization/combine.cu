// The moments of a whole from those of its parts, in the order of the parts, and what training
// makes of them (Chan, Golub and LeVeque; totals.cuh has the formulas). A thread takes a channel.
#include "normalization/results.cuh"

// moments: [part][n, mean, M2][channel]
KILN_KERNEL(combine, THREADS, 1, NormalizationParams, params) {
  const u32 channel = block_x() * THREADS + thread_x();
  if (channel >= CHANNELS) return;
  const compute_t* const parts = static_cast<const compute_t*>(params.x) + channel;
  constexpr u64 PART = static_cast<u64>(CHANNELS) * 3;
  compute_t n = 0, shift = 0;
#pragma unroll 4
  for (i64 part = 0; part < params.images; ++part) {
    const compute_t own = parts[part * PART];
    if (n == compute_t(0)) shift = parts[part * PART + CHANNELS];
    n += own;
  }
  const compute_t share = n > compute_t(0) ? compute_t(1) / n : compute_t(0);
  compute_t mean = 0;
#pragma unroll 4
  for (i64 part = 0; part < params.images; ++part) {
    const compute_t own = parts[part * PART];
    if (own != compute_t(0))
      mean = math_fma(parts[part * PART + CHANNELS] - shift, own * share, mean);
  }
  compute_t m2 = 0;
#pragma unroll 4
  for (i64 part = 0; part < params.images; ++part) {
    const compute_t own = parts[part * PART];
    if (own == compute_t(0)) continue;
    const compute_t d = parts[part * PART + CHANNELS] - shift - mean;
    m2 += math_fma(d * d, own, parts[part * PART + 2 * CHANNELS]);
  }
  // Running statistics of fewer than two elements stay as they are.
  const bool many = n >= compute_t(2);
  const Moments moments{n, n > compute_t(0) ? shift + mean : compute_t(0), m2};
  store_moments<CHANNELS>(params, channel, moments);
  store_statistics(params, channel, moments, share,
                   many ? compute_t(1) / (n - compute_t(1)) : compute_t(0), many);
}
