#include "engines/conv/direct/wgrad_depthwise_nhwc_fma.hpp"

#include <algorithm>
#include <cstdlib>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/direct/depthwise_lanes.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/cost/chips.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_sums = 80;        // 32-bit registers of a thread for sums
constexpr std::int64_t most_row_sums = 128;   // the same, where a thread has one row of the filter
constexpr std::int64_t most_row_bytes = 192;  // registers of a thread for a row of x

using Tile = WgradDepthwiseNhwcFmaTile;

std::int64_t compute_bytes(DataType type) {
  return static_cast<std::int64_t>(size_of(compute_type(type)));
}

std::int64_t columns_met(const Gather& gather, std::int64_t q) {
  return (q - 1) * gather.stride[2] +
         (gather.phases.front().taps[2] - 1) * std::abs(gather.step[2]) + 1;
}

bool is_depthwise(const Gather& gather) { return gather.channels == 1 && gather.rows == 1; }

// Channels of x of a thread that has `vector` channels of dy.
std::int64_t inputs_of(const Gather& gather, std::int64_t vector) {
  return is_depthwise(gather) ? vector : group_inputs(vector, gather);
}

std::int64_t row_bytes(const ConvolutionProblem& problem, const Gather& gather, std::int64_t vector,
                       std::int64_t q) {
  return columns_met(gather, q) * inputs_of(gather, vector) *
         static_cast<std::int64_t>(size_of(problem.type()));
}

// Registers for the sums of a row of the filter.
std::int64_t row_sums(const ConvolutionProblem& problem, const Gather& gather,
                      std::int64_t vector) {
  return vector * gather.channels * gather.phases.front().taps[2] * compute_bytes(problem.type()) /
         4;
}

// Whether channels come in vectors of 16 bytes.
bool in_vectors(const Seen& seen) {
  return fitting_vector(seen.problem, seen.gather) == channel_vector(seen.problem.type());
}

// Channels of dy of a thread: as many as tensors allow; where those of a depthwise filter's row
// would not fit into registers, as many of them as do.
std::int64_t vector_of(const ConvolutionProblem& problem, const Gather& gather) {
  std::int64_t vector = fitting_vector(problem, gather);
  while (is_depthwise(gather) && vector > 1 &&
         (row_sums(problem, gather, vector) > most_row_sums ||
          row_bytes(problem, gather, vector, 1) > most_row_bytes))
    vector /= 2;
  return vector;
}

Tile lay_lanes(const Seen& seen, std::int64_t lanes) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const Spatial &taps = gather.phases.front().taps, &pixels = gather.phases.front().pixels;
  const std::int64_t vector = vector_of(problem, gather);
  const std::int64_t registers = row_sums(problem, gather, vector);
  const bool whole = vector == channel_vector(problem.type());
  Tile tile{.vector = vector,
            .q = whole ? 4 : 8,
            .filter_rows = std::clamp<std::int64_t>(most_sums / registers, 1, taps[1]),
            .lanes = lanes};
  while (tile.q > 1 && row_bytes(problem, gather, vector, tile.q) > most_row_bytes) tile.q /= 2;
  const auto element = static_cast<std::int64_t>(size_of(problem.type()));
  constexpr std::int64_t narrow_registers = 16;  // more, for conversions and addresses
  const auto registers_of = [&](std::int64_t rows) {
    return tile.filter_rows * registers +
           (row_bytes(problem, gather, vector, tile.q) + rows * tile.q * vector * element) / 4 +
           (whole ? 0 : narrow_registers);
  };
  // Two rows of dy read a row of x once for both.
  if (taps[1] > 1 && tile.filter_rows == taps[1] && gather.stride[1] < taps[1] && pixels[1] > 1 &&
      depthwise_block(registers_of(2)).threads == depthwise_block(0).threads)
    tile.p = 2;
  const DepthwiseBlock block = depthwise_block(registers_of(tile.p));
  tile.runs = std::max<std::int64_t>(block.threads / tile.lanes, 1);
  tile.min_blocks = block.min_blocks;
  tile.dw = {.block_rows = tile.lanes * vector,
             .filter_rows = tile.filter_rows,
             .image_units = ceil_div(pixels[1], tile.p) * ceil_div(pixels[2], tile.q),
             .at_once = tile.runs,
             .threads = tile.lanes * tile.runs};
  tile.shared_memory =
      (tile.dw.threads * vector + tile.dw.elements(gather)) * compute_bytes(problem.type());
  return tile;
}

std::vector<Tile> lay(const Seen& seen) {
  const std::int64_t vectors =
      ceil_div(seen.gather.groups * seen.gather.rows, vector_of(seen.problem, seen.gather));
  if (in_vectors(seen)) return {lay_lanes(seen, depthwise_lanes(vectors))};
  // Without workspace only a cluster shares a tile of dw: fewer channels a block are more blocks. A
  // block's sums lie behind each other in multiples of 16 bytes.
  const std::int64_t vector = vector_of(seen.problem, seen.gather);
  const std::int64_t even =
      std::max<std::int64_t>(16 / (vector * compute_bytes(seen.problem.type())), 1);
  std::vector<Tile> out;
  for (const std::int64_t most : {64, 16, 4})
    if (const std::int64_t lanes = round_up(even_lanes(vectors, most), even);
        out.empty() || lanes < out.back().lanes)
      out.push_back(lay_lanes(seen, lanes));
  return out;
}

