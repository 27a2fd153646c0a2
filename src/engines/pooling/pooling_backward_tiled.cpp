#include "engines/pooling/pooling_backward_tiled.hpp"

#include <algorithm>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/cost/chips.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/pooling/kernel.hpp"

namespace kiln {
namespace {

constexpr std::int64_t usual_images = 32;  // assumed: the kernel serves every batch size
constexpr std::int64_t reserved_shared_memory = 1024;  // bytes of each block, for the driver

// The refusal, if neither engine takes the problem.
Refusal refusal(const PoolingProblem& problem) {
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
  return {};
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

// Whether a tensor's rows are contiguous in each plane. `size`: its height and width.
bool contiguous_rows(const Dims& strides, std::int64_t height, std::int64_t width) {
  return strides[4] == 1 && (strides[3] == width || height == 1);
}

struct Tile {
  std::int64_t h = 0, w = 0;              // rows and columns of dx
  std::int64_t block_h = 0, block_w = 0;  // those of a thread
  std::int64_t lanes = 1;                 // vectors of channels
  std::int64_t windows_h = 0, windows_w = 0;
  std::int64_t shared_bytes = 0;
  double moved = 0;  // bytes of dx, x and dy that the block reads and writes
};

// Rows (i = 1) or columns (i = 2) of dx that a thread computes: 2, aligned to strides up to 2. For
// the average of a single channel and for planes in pairs a thread has registers for 4 rows, which
// share indices and windows. (More columns would store parts of more lines at a time.)
std::int64_t block_of(const PoolingProblem& problem, const Vector& vector, int i) {
  if (problem.stride[i] > 2) return 1;
  const bool tall = vector.planes || (vector.count == 1 && problem.mode != KILN_POOLING_MAX);
  return tall && i == 1 && problem.in[i] >= 8 ? 4 : 2;
}

// Whether the taps of maxima are kept in pairs of channels; the constant PAIRS.
bool in_pairs(const PoolingProblem& problem, const Vector& vector) {
  return problem.mode == KILN_POOLING_MAX && size_of(problem.type) == 2 && vector.count % 2 == 0;
}

// How an engine sees a problem.
struct View {
  const PoolingProblem& problem;
  const DeviceDescription& device;
  bool staged;  // whether x and dy are copied to shared memory
  std::vector<Operand> operands = operands_of(problem);
  Vector vector = vector_of(problem, operands);
  bool channels_inner = operands.back().strides[1] == 1 && !vector.single();
};

// Blocks that registers let share a multiprocessor.
std::int64_t blocks_by_registers(const View& view) {
  const PoolingProblem& problem = view.problem;
  // At stride 1 more windows hold each of a pair of planes' elements.
  if (view.vector.planes && (problem.stride[1] == 1 || problem.stride[2] == 1)) return 4;
  return view.vector.single() ? 5 : every_tap_inside(problem) ? 3 : 2;
}

Tile make_tile(const View& view, std::int64_t h, std::int64_t w, std::int64_t lanes) {
  const PoolingProblem& problem = view.problem;
  const Vector& vector = view.vector;
  Tile tile{h, w, block_of(problem, vector, 1), block_of(problem, vector, 2), lanes};
  const auto windows = [&](int i, std::int64_t places) {
    const std::int64_t before = (problem.window[i] - 1 - problem.pad[i]) / problem.stride[i];
    return (places - 1 + problem.pad[i]) / problem.stride[i] + before + 1;
  };
  tile.windows_h = windows(1, h);
  tile.windows_w = windows(2, w);
  const std::int64_t count = tile.windows_h * tile.windows_w;
  const auto size = static_cast<std::int64_t>(size_of(problem.type));
  const auto round_up = [](std::int64_t bytes) { return (bytes + 15) / 16 * 16; };
  const bool max = problem.mode == KILN_POOLING_MAX;
  const std::int64_t channels = lanes * vector.count;
  const bool rows_of_dy = view.staged && !view.channels_inner &&
                          contiguous_rows(problem.y_strides, problem.out[1], problem.out[2]);
  tile.shared_bytes = rows_of_dy ? 0 : round_up(count * channels * size);
  if (max)
    tile.shared_bytes += count * channels * (in_pairs(problem, vector) ? 2 : 1);
  else if (divisors_differ(problem))
    tile.shared_bytes += count * static_cast<std::int64_t>(size_of(compute_type(problem.type)));
  tile.shared_bytes = round_up(tile.shared_bytes);
  if (!view.staged) return tile;
  const auto read = [&](int i, std::int64_t of) {
    return std::min(problem.in[i], (of - 1) * problem.stride[i] + problem.window[i]);
  };
  const std::int64_t rows = max ? read(1, tile.windows_h) : 0, columns = read(2, tile.windows_w);
  const std::int64_t unit = 16 / size;
  const auto planes = [&](std::int64_t elements) {
    return round_up(elements * size) * vector.count;
  };
  // Rows of dx take the place of those of x.
  const std::int64_t stored =
      contiguous_rows(view.operands.back().strides, problem.in[1], problem.in[2])
          ? std::min(h, problem.in[1])
          : 0;
  if (view.channels_inner)
    tile.shared_bytes += round_up(rows * columns * channels * size);
  else if (max || stored > 0)
    tile.shared_bytes += planes(std::max(rows, stored) * problem.in[2] + unit - 1);
  if (rows_of_dy) {
    const std::int64_t first = -((problem.window[2] - 1 - problem.pad[2]) / problem.stride[2]);
    tile.shared_bytes += planes(std::max<std::int64_t>(-first, 0) + 2 * (unit - 1) +
                                (tile.windows_h - 1) * problem.out[2] +
                                std::max(problem.out[2], first + tile.windows_w));
  }
  tile.moved = static_cast<double>((h * w + rows * columns + count) * channels * size);
  return tile;
}

// Rough counts of a thread's instructions: for a window, and for the block of dx that it adds up.
struct Instructions {
  double window = 0, places = 0;
};

Instructions instructions_of(const View& view) {
  const PoolingProblem& problem = view.problem;
  const int count = view.vector.count;
  const auto taps = static_cast<double>(problem.window[1] * problem.window[2]);
  const auto block =
      static_cast<double>(block_of(problem, view.vector, 1) * block_of(problem, view.vector, 2));
  const double holders = taps / static_cast<double>(problem.stride[1] * problem.stride[2]);
  const bool max = problem.mode == KILN_POOLING_MAX;
  const bool pairs = view.staged && count > 1 && size_of(problem.type) == 2;
  const double compared = count / (pairs ? 2.0 : 1.0);
  return {30 + (max ? taps * (3 + 3 * compared) : count),
          30 + block * (4 + count * (2 + 2 * holders))};
}

// A rough count of the clocks of the busiest multiprocessor at the usual batch size, or of
// something that is proportional to it.
double cost(const View& view, const Tile& tile) {
  const PoolingProblem& problem = view.problem;
  const Vector& vector = view.vector;
  const auto turns = [](std::int64_t items) {
    return static_cast<double>(ceil_div(items, pooling_threads));
  };
  const Instructions of = instructions_of(view);
  const double of_tile =
      60 + turns(tile.windows_h * tile.windows_w * tile.lanes) * of.window +
      turns(tile.h / tile.block_h * (tile.w / tile.block_w) * tile.lanes) * of.places;
  const std::int64_t tiles = usual_images * ceil_div(problem.in[1], tile.h) *
                             ceil_div(problem.in[2], tile.w) *
                             ceil_div(problem.channels, vector.count * tile.lanes);
  // Short runs of channels waste part of each line of memory.
  const auto run =
      static_cast<double>(tile.lanes * vector.count) * static_cast<double>(size_of(problem.type));
  const double lines = vector.single() ? 1 : 1 + 12 / run;
  if (view.staged) {
    constexpr double warps = pooling_threads / warp;
    const double share = static_cast<double>(tiles) / view.device.multiprocessors;
    const double memory = tile.moved * lines * rates_of(view.device).gigahertz * 1e9 *
                          view.device.multiprocessors / rates_of(view.device).memory;
    // The more blocks share a multiprocessor, the better they hide each other's waits.
    const auto resident = static_cast<double>(std::min(
        {blocks_by_registers(view), std::max(tiles / view.device.multiprocessors, std::int64_t{1}),
         view.device.shared_memory_per_multiprocessor /
             (tile.shared_bytes + reserved_shared_memory)}));
    return std::max(share, 1.0) * std::max(memory, of_tile * warps / issue_width) * (resident + 1) /
           resident;
  }
  constexpr std::int64_t resident = 4;
  const std::int64_t places_of_chip = resident * view.device.multiprocessors;
  const double waves = tiles <= places_of_chip
                           ? 1
                           : static_cast<double>(tiles) / static_cast<double>(places_of_chip);
  return waves * of_tile * lines;
}

Tile choose_tile(const View& view) {
  const PoolingProblem& problem = view.problem;
  const Vector& vector = view.vector;
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
  // At least two blocks share a multiprocessor, so that one copies while the other computes.
  const std::int64_t most_shared =
      view.staged ? view.device.shared_memory_per_multiprocessor / 2 - reserved_shared_memory
                  : 40 << 10;
  // What is staged of planes are whole rows.
  const bool whole_rows = view.staged && !view.channels_inner;
  const std::int64_t vectors = ceil_div(problem.channels, vector.count);
  Tile best;
  double least = 0;
  for (const std::int64_t lanes : {1, 4, 6, 8, 12, 16}) {
    if (vector.single() ? lanes > 1 : lanes > vectors && lanes > 1) continue;
    for (const std::int64_t h : sizes(1, 64))
      for (const std::int64_t w : sizes(2, whole_rows ? limit32 : vector.single() ? 256 : 64)) {
        const Tile tile = make_tile(view, h, w, lanes);
        if (tile.shared_bytes > most_shared || (whole_rows && w < problem.in[2])) continue;
        const double now = cost(view, tile);
        if (best.h == 0 || now < least) best = tile, least = now;
      }
  }
  return best;
}

std::variant<Proposal, Refusal> propose_tiled(const View& view, const char* engine) {
  const PoolingProblem& problem = view.problem;
  const Vector& vector = view.vector;
  const Operand& result = view.operands.back();
  KernelSpec spec = pooling_kernel(problem, result, vector.count, view.channels_inner, 1, 1, 1);
  const Tile tile = choose_tile(view);
  if (tile.h == 0)
    return Refusal{cat("the windows ", view.staged ? "and their copies " : "",
                       "of no tile fit into shared memory")};

  spec.engine = engine;
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
  add("MIN_BLOCKS", blocks_by_registers(view));
  add("STAGED", view.staged);
  // Elements of a row of dx that an access stores.
  std::int64_t access = tile.block_w;
  const auto aligned = [&](std::int64_t value) { return value % access == 0; };
  while (access > 1 &&
         (result.strides[4] != 1 || !aligned(problem.in[2]) || !aligned(result.strides[0]) ||
          !aligned(result.strides[1]) || !aligned(result.strides[3])))
    access /= 2;
  add("ROW_ACCESS", access);
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
  return Proposal{{std::move(spec), pooling_launch(problem, view.operands, blocks, shared)}};
}

// Seconds if memory or instructions bound the kernel, whichever takes longer. A multiprocessor
// takes 1.9 clocks for as many instructions as it could issue in one: with that, nine layers of
// maxima take 1.0 to 1.8 times their estimate where they are staged (H200).
double seconds_of(const View& view) {
  constexpr double clocks = 1.9;
  const PoolingProblem& problem = view.problem;
  const Instructions of = instructions_of(view);
  const auto block =
      static_cast<double>(block_of(problem, view.vector, 1) * block_of(problem, view.vector, 2));
  const double planes = static_cast<double>(problem.batch) * static_cast<double>(problem.channels) /
                        view.vector.count;
  const double instructions =
      planes * (static_cast<double>(problem.out[1] * problem.out[2]) * of.window +
                static_cast<double>(problem.in[1] * problem.in[2]) / block * of.places);
  const double issued = instructions * clocks / (warp * issue_width * view.device.multiprocessors);
  return std::max(memory_bound_seconds(work_of(problem, false).bytes, view.device),
                  clocks_to_seconds(issued, 0, view.device));
}

bool is_gradient(const Problem& problem) {
  const auto* pooling = std::get_if<PoolingProblem>(&problem);
  return pooling != nullptr && pooling->backward;
}

}  // namespace

bool PoolingBackwardTiledEngine::is_for(const Problem& problem) const {
  return is_gradient(problem);
}

std::variant<Proposal, Refusal> PoolingBackwardTiledEngine::propose(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<PoolingProblem>(any);
  if (auto refused = refusal(problem)) return refused;
  return propose_tiled({problem, device, false}, name());
}

// Windows that are not staged wait for memory: 1.25 times the time of staged ones, measured.
double PoolingBackwardTiledEngine::seconds(const Problem& problem,
                                           const DeviceDescription& device) const {
  return 1.25 * seconds_of({std::get<PoolingProblem>(problem), device, false});
}

bool PoolingBackwardStagedEngine::is_for(const Problem& problem) const {
  return is_gradient(problem);
}

std::variant<Proposal, Refusal> PoolingBackwardStagedEngine::propose(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<PoolingProblem>(any);
  if (auto refused = refusal(problem)) return refused;
  constexpr int ampere = 80;
  if (device.kind != KILN_DEVICE_HOST && device.compute_capability < ampere)
    return Refusal{"the chip has no asynchronous copies; expected compute capability 8.0 or newer"};
  const View view{problem, device, true};
  constexpr std::int64_t least_bytes = 4;  // of an asynchronous copy
  const std::int64_t bytes = view.vector.count * static_cast<std::int64_t>(size_of(problem.type));
  if (view.channels_inner && bytes < least_bytes)
    return Refusal{
        cat("vectors of channels have ", bytes, " bytes; expected at least ", least_bytes)};
  const bool max = problem.mode == KILN_POOLING_MAX;
  if (!view.channels_inner &&
      !(max ? contiguous_rows(problem.x_strides, problem.in[1], problem.in[2])
            : contiguous_rows(problem.y_strides, problem.out[1], problem.out[2])))
    return Refusal{cat("rows of ", max ? "x" : "dy",
                       " are not contiguous in their planes, and neither are channels")};
  return propose_tiled(view, name());
}

// Of maxima, staged windows were 1.06 to 1.97 times as fast as tiled ones on an H200, in every type
// and layout. Of averages, they were as fast or up to 1.14 times faster with channels last in 16
// bits and channels first in f32, and took 1.05 to 1.13 times as long otherwise.
double PoolingBackwardStagedEngine::seconds(const Problem& any,
                                            const DeviceDescription& device) const {
  const auto& problem = std::get<PoolingProblem>(any);
  const View view{problem, device, true};
  const bool slower_average =
      problem.mode != KILN_POOLING_MAX && view.channels_inner != (size_of(problem.type) == 2);
  return (slower_average ? 1.45 : 1.0) * seconds_of(view);
}

}  // namespace kiln
