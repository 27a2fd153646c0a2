// f32 operands of a dense filter gradient. wgmma needs the reduction, the pixels, to be contiguous.
// Some helper warps transpose x in shared memory, 32 pixels of 32 channels at a time. dy is operand
// A in registers: each lane of a consumer reads its words from shared memory. For 3xTF32 both ways
// also split the numbers into hi and lo parts.
//
// In both operands, the even ones of every 8 pixels come before the odd ones. The words of 4 pixels
// and 8 filters that a warp reads of dy are then in 32 different banks.
#pragma once

#include "conv/dense/wgrad/products.cuh"
#include "conv/mma/tf32_parts.cuh"

// The four even or odd ones of 8 pixels of a column, stored contiguously.
struct alignas(16) FourPixels {
  float pixel[4];
};

// Transposes 32 pixels of a slab of x to lines of 32 columns. Called by a warp; a lane writes one
// column.
device_inline void turn_block(const unsigned char* from, unsigned char* to, int lane) {
  float pixel[32];
#pragma unroll
  for (int i = 0; i < 32; ++i)
    pixel[i] = *reinterpret_cast<const float*>(from + i * LINE_BYTES + (lane * 4 ^ i % 8 * 16));
#pragma unroll
  for (int four = 0; four < 8; ++four) {
    FourPixels hi, lo;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float x = pixel[four / 2 * 8 + four % 2 + i * 2];
      const HiLo parts = SPLIT ? split(x) : HiLo{x, 0};
      hi.pixel[i] = parts.hi, lo.pixel[i] = parts.lo;
    }
    unsigned char* const at = to + lane * LINE_BYTES + (four ^ lane % 8) * 16;
    *reinterpret_cast<FourPixels*>(at) = hi;
    if constexpr (SPLIT) *reinterpret_cast<FourPixels*>(at + TURNED_PART) = lo;
  }
}

// Transposes the x of every step, block by block. Called by warp `turner` of the TURNERS.
device_inline void turn(const Share& share, unsigned char* memory, Barriers& barriers, int turner) {
  constexpr int HALVES = STEP_PIXELS / 32, BLOCKS = HALVES * BLOCK_COLUMNS;
  const int lane = static_cast<int>(thread_x() % 32);
  Ring<STAGES> ring(0);
  Ring<TURNED_SLOTS> slots(1);
#pragma unroll 1
  for (u32 step = share.first; step < share.end; ++step) {
    barriers.landed[ring.stage].wait(ring.parity);
    barriers.read[slots.stage].wait(slots.parity);
    const unsigned char* const from = memory + ring.stage * STAGE_BYTES + LEFT_SLABS * SLAB_BYTES;
    unsigned char* const to = memory + TURNED_AT + slots.stage * TURNED_BYTES;
#pragma unroll 1
    for (int block = turner; block < BLOCKS; block += TURNERS) {
      const int half = block / BLOCK_COLUMNS, column = block % BLOCK_COLUMNS;
      turn_block(from + column * SLAB_BYTES + half * (32 * LINE_BYTES),
                 to + (half * BLOCK_COLUMNS + column) * (32 * LINE_BYTES), lane);
    }
    fence_proxy_async();
    warp_barrier();
    if (lane == 0) {
      barriers.free[ring.stage].arrive();
      barriers.turned[slots.stage].arrive();
    }
    ring.advance();
    slots.advance();
  }
}

// A set: dy of SET_PIXELS pixels, as operands A of products over 8 pixels each.
constexpr int SET_PIXELS = 16, SETS = STEP_PIXELS / SET_PIXELS;
struct LeftWords {
  u32 hi[SET_PIXELS / 8][LEFT][4], lo[SPLIT ? SET_PIXELS / 8 : 1][LEFT][4];
};

// The offsets of a lane's words of 8 pixels. Word i is of row i % 2 * 8 + lane / 4 of the warp's
// 16, and of an even (i / 2 = 0) or odd pixel.
struct LeftReader {
  int place[4];

