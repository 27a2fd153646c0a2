#include "engines/pooling/pooling_backward_tiled.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/pooling/kernel.hpp"

namespace kiln {
namespace {

constexpr std::int64_t usual_images = 32;  // assumed: the kernel serves every batch size

// The refusal, if the kernel does not take the problem.
std::optional<Refusal> refusal(const PoolingProblem& problem) {
  if (problem.in[0] != 1 || problem.window[0] != 1 || problem.pad[0] != 0 || problem.out[0] != 1)
    return Refusal{"three dimensions of space; this engine takes one and two"};
  constexpr std::int64_t most_window = 8;
  for (int i = 1; i < 3; ++i) {
    if (problem.dilation[i] != 1)
      return Refusal{cat("the dilation is ", problem.dilation[i], "; expected 1")};
    if (problem.window[i] > most_window)
      return Refusal{cat("a window of ", problem.window[i], "; expected at most ", most_window)};
    if (problem.stride[i] > 2 * most_window)
      return Refusal{
          cat("a stride is ", problem.stride[i], "; expected at most ", 2 * most_window)};
    if (const std::int64_t reach = places_counted(problem, i); reach > limit32 / 2)
      return Refusal{cat("x, its padding and the windows take ", reach,
                         " positions along a dimension; expected at most ", limit32 / 2)};
  }
  if (problem.in[1] * problem.in[2] > limit32 / 2)
    return Refusal{cat("a plane of x has ", problem.in[1] * problem.in[2],
                       " pixels; expected at most ", limit32 / 2)};
  return std::nullopt;
}

// What a thread computes at a time: contiguous channels or, for maxima of 16 bits, two planes,
// whose elements are compared in pairs.
struct Vector {
  int count = 1;
  bool planes = false;
  bool single() const { return count == 1 || planes; }
};

Vector vector_of(const PoolingProblem& problem, const std::vector<Operand>& operands) {
  const int count = pooling_channel_vector(problem, operands);
  const bool planes = count == 1 && problem.mode == KILN_POOLING_MAX && problem.channels > 1 &&
                      size_of(problem.type) == 2 && problem.x_strides[4] == 1;
  return {planes ? 2 : count, planes};
}

struct Tile {
  std::int64_t h = 0, w = 0;              // rows and columns of dx
  std::int64_t block_h = 0, block_w = 0;  // those of a thread
  std::int64_t lanes = 1;                 // vectors of channels
  std::int64_t windows_h = 0, windows_w = 0;
  std::int64_t shared_bytes = 0;
};

// Rows (i = 1) or columns (i = 2) of dx that a thread computes: 2, aligned to strides up to 2. For
// the average of a single channel a thread has registers for 4 rows.
std::int64_t block_of(const PoolingProblem& problem, const Vector& vector, int i) {
  if (problem.stride[i] > 2) return 1;
  const bool max = problem.mode == KILN_POOLING_MAX;
  return vector.count == 1 && !max && i == 1 && problem.in[i] >= 8 ? 4 : 2;
}

Tile make_tile(const PoolingProblem& problem, const Vector& vector, std::int64_t h, std::int64_t w,
               std::int64_t lanes) {
  Tile tile{h, w, block_of(problem, vector, 1), block_of(problem, vector, 2), lanes};
  const auto windows = [&](int i, std::int64_t places) {
    const std::int64_t before = (problem.window[i] - 1 - problem.pad[i]) / problem.stride[i];
    return (places - 1 + problem.pad[i]) / problem.stride[i] + before + 1;
  };
  tile.windows_h = windows(1, h);
  tile.windows_w = windows(2, w);
  const std::int64_t count = tile.windows_h * tile.windows_w;
  const auto size = static_cast<std::int64_t>(size_of(problem.type));
  tile.shared_bytes = (count * lanes * vector.count * size + 15) / 16 * 16;
  if (problem.mode == KILN_POOLING_MAX)
    tile.shared_bytes += count * lanes * vector.count;
  else if (divisors_differ(problem))
    tile.shared_bytes += count * static_cast<std::int64_t>(size_of(compute_type(problem.type)));
  return tile;
}

// A rough count of the instructions that the busiest multiprocessor issues, at the usual batch
// size.
double cost(const PoolingProblem& problem, const Vector& vector, const Tile& tile,
            const DeviceDescription& device) {
  const auto turns = [](std::int64_t items) {
    return static_cast<double>(ceil_div(items, pooling_threads));
  };
  const bool max = problem.mode == KILN_POOLING_MAX;
  const auto taps = static_cast<double>(problem.window[1] * problem.window[2]);
  const auto block = static_cast<double>(tile.block_h * tile.block_w);
  const double holders = taps / static_cast<double>(problem.stride[1] * problem.stride[2]);
  const double window = 30 + (max ? taps * (3 + 3 * vector.count) : vector.count);
  const double places = 30 + block * (4 + vector.count * (2 + 2 * holders));
  const double of_tile =
      60 + turns(tile.windows_h * tile.windows_w * tile.lanes) * window +
      turns(tile.h / tile.block_h * (tile.w / tile.block_w) * tile.lanes) * places;
  const std::int64_t tiles = usual_images * ceil_div(problem.in[1], tile.h) *
                             ceil_div(problem.in[2], tile.w) *
                             ceil_div(problem.channels, vector.count * tile.lanes);
  // Short runs of channels waste part of each line of memory.
  const auto run =
      static_cast<double>(tile.lanes * vector.count) * static_cast<double>(size_of(problem.type));
  const double lines = vector.single() ? 1 : 1 + 12 / run;
  constexpr std::int64_t resident = 4;
  const std::int64_t places_of_chip = resident * device.multiprocessors;
  const double waves = tiles <= places_of_chip
                           ? 1
                           : static_cast<double>(tiles) / static_cast<double>(places_of_chip);
  return waves * of_tile * lines;
}

Tile choose_tile(const PoolingProblem& problem, const Vector& vector,
                 const DeviceDescription& device) {
  // A tile's size is a multiple of the stride and of a thread's block.
  const auto unit = [&](int i) {
    return problem.stride[i] <= 2 ? block_of(problem, vector, i) : problem.stride[i];
  };
  const auto sizes = [&](int i, std::int64_t most) {
    std::vector<std::int64_t> out;
    for (std::int64_t parts = 1; parts <= 64; ++parts) {
      const std::int64_t size = ceil_div(ceil_div(problem.in[i], parts), unit(i)) * unit(i);
      if (size <= std::max(most, unit(i)) && (out.empty() || out.back() != size))
        out.push_back(size);
      if (size < 8) break;
    }
    if (out.empty()) out.push_back(ceil_div(most, unit(i)) * unit(i));
    return out;
  };
  constexpr std::int64_t most_shared = 40 << 10;
  const std::int64_t vectors = ceil_div(problem.channels, vector.count);
  Tile best;
  double least = 0;
  for (const std::int64_t lanes : {1, 4, 6, 8, 12, 16}) {
    if (vector.single() ? lanes > 1 : lanes > vectors && lanes > 1) continue;
    for (const std::int64_t h : sizes(1, 64))
      for (const std::int64_t w : sizes(2, vector.single() ? 256 : 64)) {
        const Tile tile = make_tile(problem, vector, h, w, lanes);
        if (tile.shared_bytes > most_shared) continue;
        const double now = cost(problem, vector, tile, device);
        if (best.h == 0 || now < least) best = tile, least = now;
      }
  }
  return best;
}

}  // namespace

bool PoolingBackwardTiledEngine::is_for(const Problem& problem) const {
  const auto* pooling = std::get_if<PoolingProblem>(&problem);
  return pooling != nullptr && pooling->backward;
}

std::variant<Proposal, Refusal> PoolingBackwardTiledEngine::propose(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<PoolingProblem>(any);
  if (auto refused = refusal(problem)) return *std::move(refused);
  const std::vector<Operand> operands = operands_of(problem);
  const Operand& result = operands.back();
  const Vector vector = vector_of(problem, operands);
  const bool channels_inner = result.strides[1] == 1 && !vector.single();
  KernelSpec spec = pooling_kernel(problem, result, vector.count, channels_inner, 1, 1);
  const bool inside = every_tap_inside(problem);
  const Tile tile = choose_tile(problem, vector, device);
  if (tile.h == 0) return Refusal{"the windows of no tile fit into shared memory"};

  spec.engine = "pooling_backward_tiled";
  spec.file = "pooling/pooling_backward_tiled.cu";
  spec.entry = "pooling_backward_tiled";
  spec.tile = cat(tile.h, "x", tile.w, " pixels, ", vector.count * tile.lanes,
                  vector.count * tile.lanes > 1 ? " channels" : " channel", ", 256 threads");
  spec.shared_memory = static_cast<std::uint32_t>(tile.shared_bytes);
  const auto add = [&](const char* name, auto value) {
    spec.constants.push_back({name, value, ""});
  };
  add("CHANNELS", problem.channels);
  add("TILE_H", tile.h);
  add("TILE_W", tile.w);
  add("BLOCK_H", tile.block_h);
  add("BLOCK_W", tile.block_w);
  add("LANES", tile.lanes);
  add("SHARED_BYTES", tile.shared_bytes);
  add("PLANES", vector.planes);
  add("MIN_BLOCKS", std::int64_t{vector.single() ? 5 : inside ? 3 : 2});
  const bool rows_aligned = result.strides[4] == 1 && problem.in[2] % tile.block_w == 0 &&
                            result.strides[0] % tile.block_w == 0 &&
                            result.strides[1] % tile.block_w == 0 &&
                            result.strides[3] % tile.block_w == 0;
  add("ROWS_ALIGNED", rows_aligned);
  const auto divisor = [&](const char* name, std::int64_t value) {
    add(name, make_magic(static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(limit32)));
  };
  const std::int64_t tiles_h = ceil_div(problem.in[1], tile.h);
  const std::int64_t tiles_w = ceil_div(problem.in[2], tile.w);
  const std::int64_t runs = ceil_div(problem.channels, vector.count * tile.lanes);
  divisor("DIV_TILES_H", tiles_h);
  divisor("DIV_TILES_W", tiles_w);
  divisor("DIV_RUNS", runs);
  const std::int64_t blocks = problem.batch * runs * tiles_h * tiles_w;
  if (blocks > limit32)
    return Refusal{cat(blocks, " thread blocks; a launch has at most ", limit32)};
  const std::uint32_t shared = spec.shared_memory;
  return Proposal{{std::move(spec), pooling_launch(problem, operands, blocks, shared)}};
}

}  // namespace kiln
