// Shared by the kernels of normalizations: the channels of a thread, its walk over their elements,
// and the formulas of an element.
//
// A thread has LANES neighboring channels; the TY threads of a channel, in all blocks that share
// it, take its vectors in turn, image after image.
#pragma once

#include "normalization/element.cuh"

// The channel of a vector's element among a thread's.
device_inline constexpr int lane_of(int i) { return INNER ? 0 : i; }

// The thread's channels among all: groups of LANES. Threads beyond the last one take the first one
// and write nothing.
struct Channels {
  u32 group;
  bool present;
  Place place;
  device_inline explicit Channels(u32 block)
      : group(block * RESULTS + thread_result()), present(group < KEPT) {
    if (!present) group = 0;
    place = kept_place(static_cast<index_t>(group));
  }
  device_inline u32 first() const { return group * LANES; }
};

// Every `stride`-th vector of a channel, from vector `first` on; FROM_END counts from the last one.
template <bool FROM_END>
struct WalkFrom {
  i64 image;
  index_t at;
  i64 image_step;
  index_t at_step;
  i64 last_image;
  device_inline WalkFrom(u32 first, u32 stride, i64 images)
      : image(first / COMBINED),
        at(first % COMBINED),
        image_step(stride / COMBINED),
        at_step(stride % COMBINED),
        last_image(images - 1) {}
  device_inline void next() {
    at += at_step;
    image += image_step;
    if (at >= COMBINED) at -= COMBINED, ++image;
  }
  // The vector's address in a tensor whose strides are S.
  template <class S, class T>
  device_inline T* in(T* row) const {
    if constexpr (FROM_END)
      return S::at(row + (last_image - image) * S::IMAGE, static_cast<index_t>(COMBINED - 1) - at,
                   0);
    return S::at(row + image * S::IMAGE, at, 0);
  }
};

// The first element of the thread's channels in a tensor of strides S.
template <class S>
device_inline const element_t* row_of(const void* tensor, const Channels& channels) {
  return static_cast<const element_t*>(tensor) + S::kept(channels.place);
}
template <class S>
device_inline element_t* row_of(void* tensor, const Channels& channels) {
  return static_cast<element_t*>(tensor) + S::kept(channels.place);
}

// A parameter or statistic of the thread's channels.
struct OfChannels {
  compute_t value[LANES];
  device_inline OfChannels(const void* from, const Channels& channels, compute_t without) {
    const compute_t* const p = static_cast<const compute_t*>(from) + channels.first();
#pragma unroll
    for (int i = 0; i < LANES; ++i) value[i] = from == nullptr ? without : p[i];
  }
};

// What an element needs of its channel: p = (x - mean) * factor + bias.
struct Map {
  OfChannels mean, deviation, factor, bias;
  Coefficients<compute_t> coef;
  device_inline Map(const NormalizationParams& params, const Channels& channels)
      : mean(params.mean, channels, 0),
        deviation(params.deviation, channels, 1),
        factor(params.scale, channels, 1),
        bias(params.bias, channels, 0),
        coef(coefficients_of<compute_t>(params)) {
    const compute_t epsilon = static_cast<compute_t>(params.epsilon);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      if constexpr (OF_VARIANCE)
        deviation.value[i] = compute_t(1) / math_sqrt(deviation.value[i] + epsilon);
      factor.value[i] *= deviation.value[i];
    }
  }
  template <class Walk>
  device_inline void seat(const Walk&) {}
  device_inline compute_t centered(compute_t x, int lane) const { return x - mean.value[lane]; }
  device_inline compute_t along(compute_t x, int i) const { return centered(x, lane_of(i)); }
  device_inline compute_t before(compute_t x, int lane, compute_t residual) const {
    const compute_t p = math_fma(centered(x, lane), factor.value[lane], bias.value[lane]);
    return HAS_RESIDUAL ? p + residual : p;
  }
  device_inline compute_t forward(compute_t x, int lane, compute_t residual) const {
    return activate<ACTIVATION, BRIEF>(before(x, lane, residual), coef);
  }
  // The gradient of p; STORES_GRADIENT: for convolutions, whose epilogue says how NaN passes relu.
  device_inline compute_t gradient(compute_t dy, compute_t x, int i, compute_t residual) const {
    if constexpr (ACTIVATION == Act::IDENTITY) return dy;
    const compute_t p = before(x, lane_of(i), residual);
    if constexpr (STORES_GRADIENT && ACTIVATION == Act::RELU)
      return p <= compute_t(0) ? compute_t(0) : dy;
    return dy * slope_at(p, coef);
  }
};

// The same where an image's rows (rows.cu) have statistics of their own: seat() comes before the
// elements of a vector.
using S = STRIDES(S);  // of mean and deviation; OF_GROUPS: between images alone
constexpr int OWN = OF_GROUPS || !INNER ? (OF_GROUPS ? LANES : 1) : VECTOR;
struct OwnMap {
  const compute_t *means, *deviations;
  OfChannels scale, bias;
  Coefficients<compute_t> coef;
  i64 image = -1;  // OF_GROUPS: that whose statistics are seated
  u32 group[LANES];
  i64 row;
  compute_t mean[OWN], deviation[OWN];
  device_inline OwnMap(const NormalizationParams& params, const Channels& channels)
      : means(static_cast<const compute_t*>(params.mean)),
        deviations(static_cast<const compute_t*>(params.deviation)),
        scale(params.scale, channels, 1),
        bias(params.bias, channels, 0),
        coef(coefficients_of<compute_t>(params)),
        row(S::kept(channels.place)) {
#pragma unroll
    for (int i = 0; i < LANES; ++i) group[i] = (channels.first() + i) / CHANNELS_OF_GROUP;
  }
  template <class Walk>
  device_inline void seat(const Walk& walk) {
    if (OF_GROUPS && walk.image == image) return;
    image = walk.image;
#pragma unroll
    for (int i = 0; i < OWN; ++i) {
      const i64 at = OF_GROUPS ? image * S::IMAGE + group[i]
                               : image * S::IMAGE + row + S::combined(walk.at) + i * S_LANE;
      mean[i] = means == nullptr ? compute_t(0) : means[at];
      deviation[i] = deviations[at];
    }
  }
  // That of element i of a vector among those that are seated.
  device_inline static int own_of(int i) { return OWN == 1 ? 0 : OF_GROUPS ? lane_of(i) : i; }
  // What of x multiplies the gradient in the sum that becomes dscale.
  device_inline compute_t along(compute_t x, int i) const {
    return (x - mean[own_of(i)]) * deviation[own_of(i)];
  }
  device_inline compute_t gradient(compute_t dy, compute_t x, int i, compute_t residual) const {
    if constexpr (ACTIVATION == Act::IDENTITY) return dy;
    const compute_t p =
        math_fma(x - mean[own_of(i)], scale.value[lane_of(i)] * deviation[own_of(i)],
                 bias.value[lane_of(i)]);
    return dy * slope_at(HAS_RESIDUAL ? p + residual : p, coef);
  }
};

// The packs of COUNT vectors of a walk, from a tensor of strides S; `left`: how many there are.
template <int COUNT, bool WHOLE, class S, class Walk>
device_inline void load_packs(Pack<element_t, VECTOR> (&packs)[COUNT], const element_t* row,
                              Walk walk, i64 left) {
#pragma unroll
  for (int u = 0; u < COUNT; ++u) {
    if (WHOLE || u < left) packs[u] = load_pack<VECTOR>(walk.template in<S>(row), COUNT > 1);
    walk.next();
  }
}