  device_inline LeftReader() {
    const int thread = static_cast<int>(thread_x()) - HELPING_THREADS;
    const int lane = thread % 32, warp = thread / 32 % 4, group = thread / 128;
    const int slab = group * (GROUP_ROWS / LINE_CHANNELS) + warp / 2;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int filter = warp % 2 * 16 + i % 2 * 8 + lane / 4, pixel = lane % 4 * 2 + i / 2;
      place[i] = slab * SLAB_BYTES + pixel * LINE_BYTES + (filter * 4 ^ pixel * 16);
    }
  }
  device_inline void read(LeftWords& words, const unsigned char* pixels) const {
#pragma unroll
    for (int k = 0; k < SET_PIXELS / 8; ++k)
#pragma unroll
      for (int l = 0; l < LEFT; ++l)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const auto* const word = reinterpret_cast<const u32*>(
              pixels + place[i] + k * (8 * LINE_BYTES) + l * (64 / LINE_CHANNELS * SLAB_BYTES));
          words.hi[k][l][i] = *word;
          if constexpr (SPLIT) {
            const HiLo parts = split(float_of(*word));
            words.hi[k][l][i] = bits_of(parts.hi), words.lo[k][l][i] = bits_of(parts.lo);
          }
        }
  }
};

// Steps of f32.
class TurnedSteps {
  Barriers& barriers_;
  const unsigned char* memory_;
  LeftReader reader_;
  SharedMatrix rights_;
  Products products_;
  LeftWords words_[2];  // one set is read while the previous one is multiplied
  Ring<STAGES> ring_{0};
  Ring<TURNED_SLOTS> slots_{0};
  int before_ = -1;     // the slot of the previous step, whose products may still be running
  bool fresh_ = false;  // the next products overwrite the sums instead of adding to them

 public:
  device_inline TurnedSteps(unsigned char* memory, Barriers& barriers, int)
      : barriers_(barriers),
        memory_(memory),
        rights_(SharedMatrix::swizzled<LINE_BYTES>(memory + TURNED_AT, 8 * LINE_BYTES)) {}

  // For 3xTF32, the first products of a run overwrite the sums.
  device_inline void start_run() { fresh_ = SPLIT; }
  // Starts the products of the next step.
  template <class AnySums>
  device_inline void multiply(AnySums& sums, bool) {
    barriers_.landed[ring_.stage].wait(ring_.parity);
    const unsigned char* const pixels = memory_ + ring_.stage * STAGE_BYTES;
    const SharedMatrix right = rights_.moved(slots_.stage * TURNED_BYTES);
#pragma unroll
    for (int set = 0; set < SETS; ++set) {
      LeftWords& words = words_[set % 2];
      reader_.read(words, pixels + set * (SET_PIXELS * LINE_BYTES));
      if (set == 0) barriers_.turned[slots_.stage].wait(slots_.parity);
      products_.begin();
#pragma unroll
      for (int k = 0; k < SET_PIXELS / 8; ++k)
        multiply_from<0>(sums, words, k,
                         right.moved(set / 2 * (BLOCK_RIGHT * LINE_BYTES) +
                                     (set % 2 * (SET_PIXELS / 8) + k) * 32),
                         !SPLIT || set > 0 || k > 0 || !fresh_);
      products_.commit();
      if (set + 1 == SETS && first_lane()) barriers_.free[ring_.stage].arrive();
      products_.template wait<1>();
      if (set == 0) release();
    }
    fresh_ = false;
    before_ = slots_.stage;
    ring_.advance();
    slots_.advance();
  }
  // Waits until the sums include all steps so far. There must have been at least one.
  device_inline void settle() {
    products_.template wait<0>();
    release();
    before_ = -1;
  }

 private:
  // The products over 8 pixels. `add`: whether they are added to the sums.
  template <int L, class AnySums>
  device_inline void multiply_from(AnySums& sums, const LeftWords& left, int k,
                                   const SharedMatrix& right, bool add) {
    if constexpr (SPLIT) {
      products_.template multiply<false, L>(sums, left.lo[k][L], right, add);
      products_.template multiply<false, L>(sums, left.hi[k][L], right.moved(TURNED_PART));
    }
    products_.template multiply<false, L>(sums, left.hi[k][L], right);
    if constexpr (L + 1 < LEFT) multiply_from<L + 1>(sums, left, k, right, add);
  }
  device_inline static bool first_lane() { return thread_x() % 32 == 0; }
  device_inline void release() {
    if (first_lane() && before_ >= 0) barriers_.read[before_].arrive();
  }
};
