// What the moments of a channel give, and where it is stored.
#pragma once

#include "common/compute_type.cuh"
#include "normalization/normalization_params.h"
#include "target/math.cuh"

struct Moments {
  compute_t n, mean, m2;
};

template <int CHANNELS_OF_ALL>
device_inline void store_moments(const NormalizationParams& params, u32 channel,
                                 const Moments& moments) {
  compute_t* const to = static_cast<compute_t*>(params.out) + channel;
  to[0] = moments.n;
  to[CHANNELS_OF_ALL] = moments.mean;
  to[2 * static_cast<i64>(CHANNELS_OF_ALL)] = moments.m2;
}

// share: 1 / n; unbiased: 1 / (n - 1). Running statistics change if `updates`.
device_inline void store_statistics(const NormalizationParams& params, u32 channel,
                                    const Moments& moments, compute_t share, compute_t unbiased,
                                    bool updates) {
  static_cast<compute_t*>(params.mean)[channel] = moments.mean;
  static_cast<compute_t*>(params.deviation)[channel] =
      compute_t(1) / math_sqrt(math_fma(moments.m2, share, static_cast<compute_t>(params.epsilon)));
  if constexpr (RUNNING) {
    if (!updates) return;
    const compute_t factor = static_cast<compute_t>(params.factor);
    compute_t& mean = static_cast<compute_t*>(params.running_mean)[channel];
    compute_t& variance = static_cast<compute_t*>(params.running_variance)[channel];
    mean = math_fma(factor, moments.mean - mean, mean);
    variance = math_fma(factor, moments.m2 * unbiased - variance, variance);
  }
}
