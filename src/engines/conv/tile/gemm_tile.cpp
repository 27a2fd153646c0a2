#include "engines/conv/tile/gemm_tile.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace kiln {
namespace {

// A thread's THREAD_M x THREAD_N accumulators need THREAD_M + THREAD_N operands from shared memory
// each step: the larger the product is against the sum, the more issue slots are left for FMAs.
// Blocks of small tiles share a multiprocessor, hide each other's waits and spread uneven work
// better.
constexpr GemmTile single_tiles[] = {
    packed(2, 80, {.m = 128, .n = 128, .k = 16, .thread_m = 8, .thread_n = 8, .stages = 2}),
    packed(3, 90, {.m = 96, .n = 128, .k = 8, .thread_m = 12, .thread_n = 8, .stages = 4}),
    packed(4, 90, {.m = 64, .n = 128, .k = 16, .thread_m = 8, .thread_n = 8, .stages = 2}),
    packed(4, 90, {.m = 128, .n = 64, .k = 16, .thread_m = 8, .thread_n = 8, .stages = 2}),
    {.m = 32, .n = 256, .k = 8, .thread_m = 4, .thread_n = 8, .stages = 4, .min_blocks = 2},
    {.m = 64, .n = 64, .k = 8, .thread_m = 4, .thread_n = 8, .stages = 4, .min_blocks = 4},
};

constexpr GemmTile double_tiles[] = {
    {.m = 128, .n = 128, .k = 8, .thread_m = 8, .thread_n = 8, .stages = 3},
    {.m = 96, .n = 128, .k = 8, .thread_m = 6, .thread_n = 8, .stages = 3},
    packed(2, 90, {.m = 64, .n = 128, .k = 8, .thread_m = 4, .thread_n = 8, .stages = 3}),
    {.m = 32, .n = 128, .k = 8, .thread_m = 4, .thread_n = 4, .stages = 3, .min_blocks = 2},
};

// 16-bit elements pass through registers between global and shared memory, so two stages suffice.
constexpr GemmTile half_tiles[] = {
    packed(2, 90, {.m = 128, .n = 128, .k = 8, .thread_m = 8, .thread_n = 8, .stages = 2}),
    {.m = 64, .n = 128, .k = 8, .thread_m = 4, .thread_n = 8, .stages = 2, .min_blocks = 2},
    {.m = 32, .n = 256, .k = 8, .thread_m = 4, .thread_n = 8, .stages = 2, .min_blocks = 2},
};

// Tiles for the tensor cores. A warp computes 8 THREAD_M x 4 THREAD_N.
constexpr GemmTile mma_single_tiles[] = {
    {.m = 128, .n = 128, .k = 16, .thread_m = 8, .thread_n = 8, .stages = 4},
    {.m = 96, .n = 128, .k = 16, .thread_m = 12, .thread_n = 4, .stages = 4},
    {.m = 64, .n = 128, .k = 16, .thread_m = 4, .thread_n = 8, .stages = 4},
    {.m = 32, .n = 128, .k = 16, .thread_m = 4, .thread_n = 4, .stages = 4, .min_blocks = 2},
    {.m = 64, .n = 64, .k = 16, .thread_m = 4, .thread_n = 8, .stages = 4, .min_blocks = 3},
};

// 3xTF32: several blocks of four warps on a multiprocessor do better than one of eight, which waits
// for itself at every barrier.
constexpr GemmTile mma_split_tiles[] = {
    {.m = 128, .n = 64, .k = 16, .thread_m = 8, .thread_n = 8, .stages = 4, .min_blocks = 2},
    {.m = 96, .n = 128, .k = 16, .thread_m = 12, .thread_n = 4, .stages = 4},
    {.m = 32, .n = 128, .k = 16, .thread_m = 4, .thread_n = 4, .stages = 4, .min_blocks = 2},
    {.m = 64, .n = 64, .k = 16, .thread_m = 4, .thread_n = 8, .stages = 4, .min_blocks = 3},
};

// f64: several small blocks, for the same reason. Fewer stages leave more of L1, through which
// elements are gathered.
constexpr GemmTile mma_double_tiles[] = {
    {.m = 128, .n = 64, .k = 16, .thread_m = 8, .thread_n = 8, .stages = 2, .min_blocks = 2},
    {.m = 64, .n = 128, .k = 16, .thread_m = 8, .thread_n = 8, .stages = 3, .min_blocks = 2},
    {.m = 96, .n = 64, .k = 16, .thread_m = 12, .thread_n = 4, .stages = 3, .min_blocks = 2},
    {.m = 64, .n = 64, .k = 16, .thread_m = 4, .thread_n = 8, .stages = 2, .min_blocks = 3},
    {.m = 32, .n = 128, .k = 16, .thread_m = 4, .thread_n = 4, .stages = 4, .min_blocks = 2},
};

}  // namespace

