#include "engines/conv/direct/depthwise_nhwc_fma.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/direct/depthwise_lanes.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/cost/chips.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_filter_bytes = 48 * 1024;
constexpr std::int64_t most_row_bytes = 256;    // of a thread's registers, for a row of the source
constexpr std::int64_t most_pixel_bytes = 512;  // of a thread's registers, for all reads of a pixel

struct Tile {
  std::int64_t p, q;         // rows and columns of pixels of a thread
  std::int64_t lanes, runs;  // vectors of channels, and tiles of pixels, of a block
  std::int64_t min_blocks;

  std::int64_t threads() const { return lanes * runs; }
};

std::int64_t columns_met(const Gather& gather, std::int64_t q) {
  return (q - 1) * gather.stride[2] + (gather.largest_taps()[2] - 1) * std::abs(gather.step[2]) + 1;
}

std::int64_t row_bytes(const ConvolutionProblem& problem, const Gather& gather, std::int64_t q) {
  return columns_met(gather, q) * group_inputs(problem.type(), gather) *
         static_cast<std::int64_t>(size_of(problem.type()));
}

// Bytes of shared memory for a vector of channels.
std::int64_t filter_bytes(const ConvolutionProblem& problem, const Gather& gather) {
  return gather.most_taps() * gather.channels * channel_vector(problem.type()) *
         static_cast<std::int64_t>(size_of(compute_type(problem.type())));
}

std::int64_t lanes_of(const ConvolutionProblem& problem, const Gather& gather) {
  return depthwise_lanes(
      ceil_div(problem.groups * gather.rows, channel_vector(problem.type())),
      std::clamp<std::int64_t>(
          most_filter_bytes / std::max<std::int64_t>(filter_bytes(problem, gather), 1), 1, 32));
}

Tile tile_of(const ConvolutionProblem& problem, const Gather& gather) {
  // With several channels a group, weights are read for each of them, so a thread takes more pixels
  // for a weight.
  const bool single = gather.channels == 1;
  Tile tile{single ? 2 : 1, single ? 4 : 8, lanes_of(problem, gather), 0, 0};
  const Spatial largest = gather.largest_pixels();
  while (tile.q > 1 &&
         (row_bytes(problem, gather, tile.q) > most_row_bytes || tile.q / 2 >= largest[2]))
    tile.q /= 2;
  if (largest[1] == 1 || gather.largest_taps()[1] == 1) tile.p = 1;
  const std::int64_t sums = tile.p * tile.q * channel_vector(problem.type()) *
                            static_cast<std::int64_t>(size_of(compute_type(problem.type()))) / 4;
  const DepthwiseBlock block =
      depthwise_block(sums + row_bytes(problem, gather, tile.q) / 4 + (single ? 0 : 16));
  tile.runs = std::max<std::int64_t>(block.threads / tile.lanes, 1);
  tile.min_blocks = block.min_blocks;
  return tile;
}

std::int64_t runs_of(const ConvolutionProblem& problem, const Gather& gather, const Tile& tile) {
  const Spatial largest = gather.largest_pixels();
  return problem.batch * ceil_div(largest[1], tile.p) * ceil_div(largest[2], tile.q);
}

std::string refusal(const ConvolutionProblem& problem, const Gather& gather) {
  const std::int64_t vector = channel_vector(problem.type());
  if (std::string reason = channel_vectors_refusal(problem, gather); !reason.empty()) return reason;
  if (std::string reason = group_rows_refusal(problem.type(), gather); !reason.empty())
    return reason;
  if (row_bytes(problem, gather, 1) > most_pixel_bytes)
    return cat("a row of the filter reaches over ", columns_met(gather, 1), " places of ",
               group_inputs(problem.type(), gather), " channels; expected at most ",
               most_pixel_bytes / static_cast<std::int64_t>(size_of(problem.type())), " elements");
  if (const std::int64_t filter = filter_bytes(problem, gather); filter > most_filter_bytes)
    return cat(gather.most_taps(), " taps take ", filter, " bytes of shared memory for ", vector,
               " channels; expected at most ", most_filter_bytes);
  return "";
}

}  // namespace

bool DepthwiseNhwcFmaEngine::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return is_gather(problem) && convolution->groups > 1;
}

