// The second step of a convolution that takes a normalization's gradient: joins the sums of blocks,
// in a fixed order. A thread loads all of its parts at once, at most MOST of them.
#include "conv/channel_sums/gradient_params.h"
#include "conv/channel_sums/partial_gradient.cuh"
#include "conv/channel_sums/sum_of_channel.cuh"
#include "target/step.cuh"

KILN_BEGINS_STEP;

KILN_KERNEL(gradient_finish, THREADS, 1, GradientFinishParams, params) {
  begin_step();
  const u32 channel = block_x() * CHANNELS + thread_x() % CHANNELS;
  const u32 first = thread_x() / CHANNELS;
  const bool present = channel < params.channels;
  const auto* const partials =
      static_cast<const PartialSums*>(params.partials) + (present ? channel : 0);
  // Parts that do not exist are read as part 0, without branches that would wait for each load.
  PartialSums own[MOST];
#pragma unroll
  for (u32 i = 0; i < MOST; ++i) {
    const u32 part = first + i * SHARING;
    own[i] = partials[static_cast<u64>(part < params.parts ? part : 0) * params.rows];
  }
  PartialSums sums;
#pragma unroll
  for (u32 i = 0; i < MOST; ++i)
    if (first + i * SHARING < params.parts) sums.join(own[i]);
  sums.gradients = sum_of_channel(sums.gradients, 0);
  sums.products = sum_of_channel(sums.products, 1);
  if (first > 0 || !present) return;
  static_cast<float*>(params.dbias)[channel] = sums.gradients;
  static_cast<float*>(params.dscale)[channel] =
      sums.products * static_cast<const float*>(params.deviation)[channel];
}
