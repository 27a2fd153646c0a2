// Depthwise forward convolution in NHWC that makes the moments of its result, as it is stored
// (conv/channel_sums). A thread keeps its two channels, so that their sums stay in registers. What
// a block has of a channel is joined in the order of its threads, and left in the workspace.
#include "conv/channel_sums/counted_moments.cuh"
#include "conv/direct/depthwise_halo.cuh"

class Moments {
 public:
  struct Params {
    BoxedGatherParams boxed;
    void* partials;  // [part][channel] of CountedMoments
  };
  using Row = Stores::Row;

  device_inline Moments(const Params& params, int channel, bool present)
      : params_(params), epilogue_(boxed_epilogue(params.boxed)) {
    if (!present) return;
#pragma unroll
    for (int c = 0; c < VECTOR; ++c) bias_[c] = epilogue_.bias_of(channel + c);
  }
  device_inline Row begin_row(i64, int) const { return {}; }
  device_inline void end_row(const Row&, i64 at, int q, const compute_t (&sums)[TILE_Q][VECTOR]) {
#pragma unroll
    for (int j = 0; j < TILE_Q; ++j) {
      if (!is_column(q + j)) continue;
      const i64 place = at + static_cast<i64>(j) * OUT_STRIDE_Q;
      const Outputs stored = finished(epilogue_, place, sums[j], bias_);
      store(epilogue_, place, stored);
#pragma unroll
      for (int c = 0; c < VECTOR; ++c) {
        const float value = to_compute(stored.element[c]);
        if (n_ == 0) sums_[c].shift = value;
        sums_[c].add(value);
      }
      ++n_;
    }
  }
  device_inline void leave(unsigned char* memory, bool) {
    auto* const exchange = reinterpret_cast<CountedMoments*>(memory);
    static_assert(THREADS * VECTOR * static_cast<int>(sizeof(CountedMoments)) <= SHARED_BYTES);
    block_barrier();
    const float n = static_cast<float>(n_);
#pragma unroll
    for (int c = 0; c < VECTOR; ++c) exchange[thread_x() * VECTOR + c] = {sums_[c].moments(n), n};
    block_barrier();
    auto* const to = static_cast<CountedMoments*>(params_.partials) +
                     static_cast<u64>(block_x()) * BLOCK_CHANNELS;
    for (u32 i = thread_x(); i < BLOCK_CHANNELS; i += THREADS)
      to[i] = joined<COLUMNS * STRIPS>(exchange + i, BLOCK_CHANNELS);
  }

 private:
  const Params& params_;
  Epilogue epilogue_;
  compute_t bias_[VECTOR] = {};
  ShiftedSums sums_[VECTOR];
  u32 n_ = 0;  // elements of each channel
};

KILN_KERNEL(depthwise_moments_nhwc_fma, THREADS, MIN_BLOCKS, Moments::Params, params) {
  compute_tiles<Moments>(params);
}
