// The moments of each channel of what a block stores. A block keeps its rows from tile to tile
// (the host launches a multiple of ROW_TILES blocks), so that its sums stay in registers.
//
// Results pass through slabs in the output's type. While a slab is being stored, each warp walks
// over the lines that it wrote itself, 4 bytes of a line a lane: with pixels as operand A a line of
// 128 bytes at a time, with filters as operand A the warp's 16 rows of 2 (f32) or 4 lines. Neither
// case has bank conflicts.
#pragma once

#include "conv/channel_sums/partial_moments.cuh"
#include "conv/dense/loads.cuh"
#include "conv/dense/output.cuh"

struct MomentsParams {
  Params dense;
  void* partials;  // PartialMoments of every row of a tile, for every block
};

class TileMoments {
  static constexpr int WIDTH = 4 / static_cast<int>(sizeof(element_t));  // results of 4 bytes
  static constexpr int WORDS = PIXELS_LEFT ? 32 : 16 / WIDTH;            // of a line, of a warp
  static constexpr int STREAMS = 32 / WORDS;                             // lines at a time
  static constexpr int LINES = 8 / STREAMS;  // of a lane, of 8 lines that follow each other
  static constexpr int TURNS = PIXELS_LEFT ? 2 : BLOCK_RIGHT / 8;            // of so many lines
  static constexpr int SETS = PIXELS_LEFT ? BLOCK_RIGHT / SLAB_LINE : LEFT;  // of a lane's rows
  // Who has elements of the same row: warps, or the streams of one.
  static constexpr int WALKERS = PIXELS_LEFT ? 4 * CONSUMERS : STREAMS;
  static_assert(PIXELS_LEFT == LINES_LEFT && SLAB_LINE_BYTES == 128 && PHASES == 1);
  static_assert(WALKERS * (TILE_ROWS * static_cast<int>(sizeof(PartialMoments)) + 4) <=
                    CONSUMERS * SLABS * SLAB_BYTES,
                "they are exchanged where the slabs were");

  const MomentsParams& params_;
  unsigned char* slabs_;  // of all warpgroups
  u32 group_, pixels_;    // pixels of the whole output
  int lane_, warp_, slab_ = 0;
  bool waits_;  // the next slab's residual is loaded while others may still read this slab
  ShiftedSums sums_[SETS][WIDTH];
  u32 n_ = 0;  // elements of each row so far

 public:
  using Loads = NoLoads;

  device_inline TileMoments(const MomentsParams& params, unsigned char* memory, u32 group)
      : params_(params),
        slabs_(memory + SLABS_AT),
        group_(group),
        pixels_(params.dense.common.images * static_cast<u32>(OUT_O[0] * OUT_P[0] * OUT_Q[0])),
        lane_(static_cast<int>(thread_x() % 32)),
        warp_(static_cast<int>(thread_x() / 32 % 4)),
        waits_(SLABS == 1 && params.dense.common.beta != 0) {}

  // Stores the sums of a tile, and adds what is stored to the moments.
  device_inline void store(Store& store, const Sums& sums, const Tile& tile, Ring&, Barriers&) {
    store_tile<0>(store, sums, params_.dense, tile);
  }

  // Leaves the block's moments in the workspace. All slabs have been stored.
  device_inline void leave() {
    auto* const exchange = reinterpret_cast<PartialMoments*>(slabs_);
    auto* const counts = reinterpret_cast<u32*>(exchange + WALKERS * TILE_ROWS);
    named_barrier<128 * CONSUMERS>(1 + CONSUMERS);
    const int stream = lane_ / WORDS, word = lane_ % WORDS;
    const int walker = PIXELS_LEFT ? static_cast<int>(group_) * 4 + warp_ : stream;
    const int row = PIXELS_LEFT ? 0 : static_cast<int>(group_) * GROUP_ROWS + warp_ * 16;
    constexpr int SET_ROWS = PIXELS_LEFT ? SLAB_LINE : 64;
#pragma unroll
    for (int set = 0; set < SETS; ++set)
#pragma unroll
      for (int i = 0; i < WIDTH; ++i)
        exchange[walker * TILE_ROWS + row + set * SET_ROWS + word * WIDTH + i] =
            sums_[set][i].moments(static_cast<float>(n_));
    if (word == 0 && (PIXELS_LEFT || (group_ == 0 && warp_ == 0))) counts[walker] = n_;
    named_barrier<128 * CONSUMERS>(1 + CONSUMERS);
    const u32 part = block_x() / ROW_TILES, column = block_x() % ROW_TILES;
    auto* const to = static_cast<PartialMoments*>(params_.partials) +
                     static_cast<u64>(part * ROW_TILES + column) * TILE_ROWS;
#pragma unroll 1
    for (int i = static_cast<int>(thread_x()) - 128; i < TILE_ROWS; i += 128 * CONSUMERS)
      to[i] = joined(exchange + i, counts);
  }

 private:
  device_inline static u32 at_most_512(u32 pixels) { return pixels < 512 ? pixels : 512; }