Refusal refusal(const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  if (auto refused = volume_refusal(gather)) return refused;
  if (auto refused = channel_vectors_refusal(problem, gather, fitting_vector(problem, gather)))
    return refused;
  const std::int64_t vector = vector_of(problem, gather);
  if (const std::int64_t sums = row_sums(problem, gather, vector); sums > most_row_sums)
    return cat(gather.phases.front().taps[2], " taps in a row of the filter and ", gather.channels,
               " channels a group take ", sums, " registers; expected at most ", most_row_sums);
  if (row_bytes(problem, gather, vector, 1) > most_row_bytes)
    return cat("a row of the filter reaches over ", columns_met(gather, 1), " places of ",
               inputs_of(gather, vector), " channels; expected at most ",
               most_row_bytes / static_cast<std::int64_t>(size_of(problem.type())), " elements");
  return {};
}

double seconds(const Tile& tile, const Seen& seen, const Sharing& sharing) {
  // Multiply-adds of a multiprocessor in a clock, and the share of memory's rate, that enough
  // blocks on a multiprocessor reach. In 16 bits fitted to an H200's times of 3x3 to 7x7 filters;
  // for other types counted.
  struct Reached {
    double products_a_clock, memory_share;
  };
  constexpr Reached of_16_bits{19.697, 0.35}, of_others{51.7172, 0.55};
  constexpr double enough_blocks = 2;
  // How much faster L2, from which tiles of other filter rows read again, is than memory.
  constexpr double cache_share = 2;
  const DeviceDescription& device = seen.device;
  const auto blocks = static_cast<double>(tile.dw.blocks(seen, sharing));
  const Reached& reached = size_of(seen.problem.type()) == 2 ? of_16_bits : of_others;
  const auto readings = static_cast<double>(ceil_div(seen.problem.filter[1], tile.filter_rows));
  const Work work = work_of(seen.problem, false);
  // A block reads whole sectors of memory, to which its channels of a pixel are the less the fewer
  // they are, if they begin anywhere.
  constexpr double sector = 32;
  const auto line =
      static_cast<double>(tile.dw.block_rows) * static_cast<double>(size_of(seen.problem.type()));
  const double sectors = in_vectors(seen) ? 1 : (line + sector) / line;
  const double busy = std::clamp(blocks / (enough_blocks * device.multiprocessors), 1e-3, 1.0);
  return std::max(
             memory_bound_seconds(work.bytes * sectors * std::max(readings / cache_share, 1.0) /
                                      reached.memory_share,
                                  device),
             work.flops / 2 /
                 (reached.products_a_clock * clock_rate(device) * device.multiprocessors)) /
         busy;
}

std::string describe(const Tile& tile) {
  return cat(tile.dw.block_rows, " channels, ", tile.filter_rows, " rows of the filter, ",
             tile.p * tile.q, " pixels a unit, ", tile.dw.threads, " threads");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  spec.alignment =
      static_cast<std::size_t>(fitting_vector(seen.problem, gather)) * size_of(seen.problem.type());
  filter_gradient::write(spec, tile.dw, seen);
  const ConstantWriter add(spec.constants);
  const Spatial& pixels = gather.phases.front().pixels;
  add("VECTOR", tile.vector, "channels of dy of a thread");
  add("ACCESS", is_depthwise(gather) ? tile.vector : input_access(tile.vector, gather),
      "channels of x in one load");
  add("LANES_C", tile.lanes, "vectors of channels of a block");
  add("RUNS", tile.runs, "threads of a block that take units of pixels in turn");
  add("TILE_P", tile.p, "rows of pixels of dy in a unit");
  add("TILE_Q", tile.q, "pixels of dy in a row of a unit");
  add.wide_divisor("DIV_TILES_Q", ceil_div(pixels[2], tile.q));
  add.wide_divisor("DIV_TILES_P", ceil_div(pixels[1], tile.p));
  add("MIN_BLOCKS", tile.min_blocks);
  add("SHARED_BYTES", tile.shared_memory);
}

}  // namespace

constinit const Recipe<WgradDepthwiseNhwcFmaTile> wgrad_depthwise_nhwc_fma = {
    .name = "wgrad_depthwise_nhwc_fma",
    .file = "conv/direct/wgrad_depthwise_nhwc_fma.cu",
    .filter_gradient = true,
    .several_groups = true,
    .refusal = refusal,
    .lay = lay,
    .count = filter_gradient::count,
    .offers = filter_gradient::offers<seconds>,
    .describe = describe,
    .threads = filter_gradient::threads,
    .shared_memory = filter_gradient::shared_memory,
    .write = write,
    .launch = filter_gradient::launch,
    .finish = filter_gradient::finish,
};

}  // namespace kiln
