// The second step of a convolution that makes the moments of its result: joins those of blocks, in
// a fixed order. A thread loads all of its parts at once, at most MOST of them: first the mean of
// all, then squares around it.
#include "conv/channel_sums/counted_moments.cuh"
#include "conv/channel_sums/moments_params.h"
#include "conv/channel_sums/sum_of_channel.cuh"
#include "target/step.cuh"

// What a block has left: its moments, and if COUNTED how many elements they are of.
template <bool HAS_COUNT>
struct Left {
  PartialMoments moments;
};
template <>
struct Left<true> : CountedMoments {};
using Part = Left<COUNTED>;

// Elements of a channel in a part.
device_inline float elements_of(const MomentsFinishParams&, u32, const Left<true>& left) {
  return left.n;
}
device_inline float elements_of(const MomentsFinishParams& params, u32 part, const Left<false>&) {
  const u32 tiles = params.tiles + (part < params.more ? 1 : 0);
  return static_cast<float>(tiles * params.tile_pixels - (part == params.last ? params.beyond : 0));
}

KILN_BEGINS_STEP;

KILN_KERNEL(moments_finish, THREADS, 1, MomentsFinishParams, params) {
  begin_step();
  const u32 channel = block_x() * CHANNELS + thread_x() % CHANNELS;
  const u32 first = thread_x() / CHANNELS;
  const bool present = channel < params.channels;
  const auto* const partials = static_cast<const Part*>(params.partials) + (present ? channel : 0);
  const float shift = partials->moments.shift;
  // Parts that do not exist are read as part 0, without branches that would wait for each load, and
  // weigh nothing.
  PartialMoments own[MOST];
  float n[MOST];
#pragma unroll
  for (u32 i = 0; i < MOST; ++i) {
    const u32 part = first + i * SHARING;
    const bool exists = part < params.parts;
    const Part left = partials[(exists ? part : 0) * params.rows];
    own[i] = left.moments;
    n[i] = exists ? elements_of(params, part, left) : 0.0f;
  }
  const float share = 1.0f / static_cast<float>(params.pixels);
  float mean = 0;
#pragma unroll
  for (u32 i = 0; i < MOST; ++i) mean = math_fma(n[i] * share, own[i].from(shift), mean);
  mean = sum_of_channel(mean, 0);
  float m2 = 0;
#pragma unroll
  for (u32 i = 0; i < MOST; ++i) {
    const float d = own[i].from(shift) - mean;
    m2 += math_fma(d * d, n[i], n[i] > 0.0f ? own[i].m2 : 0.0f);
  }
  m2 = sum_of_channel(m2, 1);
  if (first > 0 || !present) return;
  float* const to = static_cast<float*>(params.moments) + channel;
  to[0] = static_cast<float>(params.pixels);
  // An infinity among the elements makes both NaN.
  to[params.channels] = m2 != m2 ? m2 : shift + mean;
  to[2 * static_cast<u64>(params.channels)] = m2;
}
