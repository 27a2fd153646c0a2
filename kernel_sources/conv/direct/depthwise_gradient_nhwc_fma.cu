// Depthwise data gradient in NHWC that goes on through the normalization and the activation whose
// result the convolution read (conv/channel_sums/GRADIENT.md). A thread keeps its two channels, so
// that their sums stay in registers. It begins to read what a row of results needs of the
// normalization's tensors before the row's last products.
#include "conv/channel_sums/partial_gradient.cuh"
#include "conv/direct/depthwise_halo.cuh"

class Gradient {
 public:
  struct Params {
    BoxedGatherParams boxed;
    const void *x, *residual;                     // of the normalization, with dx's strides
    const void *scale, *bias, *mean, *deviation;  // inverse deviations
    void* partials;                               // [part][channel] of PartialSums
  };
  struct Row {
    Pair x[TILE_Q], residual[NORM_RESIDUAL ? TILE_Q : 1];
  };

  device_inline Gradient(const Params& params, int channel, bool present)
      : params_(params), epilogue_(boxed_epilogue(params.boxed)) {
    if (!present) return;
    const auto of_channel = [&](const void* from, int c, float without) {
      return from != nullptr ? static_cast<const float*>(from)[channel + c] : without;
    };
#pragma unroll
    for (int c = 0; c < VECTOR; ++c) {
      convolution_bias_[c] = epilogue_.bias_of(channel + c);
      mean_[c] = of_channel(params.mean, c, 0);
      factor_[c] = of_channel(params.scale, c, 1) * of_channel(params.deviation, c, 0);
      bias_[c] = of_channel(params.bias, c, 0);
    }
  }
  device_inline Row begin_row(i64 at, int q) const {
    Row row;
#pragma unroll
    for (int j = 0; j < TILE_Q; ++j) {
      if (!is_column(q + j)) continue;
      const i64 place = at + OUT_FIRST[0] + static_cast<i64>(j) * OUT_STRIDE_Q;
      row.x[j] = *reinterpret_cast<const Pair*>(static_cast<const element_t*>(params_.x) + place);
      if constexpr (NORM_RESIDUAL)
        row.residual[j] =
            *reinterpret_cast<const Pair*>(static_cast<const element_t*>(params_.residual) + place);
    }
    return row;
  }
  device_inline void end_row(const Row& row, i64 at, int q,
                             const compute_t (&sums)[TILE_Q][VECTOR]) {
#pragma unroll
    for (int j = 0; j < TILE_Q; ++j) {
      if (!is_column(q + j)) continue;
      const i64 place = at + static_cast<i64>(j) * OUT_STRIDE_Q;
      Outputs value = finished(epilogue_, place, sums[j], convolution_bias_);
#pragma unroll
      for (int c = 0; c < VECTOR; ++c)
        value.element[c] = of(c, value.element[c], row.x[j].element[c],
                              row.residual[NORM_RESIDUAL ? j : 0].element[c]);
      store(epilogue_, place, value);
    }
  }
  device_inline void leave(unsigned char* memory, bool) {
    auto* const exchange = reinterpret_cast<PartialSums*>(memory);
    static_assert(THREADS * VECTOR * static_cast<int>(sizeof(PartialSums)) <= SHARED_BYTES);
    block_barrier();
#pragma unroll
    for (int c = 0; c < VECTOR; ++c) exchange[thread_x() * VECTOR + c] = sums_[c];
    block_barrier();
    auto* const to =
        static_cast<PartialSums*>(params_.partials) + static_cast<u64>(block_x()) * BLOCK_CHANNELS;
    for (u32 i = thread_x(); i < BLOCK_CHANNELS; i += THREADS) {
      PartialSums all{};
#pragma unroll 4
      for (int part = 0; part < COLUMNS * STRIPS; ++part)
        all.join(exchange[part * BLOCK_CHANNELS + i]);
      to[i] = all;
    }
  }

 private:
  // The gradient of a result of channel c, which is added to the sums.
  device_inline output_t of(int c, output_t result, element_t x, element_t residual) {
    const float centered = to_compute(x) - mean_[c];
    float p = math_fma(centered, factor_[c], bias_[c]);
    if constexpr (NORM_RESIDUAL) p += to_compute(residual);
    float g = to_compute(result);
    if constexpr (GRADIENT_OF == Act::RELU)
      g = p <= 0.0f ? 0.0f : g;
    else if constexpr (GRADIENT_OF != Act::IDENTITY)
      g *= activation_slope<GRADIENT_OF, BRIEF>(
          GRADIENT_FROM_OUTPUT ? activate<GRADIENT_OF, BRIEF>(p, epilogue_.coef) : p,
          epilogue_.coef);
    const output_t rounded = from_compute<output_t>(g);
    sums_[c].add(to_compute(rounded), centered);
    return rounded;
  }

  const Params& params_;
  Epilogue epilogue_;
  compute_t convolution_bias_[VECTOR] = {};
  float mean_[VECTOR] = {}, factor_[VECTOR] = {},
        bias_[VECTOR] = {};  // p = (x - mean) factor + bias
  PartialSums sums_[VECTOR] = {};
};

KILN_KERNEL(depthwise_gradient_nhwc_fma, THREADS, MIN_BLOCKS, Gradient::Params, params) {
  compute_tiles<Gradient>(params);
}
