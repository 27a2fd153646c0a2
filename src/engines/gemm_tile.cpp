#include "engines/gemm_tile.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace kiln {
namespace {

// A thread's THREAD_M x THREAD_N sums need THREAD_M + THREAD_N operands from shared memory a step:
// the larger the product against the sum, the more issue slots are left for FMAs.
constexpr GemmTile single_tiles[] = {
    {128, 128, 8, 8, 8, 4, 2, 80, 0.94},
    {96, 256, 8, 12, 8, 4, 1, 0, 0.92},
    {64, 256, 8, 8, 8, 4, 2, 90, 0.85},
    {32, 256, 8, 4, 8, 4, 2, 0, 0.70},
};

constexpr GemmTile double_tiles[] = {
    {128, 128, 8, 8, 8, 3, 1, 0, 0.90},
    {96, 128, 8, 6, 8, 3, 1, 0, 0.86},
    {64, 128, 8, 4, 8, 3, 2, 90, 0.80},
    {32, 128, 8, 4, 4, 3, 2, 0, 0.60},
};

// 16-bit elements wait in registers between global and shared memory: two stages.
constexpr GemmTile half_tiles[] = {
    {128, 128, 8, 8, 8, 2, 2, 90, 0.80},
    {64, 128, 8, 4, 8, 2, 2, 0, 0.72},
    {32, 256, 8, 4, 8, 2, 2, 0, 0.65},
};

// Tiles on the tensor cores. A warp's part is 8 THREAD_M x 4 THREAD_N.
constexpr GemmTile mma_single_tiles[] = {
    {128, 128, 16, 8, 8, 4, 1, 0, 0.90, 1, 4},
    {96, 128, 16, 12, 4, 4, 1, 0, 0.84, 1, 2},
    {64, 128, 16, 4, 8, 4, 1, 0, 0.75, 1, 4},
    {32, 128, 16, 4, 4, 4, 2, 0, 0.55, 1, 2},
};

constexpr GemmTile mma_double_tiles[] = {
    {128, 128, 16, 8, 8, 4, 1, 0, 0.90, 1, 2},
    {96, 128, 16, 12, 4, 4, 1, 0, 0.84, 1, 2},
    {64, 128, 16, 4, 8, 4, 1, 0, 0.75, 1, 2},
    {32, 128, 16, 4, 4, 4, 2, 0, 0.55, 1, 2},
};

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The share of the device that works while `blocks` equal blocks run, `resident` of them at once on
// a multiprocessor. The fullest multiprocessor sets the time. Blocks of the first wave are dealt
// one to each; those of the last go where blocks end, which may be evenly, or two by two where two
// ended together: both have been seen, so the mean of both is taken.
double even_share(std::int64_t blocks, int resident, std::int64_t multiprocessors) {
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

std::span<const GemmTile> fma_tiles(DataType type) {
  switch (type) {
    case KILN_DATA_DOUBLE: return double_tiles;
    case KILN_DATA_FLOAT: return single_tiles;
    default: return half_tiles;
  }
}

std::vector<GemmTile> mma_tiles(const ConvolutionProblem& problem, std::int64_t reduction) {
  const bool is_double = problem.type == KILN_DATA_DOUBLE;
  const std::span<const GemmTile> base =
      is_double ? std::span<const GemmTile>(mma_double_tiles) : mma_single_tiles;
  std::vector<GemmTile> tiles(base.begin(), base.end());
  if (is_double) return tiles;
  const bool split = problem.type == KILN_DATA_FLOAT && problem.math == KILN_MATH_DEFAULT;
  // The tensor cores' sums, rounded toward zero, err with the length of a run between promotions;
  // those of f32 with the square root of the reduction: 5e-7 of a run of 64 products is what f32
  // errs by over 900 of them. Elements of 11 bits lose nothing that counts over some thousands, and
  // without a second set of sums two blocks run on a multiprocessor.
  const bool short_sums = reduction < 1024;
  const std::int64_t longest_run = size_of(problem.type) == 2 ? 4096 : 8192;
  for (GemmTile& tile : tiles) {
    tile.split = split;
    if (split && !short_sums) tile.k = 32, tile.stages = 3;
    if (size_of(problem.type) == 2) tile.stages = 2;
    if (split)
      tile.promote = (short_sums ? 16 : 64) / tile.k;
    else if (reduction > longest_run)
      tile.promote = 256 / tile.k;
    else
      tile.min_blocks = 2;
  }
  return tiles;
}

std::string mma_refusal(const ConvolutionProblem& problem, std::int64_t reduction,
                        const DeviceDescription& device) {
  if (problem.math == KILN_MATH_STRICT) return "the math mode is strict";
  // The split's own error is that of f32 sums of so many products.
  constexpr std::int64_t least_split = 128;
  if (problem.type == KILN_DATA_FLOAT && problem.math == KILN_MATH_DEFAULT &&
      reduction < least_split)
    return cat(reduction, " products a sum; below ", least_split,
               " fused multiply-adds err less than three products of 11-bit parts");
  if (device.kind == KILN_DEVICE_HOST) return "";
  const int capability = device.compute_capability;
  // Chips for graphics have tensor cores for f64 in name alone.
  const bool enough = problem.type == KILN_DATA_DOUBLE
                          ? capability == 80 || capability == 90 || capability == 100
                          : capability >= 80;
  return enough ? "" : cat(device.arch, " has no tensor cores for ", name_of(problem.type));
}

GemmTile choose_gemm_tile(std::span<const GemmTile> tiles, std::int64_t rows) {
  const auto score = [&](const GemmTile& tile) {
    const std::int64_t padded = ceil_div(rows, tile.m) * tile.m;
    return tile.efficiency * static_cast<double>(rows) / static_cast<double>(padded);
  };
  return *std::max_element(tiles.begin(), tiles.end(), [&](const GemmTile& a, const GemmTile& b) {
    return score(a) < score(b);
  });
}

namespace {

// Against more parts stand how clusters pack into the chip's processing clusters, and a fixed cost
// a part (filling the pipeline, exchanging sums).
struct Choice {
  int parts;
  double packing;  // measured on an H200, two and one block a multiprocessor
  double packing_alone;
};
constexpr Choice choices[] = {
    {1, 1, 1}, {2, 0.99, 0.985}, {4, 0.91, 0.865}, {8, 0.84, 0.80}, {16, 0.80, 0.78}};

}  // namespace

double busy_share(const GemmTile& tile, std::int64_t tiles, int parts,
                  const DeviceDescription& device) {
  const auto* const choice = std::find_if(std::begin(choices), std::end(choices),
                                          [&](const Choice& c) { return c.parts == parts; });
  return even_share(tiles * parts, tile.min_blocks, device.multiprocessors) *
         (tile.min_blocks > 1 ? choice->packing : choice->packing_alone);
}

int choose_reduction_parts(const GemmTile& tile, std::int64_t tiles, std::int64_t k_tiles,
                           const DeviceDescription& device, bool large, double largest) {
  constexpr double fixed_k_tiles = 12;
  constexpr std::int64_t least_k_tiles = 16;  // below, a part is mostly overhead

  const auto steps = static_cast<double>(k_tiles) / tile.slices;
  int best = 1;
  double best_rate = 0;
  for (const Choice& choice : choices) {
    if (choice.parts > 1 && steps < static_cast<double>(least_k_tiles * choice.parts)) break;
    if (choice.parts > (large ? device.largest_cluster : std::min(device.largest_cluster, 8)))
      break;
    double rate = busy_share(tile, tiles, choice.parts, device);
    if (largest > 1) {
      // The longest work begins first, so that what ends last is about half of it late.
      const double blocks_a_slot =
          static_cast<double>(tiles * choice.parts) / (device.multiprocessors * tile.min_blocks);
      rate = blocks_a_slot / (blocks_a_slot + largest / 2) *
             (tile.min_blocks > 1 ? choice.packing : choice.packing_alone);
    }
    const double part = steps / choice.parts;
    rate *= part / (part + fixed_k_tiles);
    if (rate > best_rate) best = choice.parts, best_rate = rate;
  }
  return best;
}

GemmStages::GemmStages(const GemmTile& tile, DataType type, bool m_lanes_on_k, bool n_lanes_on_k)
    : vector(static_cast<int>(16 / size_of(compute_type(type)))),
      pitch_m(tile.m + (tile.mma()     ? 2 * vector
                        : m_lanes_on_k ? vector
                                       : 0)),
      pitch_n(tile.n + (tile.mma()     ? 2 * vector
                        : n_lanes_on_k ? vector
                                       : 0)) {}

std::uint32_t GemmStages::bytes(const GemmTile& tile, DataType type) const {
  return static_cast<std::uint32_t>(tile.slices * tile.stages * tile.k * (pitch_m + pitch_n)) *
         static_cast<std::uint32_t>(size_of(compute_type(type)));
}

void add_gemm_constants(std::vector<Constant>& constants, const GemmTile& tile,
                        const GemmStages& stages, DataType type, const DeviceDescription& device) {
  const auto add = [&](const char* name, std::int64_t value, const char* comment = "") {
    constants.push_back({name, value, comment});
  };
  add("TILE_M", tile.m, "rows");
  add("TILE_N", tile.n, "columns");
  add("TILE_K", tile.k);
  add("THREAD_M", tile.thread_m);
  add("THREAD_N", tile.thread_n);
  add("LANES_M", tile.mma() ? 8 : 4, "of a warp");
  add("LANES_N", tile.mma() ? 4 : 8);
  add("RUN_M", stages.vector, "rows side by side");
  add("RUN_N", tile.mma() ? 2 * tile.mma_vector_n : stages.vector);
  if (tile.mma()) {
    constants.push_back({"SPLIT", tile.split, "f32 in three products"});
    add("PROMOTE", tile.promote, "stages");
    constants.push_back({"PROMOTE_LOCAL", false, ""});
  }
  add("STAGES", tile.stages);
  add("SLICES", tile.slices);
  add("SLICE_THREADS", tile.slice_threads());
  const bool packs =
      device.kind == KILN_DEVICE_HOST || device.compute_capability >= tile.packs_from;
  add("MIN_BLOCKS", packs ? tile.min_blocks : 1);
  add("VECTOR", stages.vector, "compute_t in 16 bytes");
  add("PITCH_M", stages.pitch_m);
  add("PITCH_N", stages.pitch_n);
  constants.push_back({"ASYNC", type == compute_type(type), "element_t is compute_t"});
}

std::string describe(const GemmTile& tile) {
  return cat(tile.m, "x", tile.n, "x", tile.k, ", ", tile.thread_m, "x", tile.thread_n,
             " a thread, ", tile.threads(), " threads, ", tile.stages, " stages",
             tile.split ? ", 3 products" : "",
             tile.slices > 1 ? cat(", ", tile.slices, " slices") : "");
}

}  // namespace kiln
