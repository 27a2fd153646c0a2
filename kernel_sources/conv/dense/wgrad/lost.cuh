// Computes lost sums of a dense filter gradient (scaled_sums.cuh) again by their definition.
#pragma once

#include "conv/dense/wgrad/sums.cuh"
#include "conv/geometry/gradient_sum.cuh"

// Called by all lanes of a warp; `lost` says whether the lane has a lost sum in its quad `quad`.
// All lanes compute each lost sum together, because it runs over many pixels.
device_inline void add_up_lost(const DenseWgradParams& params, const WgradTile& tile, int quad,
                               int adder, bool lost) {
  const int lane = adder % 32;
#pragma unroll 1
  for (int owner = 0; owner < 32; ++owner) {
    if (warp_shuffle(static_cast<u32>(lost), static_cast<u32>(owner)) == 0) continue;
    const QuadPlace place(tile, quad, adder - lane + owner);
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      const int half = i / 2;
      if (!place.has(half)) continue;
      compute_t sum = gradient_sum<i64, 32, true>(
          static_cast<const element_t*>(params.x) + place.group * CHANNELS + place.channel + i % 2,
          static_cast<const element_t*>(params.dy) + place.group * ROWS + place.rows[half],
          static_cast<u32>(place.columns.t), static_cast<u32>(place.columns.r),
          static_cast<u32>(place.columns.s), params.images, static_cast<u32>(lane));
#pragma unroll 1
      for (u32 mask = 16; mask > 0; mask /= 2) sum += warp_shuffle_xor(sum, mask);
      if (lane != 0) continue;
      output_t* const to = place.in(params, half) + i % 2 * DW_STRIDE_CHANNEL;
      const compute_t beta = static_cast<compute_t>(params.beta);
      compute_t value = static_cast<compute_t>(params.alpha) * sum;
      if (beta != compute_t(0)) value += beta * to_compute(*to);
      *to = from_compute<output_t>(value);
    }
  }
}
