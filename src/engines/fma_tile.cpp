#include "engines/fma_tile.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace kiln {
namespace {

// A thread's THREAD_M x THREAD_N sums need THREAD_M + THREAD_N operands from shared memory a step:
// the larger the product against the sum, the more issue slots are left for FMAs.
constexpr FmaTile single_tiles[] = {
    {128, 128, 8, 8, 8, 4, 2, 80, 0.94},
    {96, 256, 8, 12, 8, 4, 1, 0, 0.92},
    {64, 256, 8, 8, 8, 4, 2, 90, 0.85},
    {32, 256, 8, 4, 8, 4, 2, 0, 0.70},
};

constexpr FmaTile double_tiles[] = {
    {128, 128, 8, 8, 8, 3, 1, 0, 0.90},
    {96, 128, 8, 6, 8, 3, 1, 0, 0.86},
    {64, 128, 8, 4, 8, 3, 2, 90, 0.80},
    {32, 128, 8, 4, 4, 3, 2, 0, 0.60},
};

// 16-bit elements wait in registers between global and shared memory: two stages.
constexpr FmaTile half_tiles[] = {
    {128, 128, 8, 8, 8, 2, 2, 0, 0.80},
    {64, 128, 8, 4, 8, 2, 2, 0, 0.72},
    {32, 256, 8, 4, 8, 2, 2, 0, 0.65},
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The share of the device that works while `blocks` equal blocks run, `resident` of them at once on
// a multiprocessor. The fullest multiprocessor sets the time. Blocks of the first wave are dealt
// one to each; those of the last go where blocks end, which may be evenly, or two by two where two
// ended together: both have been seen, so the mean of both is taken.
double busy_share(std::int64_t blocks, int resident, std::int64_t multiprocessors) {
  constexpr double lone_block = 0.87;  // where two were meant to hide each other's latency
  const auto share = [&](std::int64_t slots) {
    return static_cast<double>(blocks) / static_cast<double>(ceil_div(blocks, slots) * slots);
  };
  const double even = share(multiprocessors);
  if (resident == 1) return even;
  if (blocks <= multiprocessors) return even * lone_block;
  return (even + share(resident * multiprocessors)) / 2;
}

}  // namespace

std::span<const FmaTile> fma_tiles(DataType type) {
  switch (type) {
    case KILN_DATA_DOUBLE: return double_tiles;
    case KILN_DATA_FLOAT: return single_tiles;
    default: return half_tiles;
  }
}

FmaTile choose_fma_tile(const ConvolutionProblem& problem) {
  const std::int64_t filters = problem.group_out();
  const auto score = [&](const FmaTile& tile) {
    const std::int64_t padded = ceil_div(filters, tile.m) * tile.m;
    return tile.efficiency * static_cast<double>(filters) / static_cast<double>(padded);
  };
  const std::span<const FmaTile> tiles = fma_tiles(problem.type);
  return *std::max_element(tiles.begin(), tiles.end(),
                           [&](const FmaTile& a, const FmaTile& b) { return score(a) < score(b); });
}

int choose_reduction_parts(const ConvolutionProblem& problem, const FmaTile& tile,
                           std::int64_t tiles, const DeviceDescription& device) {
  if (device.kind == KILN_DEVICE_CUDA && device.compute_capability < 90) return 1;
  // Against more parts stand how clusters pack into the chip's processing clusters, and a fixed
  // cost a part (filling the pipeline, exchanging sums).
  struct Choice {
    int parts;
    double packing;  // measured on an H200, two and one block a multiprocessor
    double packing_alone;
  };
  constexpr Choice choices[] = {{1, 1, 1}, {2, 0.99, 0.985}, {4, 0.91, 0.865}, {8, 0.84, 0.80}};
  constexpr double fixed_k_tiles = 12;
  constexpr std::int64_t least_k_tiles = 16;  // below, a part is mostly overhead

  const auto k_tiles = static_cast<double>(ceil_div(problem.group_in() * problem.taps(), tile.k));
  int best = 1;
  double best_rate = 0;
  for (const Choice& choice : choices) {
    if (choice.parts > 1 && k_tiles < static_cast<double>(least_k_tiles * choice.parts)) break;
    const std::int64_t blocks = tiles * choice.parts;
    double rate = busy_share(blocks, tile.min_blocks, device.multiprocessors);
    rate *= tile.min_blocks > 1 ? choice.packing : choice.packing_alone;
    const double part = k_tiles / choice.parts;
    rate *= part / (part + fixed_k_tiles);
    if (rate > best_rate) best = choice.parts, best_rate = rate;
  }
  return best;
}

std::string describe(const FmaTile& tile) {
  return cat(tile.m, "x", tile.n, "x", tile.k, ", ", tile.thread_m, "x", tile.thread_n,
             " a thread, 256 threads, ", tile.stages, " stages");
}

}  // namespace kiln