std::variant<Proposal, Refusal> DepthwiseNhwcFmaEngine::propose(const Problem& any,
                                                                const DeviceDescription&) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (std::string reason = refusal(problem, gather); !reason.empty())
    return Refusal{std::move(reason)};
  const Tile tile = tile_of(problem, gather);
  const std::int64_t vector = channel_vector(problem.type());
  const auto compute_bytes = static_cast<std::int64_t>(size_of(compute_type(problem.type())));

  KernelSpec spec;
  spec.engine = name();
  spec.file = cat("conv/direct/", name(), ".cu");
  spec.entry = name();
  spec.tile = cat(tile.p, "x", tile.q, " pixels x ", vector, " channels a thread, ",
                  tile.lanes * vector, " channels a block, ", tile.threads(), " threads");
  spec.alignment = channel_vector_bytes;
  spec.shared_memory = static_cast<std::uint32_t>(
      tile.lanes * std::max<std::int64_t>(filter_bytes(problem, gather), vector * compute_bytes));
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  const Spatial largest = gather.largest_pixels();
  add("GROUPS", problem.groups);
  add("ACCESS", input_access(problem.type(), gather),
      "channels of the source that are read at once");
  add("VECTOR", vector, "channels of a thread");
  add("PARTS", std::int64_t{vector * compute_bytes > 16 ? 2 : 1}, "accesses to their weights");
  add("TILE_P", tile.p, "rows of pixels of a thread");
  add("TILE_Q", tile.q);
  add("LANES_C", tile.lanes, "vectors of channels of a block");
  add("RUNS", tile.runs, "tiles of pixels of a block");
  add("CHANNEL_TILES", ceil_div(problem.groups * gather.rows, tile.lanes * vector));
  add("MOST_TAPS", std::max<std::int64_t>(gather.most_taps(), 1));
  add("MIN_BLOCKS", tile.min_blocks);
  // Loops over short filters are unrolled; over longer ones only those along a row.
  add("UNROLLED_ROWS", std::int64_t{gather.most_taps() * gather.channels <= 9 ? 8 : 1});
  add("DIV_TILES_Q", make_wide_magic(static_cast<std::uint64_t>(ceil_div(largest[2], tile.q))));
  add("DIV_TILES_P", make_wide_magic(static_cast<std::uint64_t>(ceil_div(largest[1], tile.p))));

  const std::int64_t phase_blocks = ceil_div(runs_of(problem, gather, tile), tile.runs) *
                                    ceil_div(problem.groups * gather.rows, tile.lanes * vector);
  const std::int64_t blocks = phase_blocks * static_cast<std::int64_t>(gather.phases.size());
  if (blocks > limit32)
    return Refusal{cat(blocks, " thread blocks; a launch has at most ", limit32)};
  Proposal out{{std::move(spec), {}}};
  out.launch = gather_launch(problem, phase_blocks, blocks,
                             static_cast<std::uint32_t>(tile.threads()), out.kernel.shared_memory);
  return out;
}

double DepthwiseNhwcFmaEngine::seconds(const Problem& any, const DeviceDescription& device) const {
  // Multiply-adds of a multiprocessor in a clock, of 16-bit elements, which are converted, and of
  // others; and the share of memory's rate that is reached. Fitted to an H200's times of 3x3 to 7x7
  // filters in 16 bits; for other types counted.
  constexpr double converted_products_a_clock = 20.7071, products_a_clock = 64.6465;
  constexpr double memory_share = 0.5;
  // Counted, not measured: with several channels a group, each weight that is read serves only a
  // few pixels.
  constexpr double group_share = 0.6;
  const double products =
      (size_of(std::get<ConvolutionProblem>(any).type()) == 2 ? converted_products_a_clock
                                                              : products_a_clock) *
      clock_rate(device);
  const auto& problem = std::get<ConvolutionProblem>(any);
  // A weight is read for the pixels of a row of a thread's tile. One pixel, with 31x31 in f32, took
  // 4.8 times as long as four.
  constexpr double row_pixels = 4, alone_share = 1 / 4.8;
  const auto pixels = static_cast<double>(tile_of(problem, make_gather(problem)).q);
  const double row_share = pixels < row_pixels ? pixels * alone_share : 1;
  const double shares =
      row_share * (problem.group_in() * problem.group_out() > 1 ? group_share : 1);
  const Work work = work_of(problem, false);
  return std::max(memory_bound_seconds(work.bytes / memory_share, device),
                  work.flops / 2 / (products * shares * device.multiprocessors));
}

}  // namespace kiln
