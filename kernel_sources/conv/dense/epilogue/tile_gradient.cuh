// The gradient of an activation behind a normalization, of what a block stores, and its two sums of
// each channel (kernel_sources/conv/gradient). A block keeps its rows from tile to tile (the host
// launches a multiple of ROW_TILES blocks), so that its sums stay in registers.
//
// What it reads, the normalization's x and residual and the tensor that beta scales, comes as
// further steps of the ring after a tile's operands, a line of SLAB_LINE rows of all the tile's
// pixels in each stage: copied while the tile is multiplied, in no memory of its own. Results pass
// through slabs as in the plain kernel; before a slab is stored, each warp walks over the lines
// that it wrote itself, 4 bytes of a line a lane, and turns them into what is stored.
#pragma once

#include "common/activation.cuh"
#include "conv/channel_sums/partial_gradient.cuh"
#include "conv/dense/output.cuh"

struct GradientParams {
  Params dense;
  const void *scale, *bias, *mean, *deviation;  // of the normalization; inverse deviations
  void* partials;  // PartialSums of every row of a tile, of every block
};

constexpr int SETS = BLOCK_RIGHT / SLAB_LINE;          // slabs of a tile for each warpgroup
constexpr int WARPGROUP_LINES = 64 * SLAB_LINE_BYTES;  // bytes of a warpgroup's pixels in a stage
constexpr int NORM_X_MAP = PHASE_MAPS + (RESIDUAL ? 1 : 0), NORM_RESIDUAL_MAP = NORM_X_MAP + 1;
static_assert(PIXELS_LEFT && LINES_LEFT && LEFT == 1 && PHASES == 1 && sizeof(element_t) == 2 &&
              sizeof(output_t) == 2 && SLAB_LINE_BYTES == 128);
static_assert(CONSUMERS * WARPGROUP_LINES <= STAGE_BYTES);

// The further steps: the producer's side.
class GradientLoads {
  const Params& params_;
  unsigned char* memory_;
  Barriers& barriers_;

 public:
  device_inline GradientLoads(const GradientParams& params, unsigned char* memory,
                              Barriers& barriers)
      : params_(params.dense), memory_(memory), barriers_(barriers) {}

  device_inline void operator()(const Tile& tile, Ring& ring) const {
#pragma unroll 1
    for (int set = 0; set < SETS; ++set) {
      if (params_.common.beta != 0)
        load(residual_map(0), RESIDUAL ? Z_IN_LINE : OUT_IN_LINE, tile, set, ring);
      load(NORM_X_MAP, OUT_IN_LINE, tile, set, ring);
      if constexpr (NORM_RESIDUAL) load(NORM_RESIDUAL_MAP, OUT_IN_LINE, tile, set, ring);
    }
  }

 private:
  device_inline void load(int map, bool in_line, const Tile& tile, int set, Ring& ring) const {
    Mbarrier& landed = barriers_.landed[ring.stage];
    barriers_.free[ring.stage].wait(ring.parity);
    landed.arrive_and_expect(static_cast<u32>(CONSUMERS * WARPGROUP_LINES));
    unsigned char* const stage = memory_ + ring.stage * STAGE_BYTES;
#pragma unroll
    for (int group = 0; group < CONSUMERS; ++group)
      OutputPlace(params_, tile, set * SLAB_LINE, group * 64)
          .load_from(params_.maps[map], in_line, stage + group * WARPGROUP_LINES, landed);
    ring.advance();
  }
};

class TileGradient {
  static constexpr int WALKERS = 4 * CONSUMERS;  // warps
  static_assert(WALKERS * TILE_ROWS * static_cast<int>(sizeof(PartialSums)) <=
                    CONSUMERS * SLABS * SLAB_BYTES,
                "they are exchanged where the slabs were");

  const GradientParams& params_;
  unsigned char* memory_;
  u32 group_, pixels_;  // pixels of the whole output
  int lane_, warp_;
  bool adds_;  // beta scales something
  Coefficients<float> coef_;
  // Of the lane's two channels in each set: p = (x - mean) * factor + bias.
  float mean_[SETS][2], factor_[SETS][2], bias_[SETS][2];
  PartialSums sums_[SETS][2] = {};

 public:
  using Loads = GradientLoads;