void add_sum_registers(std::vector<Constant>& constants, int left, int right, bool totals,
                       const char* type) {
  std::string products, rights;
  for (int r = 0; r < right; ++r) rights += cat(r == 0 ? "" : " ", "X(", r, ")");
  for (int l = 0; l < left; ++l)
    for (int r = 0; r < right; ++r)
      products += cat(l + r == 0 ? "" : " ", "X(sums, ", l, ", ", r, ")");
  const auto add = [&](const char* name, std::string text) {
    constants.push_back({name, MacroText{std::move(text)}, ""});
  };
  add("SUM_TYPE", cat("\"", type, "\""));
  add("EACH_PRODUCT(X, sums)", std::move(products));
  add("EACH_RIGHT(X)", std::move(rights));
  add("STORED_SUMS", totals ? "\"t\"" : "\"s\"");
}

std::vector<GemmTile> fma_tiles(DataType type) {
  switch (type) {
    case KILN_DATA_DOUBLE: return {std::begin(double_tiles), std::end(double_tiles)};
    case KILN_DATA_FLOAT: return {std::begin(single_tiles), std::end(single_tiles)};
    default: return {std::begin(half_tiles), std::end(half_tiles)};
  }
}

std::vector<GemmTile> mma_tiles(const ConvolutionProblem& problem, std::int64_t reduction) {
  const bool split = is_split(problem), is_double = problem.type() == KILN_DATA_DOUBLE;
  std::span<const GemmTile> base = mma_single_tiles;
  if (split) base = mma_split_tiles;
  if (is_double) base = mma_double_tiles;
  std::vector<GemmTile> tiles(base.begin(), base.end());
  for (GemmTile& tile : tiles) tile.mma_vector_n = std::min(tile.thread_n / 2, is_double ? 2 : 4);
  if (is_double) return tiles;
  // With operands of 11 bits, sums of some thousands of products need no promotion: the loss is
  // negligible, and without registers for totals two blocks fit on a multiprocessor.
  const bool short_sums = reduction < 1024;
  const std::int64_t longest_run = size_of(problem.type()) == 2 ? 4096 : 8192;
  for (GemmTile& tile : tiles) {
    tile.split = split;
    if (split && !short_sums) tile.k = 32, tile.stages = 3;
    if (size_of(problem.type()) == 2) tile.stages = 2;
    if (split)
      tile.promote = static_cast<int>(promotion_run(reduction)) / tile.k;
    else if (reduction > longest_run)
      tile.promote = 256 / tile.k;
    else
      tile.min_blocks = std::max(tile.min_blocks, 2);
  }
  return tiles;
}

Refusal stages_refusal(std::uint32_t bytes, const DeviceDescription& device) {
  if (bytes <= static_cast<std::uint32_t>(device.shared_memory_per_block)) return {};
  return cat("the tile needs ", bytes, " bytes of shared memory; a block has at most ",
             device.shared_memory_per_block);
}

Refusal mma_refusal(const ConvolutionProblem& problem, std::int64_t reduction,
                    const DeviceDescription& device) {
  if (problem.math == KILN_MATH_STRICT)
    return Refusal{"the math mode is strict, which keeps off the tensor cores"};
  // At this number of products, 3xTF32's own error equals that of f32 sums.
  constexpr std::int64_t least_split = 128;
  if (is_split(problem) && reduction < least_split)
    return Refusal{
        cat("each output is a sum of ", reduction, " products; below ", least_split,
            " plain f32 arithmetic is more accurate than f32 split for the tensor cores")};
  if (device.kind == KILN_DEVICE_HOST) return {};
  const int capability = device.compute_capability;
  // Graphics chips run f64 tensor instructions at the rate of their few FMA units.
  const bool enough = problem.type() == KILN_DATA_DOUBLE
                          ? capability == 80 || capability == 90 || capability == 100
                          : capability >= 80;
  if (enough) return {};
  return Refusal{cat(device.arch, " has no tensor cores for ", name_of(problem.type()))};
}