  template <int L>
  device_inline void store_tile(Store& store, const Sums& sums, const Params& params,
                                const Tile& tile) {
    const int left = static_cast<int>(group_) * GROUP_ROWS + L * 64;
    // The tensor's pixels from the slab's first one on.
    const u32 first = tile.first_pixel + static_cast<u32>(PIXELS_LEFT ? left : 0);
    const int there = first < pixels_ ? static_cast<int>(at_most_512(pixels_ - first)) : 0;
    if constexpr (PIXELS_LEFT) {
      store_lines_of<L, 0>(store, sums, params, tile, left, there);
    } else {
      store.template store<L, 0, BLOCK_RIGHT / 8>(sums, OutputPlace(params, tile, left, 0), true);
      add_slab<L>(there);
    }
    if constexpr (PIXELS_LEFT || L + 1 == LEFT) n_ += lines_of(there);
    if constexpr (L + 1 < LEFT) store_tile<L + 1>(store, sums, params, tile);
  }

  template <int L, int SET>
  device_inline void store_lines_of(Store& store, const Sums& sums, const Params& params,
                                    const Tile& tile, int left, int there) {
    constexpr int FIRST = SET * SLAB_LINE / 8;
    store.template store<L, FIRST, FIRST + SLAB_LINE / 8>(
        sums, OutputPlace(params, tile, FIRST * 8, left), true);
    add_slab<SET>(there);
    if constexpr (SET + 1 < SETS)
      store_lines_of<L, SET + 1>(store, sums, params, tile, left, there);
  }

  // A lane has line first_line() + turn * 8 + i of the slab, for each turn and i below LINES.
  device_inline int first_line() const { return PIXELS_LEFT ? warp_ * 16 : lane_ / WORDS * LINES; }
  // How many of them are among the slab's first `there` ones.
  device_inline u32 lines_of(int there) const {
    const int left = there - first_line();
    if (left <= 0) return 0;
    const int turns = left / 8;
    if (turns >= TURNS) return TURNS * LINES;
    const int rest = left % 8;
    return static_cast<u32>(turns * LINES + (rest < LINES ? rest : LINES));
  }

  device_inline u32 word_at(const unsigned char* slab, int line) const {
    // The warp's place in a line, in results.
    const int first = PIXELS_LEFT ? 0 : warp_ * 16;
    const int word = first % SLAB_LINE / WIDTH + lane_ % WORDS;
    return *reinterpret_cast<const u32*>(slab + first / SLAB_LINE * SLAB_BLOCK_BYTES +
                                         place_in_block(line, word / 4) + word % 4 * 4);
  }

  template <int SET, class Each>
  device_inline void each_result(u32 word, const Each& each) {
    if constexpr (WIDTH == 1) {
      each(sums_[SET][0], math_of_bits(word));
    } else {
      each(sums_[SET][0], to_compute(low_of<output_t>(word)));
      each(sums_[SET][WIDTH - 1], to_compute(high_of<output_t>(word)));
    }
  }

  // Adds the first `there` lines of the slab that was stored last.
  template <int SET>
  device_inline void add_slab(int there) {
    const unsigned char* const slab =
        slabs_ + (group_ * SLABS + static_cast<u32>(slab_)) * SLAB_BYTES;
    if (++slab_ == SLABS) slab_ = 0;
    const int first = first_line();
    const auto add = [&](u32 word) {
      each_result<SET>(word, [](ShiftedSums& sums, float x) { sums.add(x); });
    };
    if (n_ == 0 && first < there)
      each_result<SET>(word_at(slab, first), [](ShiftedSums& sums, float x) { sums.shift = x; });
    if (first + (TURNS - 1) * 8 + LINES <= there) {
#pragma unroll(8 / LINES)
      for (int turn = 0; turn < TURNS; ++turn) {
        u32 words[LINES];
#pragma unroll
        for (int i = 0; i < LINES; ++i) words[i] = word_at(slab, first + turn * 8 + i);
#pragma unroll
        for (int i = 0; i < LINES; ++i) add(words[i]);
      }
    } else {
#pragma unroll 1
      for (int turn = 0; turn < TURNS; ++turn)
#pragma unroll 1
        for (int i = 0; i < LINES; ++i)
          if (first + turn * 8 + i < there) add(word_at(slab, first + turn * 8 + i));
    }
    if (waits_) named_barrier<128>(1 + group_);
  }

  // The moments of a row from those of the walkers, in their order.
  device_inline static PartialMoments joined(const PartialMoments* own, const u32* counts) {
    u32 n = 0;
#pragma unroll
    for (int i = 0; i < WALKERS; ++i) n += counts[i];
    const float share = 1.0f / static_cast<float>(n);
    const float shift = own->shift;
    float mean = 0;
#pragma unroll
    for (int i = 0; i < WALKERS; ++i)
      if (counts[i] > 0)
        mean =
            math_fma(static_cast<float>(counts[i]) * share, own[i * TILE_ROWS].from(shift), mean);
    float m2 = 0;
#pragma unroll
    for (int i = 0; i < WALKERS; ++i) {
      if (counts[i] == 0) continue;
      const float d = own[i * TILE_ROWS].from(shift) - mean;
      m2 += math_fma(d * d, static_cast<float>(counts[i]), own[i * TILE_ROWS].m2);
    }
    return {shift, mean, m2};
  }
};