  device_inline TileGradient(const GradientParams& params, unsigned char* memory, u32 group)
      : params_(params),
        memory_(memory),
        group_(group),
        pixels_(params.dense.common.images * static_cast<u32>(OUT_O[0] * OUT_P[0] * OUT_Q[0])),
        lane_(static_cast<int>(thread_x() % 32)),
        warp_(static_cast<int>(thread_x() / 32 % 4)),
        adds_(params.dense.common.beta != 0),
        coef_(coefficients_of<float>(params.dense.common)) {
    const int row = static_cast<int>(block_x() % ROW_TILES) * TILE_ROWS + lane_ * 2;
#pragma unroll
    for (int set = 0; set < SETS; ++set)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int channel = row + set * SLAB_LINE + i;
        const auto of_channel = [&](const void* from, float without) {
          return channel < GROUPS * ROWS && from != nullptr
                     ? static_cast<const float*>(from)[channel]
                     : without;
        };
        mean_[set][i] = of_channel(params.mean, 0);
        factor_[set][i] = of_channel(params.scale, 1) * of_channel(params.deviation, 0);
        bias_[set][i] = of_channel(params.bias, 0);
      }
  }

  device_inline void store(Store& store, const Sums& sums, const Tile& tile, Ring& ring,
                           Barriers& barriers) {
    const u32 first = tile.first_pixel + group_ * 64;
    const int there = first >= pixels_       ? 0
                      : pixels_ - first < 64 ? static_cast<int>(pixels_ - first)
                                             : 64;
    store_set<0>(store, sums, tile, ring, barriers, there - warp_ * 16);
  }

  // Leaves the block's sums in the workspace. All slabs have been stored.
  device_inline void leave() {
    auto* const exchange = reinterpret_cast<PartialSums*>(memory_ + SLABS_AT);
    named_barrier<128 * CONSUMERS>(1 + CONSUMERS);
    const int walker = static_cast<int>(group_) * 4 + warp_;
#pragma unroll
    for (int set = 0; set < SETS; ++set)
#pragma unroll
      for (int i = 0; i < 2; ++i)
        exchange[walker * TILE_ROWS + set * SLAB_LINE + lane_ * 2 + i] = sums_[set][i];
    named_barrier<128 * CONSUMERS>(1 + CONSUMERS);
    auto* const to =
        static_cast<PartialSums*>(params_.partials) + static_cast<u64>(block_x()) * TILE_ROWS;
#pragma unroll 1
    for (int row = static_cast<int>(thread_x()) - 128; row < TILE_ROWS; row += 128 * CONSUMERS) {
      PartialSums all{};
#pragma unroll
      for (int i = 0; i < WALKERS; ++i) all.join(exchange[i * TILE_ROWS + row]);
      to[row] = all;
    }
  }

 private:
  // Waits for the next step, and returns its stage.
  device_inline static int arrived(Ring& ring, Barriers& barriers) {
    const int stage = ring.stage;
    barriers.landed[stage].wait(ring.parity);
    ring.advance();
    return stage;
  }
  device_inline const unsigned char* lines_in(int stage) const {
    return memory_ + stage * STAGE_BYTES + group_ * WARPGROUP_LINES;
  }

  // `there`: how many of the warp's lines are pixels of the tensor, and those that follow.
  template <int SET>
  device_inline void store_set(Store& store, const Sums& sums, const Tile& tile, Ring& ring,
                               Barriers& barriers, int there) {
    constexpr int FIRST = SET * SLAB_LINE / 8;
    const int z = adds_ ? arrived(ring, barriers) : 0, x = arrived(ring, barriers),
              residual = NORM_RESIDUAL ? arrived(ring, barriers) : x;
    store.template store_turned<0, FIRST, FIRST + SLAB_LINE / 8>(
        sums, OutputPlace(params_.dense, tile, FIRST * 8, static_cast<int>(group_) * 64),
        adds_ ? lines_in(z) : nullptr, [&](unsigned char* slab) {
          turn<SET>(slab, lines_in(x), lines_in(residual), there);
          warp_barrier();
          if (lane_ == 0) {
            if (adds_) barriers.free[z].arrive();
            barriers.free[x].arrive();
            if constexpr (NORM_RESIDUAL) barriers.free[residual].arrive();
          }
        });
    if constexpr (SET + 1 < SETS) store_set<SET + 1>(store, sums, tile, ring, barriers, there);
  }

  // Turns the warp's lines of a slab into gradients.
  template <int SET>
  device_inline void turn(unsigned char* slab, const unsigned char* x,
                          const unsigned char* residual, int there) {
    if (there >= 16) {
      turn_lines<SET, 8>(slab, x, residual, 0);
      turn_lines<SET, 8>(slab, x, residual, 8);
    } else {
#pragma unroll 1
      for (int line = 0; line < there; ++line) turn_lines<SET, 1>(slab, x, residual, line);
    }
  }
  template <int SET, int COUNT>
  device_inline void turn_lines(unsigned char* slab, const unsigned char* x,
                                const unsigned char* residual, int first) {
    int at[COUNT];
    u32 results[COUNT], xs[COUNT], residuals[COUNT];
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      at[i] = place_in_block(warp_ * 16 + first + i, lane_ / 4) + lane_ % 4 * 4;
      results[i] = *reinterpret_cast<const u32*>(slab + at[i]);
      xs[i] = *reinterpret_cast<const u32*>(x + at[i]);
      residuals[i] = NORM_RESIDUAL ? *reinterpret_cast<const u32*>(residual + at[i]) : 0;
    }
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
      const element_t low = of<SET, 0>(low_of<element_t>(results[i]), low_of<element_t>(xs[i]),
                                       low_of<element_t>(residuals[i])),
                      high = of<SET, 1>(high_of<element_t>(results[i]), high_of<element_t>(xs[i]),
                                        high_of<element_t>(residuals[i]));
      *reinterpret_cast<u32*>(slab + at[i]) = packed(low, high);
    }
  }
  // The gradient of a result, which is added to the sums.
  template <int SET, int I>
  device_inline element_t of(element_t result, element_t x, element_t residual) {
    const float centered = to_compute(x) - mean_[SET][I];
    float p = math_fma(centered, factor_[SET][I], bias_[SET][I]);
    if constexpr (NORM_RESIDUAL) p += to_compute(residual);
    float g = to_compute(result);
    if constexpr (GRADIENT_OF == Act::RELU)
      g = p <= 0.0f ? 0.0f : g;
    else if constexpr (GRADIENT_OF != Act::IDENTITY)
      g *= activation_slope<GRADIENT_OF, true>(
          GRADIENT_FROM_OUTPUT ? activate<GRADIENT_OF, true>(p, coef_) : p, coef_);
    const element_t rounded = from_compute<element_t>(g);
    sums_[SET][I].add(to_compute(rounded), centered);
    return rounded;
  }
};