Refusal matrices_refusal(const ConvolutionProblem& problem) {
  if (problem.type() != KILN_DATA_DOUBLE) return {};
  return Refusal{"the data type is f64; this engine takes f32, f16 and bf16"};
}

Refusal fragment_refusal(const ConvolutionProblem& problem, std::int64_t reduction,
                         const DeviceDescription& device) {
  if (auto refused = matrices_refusal(problem)) return refused;
  return mma_refusal(problem, reduction, device);
}

std::vector<int> parts_of(const DeviceDescription& device, double steps, int most) {
  constexpr double least_steps = 2;  // of a part
  std::vector<int> parts;
  for (const int size : cluster_sizes)
    if (size == 1 ||
        (size <= std::min(most, device.largest_cluster) && steps >= size * least_steps))
      parts.push_back(size);
  return parts;
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
  add("TILE_M", tile.m, "rows of a tile");
  add("TILE_N", tile.n, "columns of a tile");
  add("TILE_K", tile.k);
  add("THREAD_M", tile.thread_m);
  add("THREAD_N", tile.thread_n);
  add("LANES_M", tile.mma() ? 8 : 4, "lanes of a warp along M");
  add("LANES_N", tile.mma() ? 4 : 8);
  add("RUN_M", stages.vector, "neighbouring rows of a thread");
  add("RUN_N", tile.mma() ? 2 * tile.mma_vector_n : stages.vector);
  constants.push_back({"SPLIT", tile.split, "3xTF32: f32 in three products"});
  if (tile.mma()) {
    constants.push_back({"SPLIT_CUT", false, ""});
    add("PROMOTE", tile.promote, "stages between promotions");
    constants.push_back({"PROMOTE_LOCAL", false, ""});
  }
  add("STAGES", tile.stages);
  add("SLICES", tile.slices);
  add("SLICE_THREADS", tile.slice_threads());
  const bool packs =
      device.kind == KILN_DEVICE_HOST || device.compute_capability >= tile.packs_from;
  add("MIN_BLOCKS", packs ? tile.min_blocks : 1);
  add("VECTOR", stages.vector, "elements of compute_t in 16 bytes");
  add("PITCH_M", stages.pitch_m);
  add("PITCH_N", stages.pitch_n);
  constants.push_back({"ASYNC", type == compute_type(type),
                       "copies are asynchronous: elements need no conversion"});
  const char* const sums = compute_type(type) == KILN_DATA_DOUBLE ? "f64" : "f32";
  if (tile.mma())
    add_sum_registers(constants, tile.thread_m / 2, tile.thread_n / 2, tile.promote > 0, sums);
  else
    add_sum_registers(constants, tile.thread_m, tile.thread_n / 4, false, sums);
}

void add_fragment_constants(std::vector<Constant>& constants, const FragmentShape& tile,
                            const ConvolutionProblem& problem, int run_m, int run_n) {
  const auto add = [&](const char* name, std::int64_t value, const char* comment = "") {
    constants.push_back({name, value, comment});
  };
  add("TILE_M", tile.m, "rows of a tile");
  add("TILE_N", tile.n, "columns of a tile");
  add("THREAD_M", tile.thread_m);
  add("THREAD_N", tile.thread_n);
  add("LANES_M", tile.columns_left ? 4 : 8, "lanes of a warp along M");
  add("LANES_N", tile.columns_left ? 8 : 4);
  add("RUN_M", run_m, "neighbouring rows of a thread");
  add("RUN_N", run_n);
  add("SLICES", tile.slices);
  add("SLICE_THREADS", tile.slice_threads());
  add("MIN_BLOCKS", tile.min_blocks);
  const DataType compute = compute_type(problem.type());
  add("VECTOR", static_cast<std::int64_t>(16 / size_of(compute)),
      "elements of compute_t in 16 bytes");
  const int products_m = tile.thread_m / 2, products_n = tile.thread_n / 2;
  add_sum_registers(constants, tile.columns_left ? products_n : products_m,
                    tile.columns_left ? products_m : products_n, is_split(problem),
                    compute == KILN_DATA_DOUBLE ? "f64" : "f32");
}

