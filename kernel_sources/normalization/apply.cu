// The pass over the elements: y, or dx and dresidual. A thread keeps the numbers of its channels in
// registers and takes UNROLL vectors at a time; `parts` blocks share channels.
#include "normalization/channels.cuh"

// Where statistics came before, what they read last may still be in the L2 cache: it is read first.
using Walk = WalkFrom<!GIVEN>;

// dx = factor * (g - dbias / n - (x - mean) * slope), slope = deviation * dscale / n.
struct Correction {
  OfChannels mean, slope;
  device_inline Correction(const NormalizationParams& params, const Channels& channels,
                           const Map& map)
      : mean(params.dbias, channels, 0), slope(params.dscale, channels, 0) {
    const compute_t share = static_cast<compute_t>(params.share);
#pragma unroll
    for (int i = 0; i < LANES; ++i) {
      mean.value[i] *= share;
      slope.value[i] *= share * map.deviation.value[i];
    }
  }
};

struct Pass {
  const element_t *x, *dy, *residual;
  element_t *out, *dresidual;
  compute_t alpha, beta;
  bool aligned;
  device_inline Pass(const NormalizationParams& params, const Channels& channels)
      : x(row_of<X>(params.x, channels)),
        dy(row_of<DY>(params.dy, channels)),
        residual(row_of<R>(params.residual, channels)),
        out(row_of<Out>(params.out, channels)),
        dresidual(row_of<DR>(params.dresidual, channels)),
        alpha(static_cast<compute_t>(params.alpha)),
        beta(static_cast<compute_t>(params.beta)),
        aligned(is_aligned<element_t, VECTOR>(params.x) &&
                is_aligned<element_t, VECTOR>(params.out) &&
                (!BACKWARD || is_aligned<element_t, VECTOR>(params.dy)) &&
                (!HAS_RESIDUAL || (is_aligned<element_t, VECTOR>(params.residual) &&
                                   is_aligned<element_t, VECTOR>(params.dresidual)))) {}

  // The next COUNT vectors, or as many as are left.
  template <int COUNT, bool WHOLE, class Extra>
  device_inline void take(Walk& walk, const Map& map, const Extra& extra, i64 left) const {
    constexpr bool READS_RESIDUAL = HAS_RESIDUAL && (!BACKWARD || ACTIVATION != Act::IDENTITY);
    constexpr bool READS_X = !(BACKWARD && FROZEN && ACTIVATION == Act::IDENTITY);
    Pack<element_t, VECTOR> in[COUNT], added[COUNT], gradient[COUNT];
    if constexpr (READS_X) load_packs<COUNT, WHOLE, X>(in, x, walk, left);
    if constexpr (BACKWARD) load_packs<COUNT, WHOLE, DY>(gradient, dy, walk, left);
    if constexpr (READS_RESIDUAL) load_packs<COUNT, WHOLE, R>(added, residual, walk, left);
#pragma unroll
    for (int u = 0; u < COUNT; ++u) {
      if (WHOLE || u < left) {
        compute_t values[VECTOR], gradients[VECTOR], before[VECTOR];
        element_t* const to = walk.template in<Out>(out);
        if (beta != compute_t(0)) load_vector<VECTOR>(to, COUNT > 1, before);
#pragma unroll
        for (int i = 0; i < VECTOR; ++i) {
          const int lane = lane_of(i);
          const compute_t v = READS_X ? to_compute(in[u].element[i]) : compute_t(0);
          const compute_t r = READS_RESIDUAL ? to_compute(added[u].element[i]) : compute_t(0);
          if constexpr (BACKWARD) {
            const compute_t g = map.gradient(to_compute(gradient[u].element[i]), v, i, r);
            gradients[i] = g;
            compute_t inner = g;
            if constexpr (!FROZEN)
              inner = math_fma(-map.centered(v, lane), extra.slope.value[lane],
                               g - extra.mean.value[lane]);
            values[i] = alpha * (map.factor.value[lane] * inner);
          } else {
            values[i] = alpha * map.forward(v, lane, r);
          }
        }
        if (beta != compute_t(0)) {
#pragma unroll
          for (int i = 0; i < VECTOR; ++i) values[i] += beta * before[i];
        }
        store_vector<VECTOR>(to, COUNT > 1, values);
        if constexpr (BACKWARD && HAS_RESIDUAL)
          store_vector<VECTOR>(walk.template in<DR>(dresidual), COUNT > 1, gradients);
      }
      walk.next();
    }
  }

  template <class Extra>
  device_inline void take_all(Walk walk, const Map& map, const Extra& extra, i64 steps) const {
    if (aligned) {
#pragma unroll 1
      for (; steps >= UNROLL; steps -= UNROLL) take<UNROLL, true>(walk, map, extra, steps);
      if (steps > 0) take<UNROLL, false>(walk, map, extra, steps);
    } else {
#pragma unroll 1
      for (; steps > 0; --steps) take<1, true>(walk, map, extra, steps);
    }
  }
};

KILN_KERNEL(apply, THREADS, MIN_BLOCKS, NormalizationParams, params) {
  const u32 part = block_x() % params.parts;
  const Channels channels(block_x() / params.parts);
  if (!channels.present) return;
  const u32 first = part * TY + thread_ty();
  const i64 steps = params.steps + (first < params.rest ? 1 : 0);
  const Walk walk(first, params.parts * TY, params.images);
  const Map map(params, channels);
  const Pass pass(params, channels);
  if constexpr (BACKWARD && !FROZEN)
    pass.take_all(walk, map, Correction(params, channels, map), steps);
  else
    pass.take_all(walk, map, 0, steps);
}
