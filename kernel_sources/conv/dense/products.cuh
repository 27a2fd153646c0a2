// The products of the warpgroups of dense_wgmma, one stage of shared memory at a time.
#pragma once

#include "conv/dense/output.cuh"
#include "conv/dense/pixel_words.cuh"
#include "target/wgmma.cuh"

// For each operand: whether its lines are steps of the reduction, and the lines' length. The
// operand of the next product begins 32 bytes further in a line or, with lines by steps, 16 lines
// further.
constexpr bool LEFT_BY_STEPS = PIXELS_LEFT ? PLANAR && !LEFT_IN_WORDS : FILTER_BY_CHANNELS;
constexpr bool RIGHT_BY_STEPS = PIXELS_LEFT ? FILTER_BY_CHANNELS : PLANAR;
device_inline constexpr int line_bytes(bool by_steps, bool pixels) {
  return !by_steps ? LINE_BYTES : pixels ? PIXEL_LINE_BYTES : ROW_LINE_BYTES;
}
constexpr int LEFT_LINE = line_bytes(LEFT_BY_STEPS, PIXELS_LEFT),
              RIGHT_LINE = line_bytes(RIGHT_BY_STEPS, !PIXELS_LEFT);
constexpr int LEFT_OPERAND_BYTES = PIXELS_LEFT && PLANAR ? PIXEL_LINE_BLOCK : 64 * LINE_BYTES;
// The distance of product k's operand from the first product's.
device_inline constexpr int steps_at(bool by_steps, bool pixels, int k) {
  return k * (by_steps ? 16 * line_bytes(by_steps, pixels) : 32);
}
device_inline constexpr int line_block(bool pixels) {
  return pixels ? PIXEL_LINE_BLOCK : STEP_CHANNELS * ROW_LINE_BYTES;
}

using Products = WarpgroupProducts<element_t, LEFT, BLOCK_RIGHT / 8>;

// Products of operands that wgmma reads from shared memory as TMA has written them.
class SharedSteps {
  SharedMatrix lefts_, rights_;
  Products products_;

 public:
  device_inline SharedSteps(unsigned char* memory, u32 group)
      : lefts_(SharedMatrix::swizzled<LEFT_LINE>(memory + group * (LEFT * LEFT_OPERAND_BYTES),
                                                 8 * LEFT_LINE)),
        rights_(SharedMatrix::swizzled<RIGHT_LINE>(memory + LEFT_BYTES, 8 * RIGHT_LINE,
                                                   line_block(!PIXELS_LEFT))) {}

  // Starts the products of a stage. Without `add` they replace the sums. When it returns, the
  // products of the stage before are complete.
  device_inline void multiply(Sums& sums, int stage, bool add) {
    const SharedMatrix left = lefts_.moved(stage * STAGE_BYTES);
    const SharedMatrix right = rights_.moved(stage * STAGE_BYTES);
    products_.begin();
#pragma unroll
    for (int k = 0; k < LINE_BYTES / 32; ++k)
      multiply_from<0>(sums, left.moved(steps_at(LEFT_BY_STEPS, PIXELS_LEFT, k)),
                       right.moved(steps_at(RIGHT_BY_STEPS, !PIXELS_LEFT, k)), add || k > 0);
    products_.commit();
    products_.template wait<1>();
  }
  // Waits until all products are complete.
  device_inline void settle() { products_.template wait<0>(); }

 private:
  // The products over 32 bytes of the reduction, for operands A of the warpgroup from L on.
  template <int L>
  device_inline void multiply_from(Sums& sums, const SharedMatrix& left, const SharedMatrix& right,
                                   bool add) {
    products_.template multiply_swizzled<LEFT_BY_STEPS, RIGHT_BY_STEPS, L>(
        sums, left.moved(L * LEFT_OPERAND_BYTES), right, add);
    if constexpr (L + 1 < LEFT) multiply_from<L + 1>(sums, left, right, add);
  }
};

// Products of pixels that go through registers, as operand A.
class WordSteps {
  // A set is the words of so many products of each operand A, which are read together.
  static constexpr int SET = LINE_BYTES > 64 && LEFT == 1 ? 2 : 1;
  static constexpr int SETS = LINE_BYTES / 32 / SET;
  static_assert(!LEFT_IN_WORDS || SETS % 2 == 0, "the next stage's first set has other registers");
  PixelReader reader_;
  const unsigned char* memory_;
  SharedMatrix rights_;
  Products products_;
  PixelWords words_[2][SET];  // a set is read while the set before is multiplied

 public:
  device_inline WordSteps(const unsigned char* memory, u32 group)
      : reader_(group),
        memory_(memory),
        rights_(SharedMatrix::swizzled<RIGHT_LINE>(memory + LEFT_BYTES, 8 * RIGHT_LINE)) {}

  device_inline void multiply(Sums& sums, int stage, bool add) {
    const unsigned char* const pixels = memory_ + stage * STAGE_BYTES;
    const SharedMatrix right = rights_.moved(stage * STAGE_BYTES);
#pragma unroll
    for (int set = 0; set < SETS; ++set) {
      PixelWords(&words)[SET] = words_[set % 2];
#pragma unroll
      for (int i = 0; i < SET; ++i) reader_.read(words[i], pixels, set * SET + i);
      products_.begin();
#pragma unroll
      for (int i = 0; i < SET; ++i)
        multiply_from<0>(sums, words[i], right.moved((set * SET + i) * 32),
                         add || set > 0 || i > 0);
      products_.commit();
      products_.template wait<1>();
    }
  }
  device_inline void settle() { products_.template wait<0>(); }

 private:
  template <int L>
  device_inline void multiply_from(Sums& sums, const PixelWords& words, const SharedMatrix& right,
                                   bool add) {
    products_.template multiply<false, L>(sums, words.left[L], right, add);
    if constexpr (L + 1 < LEFT) multiply_from<L + 1>(sums, words, right, add);
  }
};

template <bool IN_WORDS>
struct StepsOf {
  using Type = SharedSteps;
};
template <>
struct StepsOf<true> {
  using Type = WordSteps;
};