void add_warpgroup_instruction(std::vector<Constant>& constants, int columns) {
  std::string sums;
  for (int r = 0; r < columns / 8; ++r)
    for (int c = 0; c < 4; ++c) sums += cat(r + c == 0 ? "" : ", ", "s\" l \"_", r, "_", c);
  constants.push_back({"WGMMA_COLUMNS", MacroText{cat("\"", columns, "\"")}, ""});
  constants.push_back({"WGMMA_SUMS(l)", MacroText{cat("\"", sums, "\"")}, ""});
}

Refusal warpgroup_refusal(const DeviceDescription& device) {
  if (device.kind == KILN_DEVICE_HOST || device.arch == "sm_90a") return {};
  return Refusal{cat(device.arch, " lacks the wgmma instructions, which sm_90a alone has")};
}

std::string describe(const FragmentShape& shape) {
  return cat(shape.m, "x", shape.n, ", ", shape.thread_m, "x", shape.thread_n, " a thread, ",
             shape.threads(), " threads",
             shape.slices > 1 ? cat(", ", shape.slices, " slices") : "");
}

bool fits_shared_memory(std::int64_t bytes, int blocks, const DeviceDescription& device) {
  constexpr std::int64_t reserved = 1024;  // of a block, by the driver
  return bytes <= device.shared_memory_per_block &&
         blocks * (bytes + reserved) <= device.shared_memory_per_multiprocessor;
}

void add_split_constants(std::vector<Constant>& constants, bool split, std::int64_t reduction,
                         bool rows_ahead) {
  // From this number of products on, f32's own rounding outweighs the error of cutting elements off
  // instead of rounding them (src/reference/README.md).
  constexpr std::int64_t least_cut = 3072;
  constants.push_back({"SPLIT", split, "3xTF32: f32 in three products"});
  constants.push_back({"SPLIT_CUT", split && reduction >= least_cut,
                       "hi is the operand truncated to TF32, not rounded"});
  constants.push_back(
      {"SPLIT_ROWS_AHEAD", split && rows_ahead, "rows are split into hi and lo a fragment early"});
}

// The tensor cores round toward zero, so the error between promotions grows with the number of
// products, while that of f32 sums grows with its square root. Measured on data of both signs:
// 1.8e-7, 2.8e-7 and 5.5e-7 for runs of 16, 32 and 64 products; 3.4e-7 for f32 over 363 products.
std::int64_t promotion_run(std::int64_t reduction) {
  return reduction < 320 ? 16 : reduction < 1024 ? 32 : 64;
}

// 3xTF32 must err no more than f32's own sums. With operands of 11 bits or fewer, the loss is
// negligible over 1,024 fragments of TF32 or 512 of 16 bits.
void add_promotion_constants(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                             std::int64_t reduction, std::int64_t accumulated,
                             std::int64_t step_fragments) {
  constexpr std::int64_t fragment_bytes = 32;
  const auto element = static_cast<std::int64_t>(size_of(problem.type()));
  const bool split = is_split(problem);
  const bool rounds = problem.type() != KILN_DATA_DOUBLE;  // toward zero
  const bool is_long =
      rounds && !split && accumulated * element / fragment_bytes > (element == 2 ? 512 : 1024);
  std::int64_t steps = is_long ? 256 / step_fragments : 0;
  if (split) {
    steps = std::max<std::int64_t>(
        promotion_run(reduction) / (step_fragments * fragment_bytes / element), 1);
  }
  constants.push_back({"PROMOTE", steps, "steps of the reduction between promotions"});
  constants.push_back({"PROMOTE_LOCAL", is_long, ""});
}

bool is_split(const ConvolutionProblem& problem) {
  return problem.type() == KILN_DATA_FLOAT && problem.math == KILN_MATH_DEFAULT;
}

std::string describe(const GemmTile& tile) {
  return cat(tile.m, "x", tile.n, "x", tile.k, ", ", tile.thread_m, "x", tile.thread_n,
             " a thread, ", tile.threads(), " threads, ", tile.stages, " stages",
             tile.split ? ", 3 products" : "",
             tile.slices > 1 ? cat(", ", tile.slices, " slices") : "");
}

}  // namespace kiln
