#include "engines/conv/direct/depthwise_nhwc_fma.hpp"

#include <algorithm>
#include <cmath>
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
constexpr std::int64_t filter_reads = 8;        // of a thread at once (depthwise_filter.cuh)

// One tile for depthwise layers, and one for several channels a group, in which weights are read
// for each channel, so that a thread takes more pixels for a weight. The others are for layers so
// small that these leave multiprocessors idle: inference of one image.
constexpr DepthwiseNhwcTile all_tiles[] = {
    {2, 4, 32, 256}, {1, 8, 32, 256}, {2, 4, 4, 128},
    {1, 4, 4, 128},  {1, 2, 4, 128},  {1, 1, 4, 128},
};
constexpr std::size_t large_tiles = 2;

// A tile laid on a problem.
struct Layout {
  std::int64_t p, q;         // rows and columns of pixels of a thread
  std::int64_t lanes, runs;  // vectors of channels, and tiles of pixels, of a block
  std::int64_t min_blocks;

  std::int64_t threads() const { return lanes * runs; }
  bool operator==(const Layout&) const = default;
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

Layout lay(const DepthwiseNhwcTile& tile, const ConvolutionProblem& problem, const Gather& gather) {
  const std::int64_t filter = std::max<std::int64_t>(filter_bytes(problem, gather), 1);
  Layout out{tile.p, tile.q,
             depthwise_lanes(ceil_div(problem.groups * gather.rows, channel_vector(problem.type())),
                             std::clamp<std::int64_t>(most_filter_bytes / filter, 1, tile.lanes)),
             0, 0};
  const Spatial largest = gather.largest_pixels();
  while (out.q > 1 &&
         (row_bytes(problem, gather, out.q) > most_row_bytes || out.q / 2 >= largest[2]))
    out.q /= 2;
  if (largest[1] == 1 || gather.largest_taps()[1] == 1) out.p = 1;
  const std::int64_t sums = out.p * out.q * channel_vector(problem.type()) *
                            static_cast<std::int64_t>(size_of(compute_type(problem.type()))) / 4;
  const DepthwiseBlock block = depthwise_block(sums + row_bytes(problem, gather, out.q) / 4 +
                                               (gather.channels == 1 ? 0 : 16));
  out.runs = std::max<std::int64_t>(std::min(block.threads, tile.threads) / out.lanes, 1);
  out.min_blocks = block.min_blocks;
  return out;
}

std::int64_t runs_of(const ConvolutionProblem& problem, const Gather& gather,
                     const Layout& layout) {
  const Spatial largest = gather.largest_pixels();
  return problem.batch * ceil_div(largest[1], layout.p) * ceil_div(largest[2], layout.q);
}

std::int64_t channel_tiles(const ConvolutionProblem& problem, const Gather& gather,
                           const Layout& layout) {
  return ceil_div(problem.groups * gather.rows, layout.lanes * channel_vector(problem.type()));
}

// Blocks of one phase, and of all.
std::int64_t phase_blocks_of(const ConvolutionProblem& problem, const Gather& gather,
                             const Layout& layout) {
  return ceil_div(runs_of(problem, gather, layout), layout.runs) *
         channel_tiles(problem, gather, layout);
}
std::int64_t blocks_of(const ConvolutionProblem& problem, const Gather& gather,
                       const Layout& layout) {
  return phase_blocks_of(problem, gather, layout) * static_cast<std::int64_t>(gather.phases.size());
}

// Rows of a short filter are loaded and added side by side; those of a longer one in turn.
std::int64_t unrolled_rows(const Gather& gather) {
  return gather.most_taps() * gather.channels <= 9 ? 8 : 1;
}

Refusal refusal(const ConvolutionProblem& problem, const Gather& gather) {
  const std::int64_t vector = channel_vector(problem.type());
  if (auto refused = channel_vectors_refusal(problem, gather)) return refused;
  if (auto refused = group_rows_refusal(problem.type(), gather)) return refused;
  if (row_bytes(problem, gather, 1) > most_pixel_bytes)
    return cat("a row of the filter reaches over ", columns_met(gather, 1), " places of ",
               group_inputs(problem.type(), gather), " channels; expected at most ",
               most_pixel_bytes / static_cast<std::int64_t>(size_of(problem.type())), " elements");
  if (const std::int64_t filter = filter_bytes(problem, gather); filter > most_filter_bytes)
    return cat(gather.most_taps(), " taps take ", filter, " bytes of shared memory for ", vector,
               " channels; expected at most ", most_filter_bytes);
  return {};
}

double seconds(const ConvolutionProblem& problem, const Gather& gather, const Layout& layout,
               const DeviceDescription& device) {
  // Multiply-adds of a multiprocessor in a clock, of 16-bit elements, which are converted, and of
  // others; and the share of memory's rate that is reached. Fitted to an H200's times of 3x3 to 7x7
  // filters in 16 bits; for other types counted.
  constexpr double converted_products = 20.7071, products = 64.6465, memory_share = 0.5;
  // Counted, not measured: with several channels a group, each weight that is read serves only a
  // few pixels.
  constexpr double group_share = 0.6;
  // A weight is read for the pixels of a row of a thread's tile. One pixel, with 31x31 in f32, took
  // 4.8 times as long as four.
  constexpr double pixel_products = products / 4.8;
  // What a thread waits at each round of reads, for memory and for each read; of an H200's times of
  // single images.
  constexpr double round_clocks = 700, read_clocks = 40;
  const double rate = std::min(size_of(problem.type()) == 2 ? converted_products : products,
                               pixel_products * static_cast<double>(layout.q)) *
                      (problem.group_in() * problem.group_out() > 1 ? group_share : 1);
  const Work work = work_of(problem, false);
  const std::int64_t blocks = std::max<std::int64_t>(blocks_of(problem, gather, layout), 1);
  // The products of the multiprocessor that has most.
  const double busiest = work.flops / 2 / static_cast<double>(blocks) *
                         std::ceil(static_cast<double>(blocks) / device.multiprocessors);
  const std::int64_t weights =
      gather.most_taps() * gather.channels * channel_vector(problem.type());
  const std::int64_t rows = (layout.p - 1) * gather.stride[1] +
                            (gather.largest_taps()[1] - 1) * std::abs(gather.step[1]) + 1;
  const auto clocks = [&](std::int64_t rounds, std::int64_t reads) {
    return static_cast<double>(rounds) * (round_clocks + read_clocks * static_cast<double>(reads));
  };
  const double waits = clocks(ceil_div(weights, layout.runs * filter_reads), filter_reads) +
                       clocks(rows, columns_met(gather, layout.q));
  return clocks_to_seconds(busiest / rate, work.bytes / memory_share, device) +
         waits / clock_rate(device);
}

}  // namespace

bool DepthwiseNhwcFmaEngine::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return is_gather(problem) && convolution->groups > 1;
}

std::span<const DepthwiseNhwcTile> DepthwiseNhwcFmaEngine::tiles() { return all_tiles; }

std::variant<std::vector<Candidate>, Refusal> DepthwiseNhwcFmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (auto refused = refusal(problem, gather)) return refused;
  const int large = gather.channels == 1 ? 0 : 1;
  const Layout first = lay(all_tiles[large], problem, gather);
  const std::int64_t blocks = blocks_of(problem, gather, first);
  if (blocks > limit32)
    return Refusal{cat(blocks, " thread blocks; a launch has at most ", limit32)};
  std::vector<Candidate> out{{large, 1, seconds(problem, gather, first, device)}};
  if (blocks >= 2 * device.multiprocessors) return out;
  std::vector<Layout> seen{first};
  for (std::size_t i = large_tiles; i < std::size(all_tiles); ++i) {
    const Layout layout = lay(all_tiles[i], problem, gather);
    if (std::find(seen.begin(), seen.end(), layout) != seen.end()) continue;
    seen.push_back(layout);
    out.push_back({static_cast<int>(i), 1, seconds(problem, gather, layout, device)});
  }
  return out;
}

Proposal DepthwiseNhwcFmaEngine::make(const Problem& any, const DeviceDescription&,
                                      Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  const Layout layout = lay(all_tiles[candidate.kernel], problem, gather);
  const std::int64_t vector = channel_vector(problem.type());
  const auto compute_bytes = static_cast<std::int64_t>(size_of(compute_type(problem.type())));

  KernelSpec spec;
  spec.engine = name();
  spec.file = cat("conv/direct/", name(), ".cu");
  spec.entry = name();
  spec.tile = cat(layout.p, "x", layout.q, " pixels x ", vector, " channels a thread, ",
                  layout.lanes * vector, " channels a block, ", layout.threads(), " threads");
  spec.alignment = channel_vector_bytes;
  spec.shared_memory = static_cast<std::uint32_t>(
      layout.lanes * std::max<std::int64_t>(filter_bytes(problem, gather), vector * compute_bytes));
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  const Spatial largest = gather.largest_pixels();
  add("GROUPS", problem.groups);
  add("ACCESS", input_access(problem.type(), gather), "channels of the source in one load");
  add("VECTOR", vector, "channels of a thread");
  add("PARTS", std::int64_t{vector * compute_bytes > 16 ? 2 : 1},
      "loads of shared memory for the weights of these channels");
  add("TILE_P", layout.p, "rows of pixels of a thread");
  add("TILE_Q", layout.q);
  add("LANES_C", layout.lanes, "vectors of channels of a block");
  add("RUNS", layout.runs, "threads of a block with different tiles of pixels");
  add("CHANNEL_TILES", channel_tiles(problem, gather, layout));
  add("MOST_TAPS", std::max<std::int64_t>(gather.most_taps(), 1));
  add("MIN_BLOCKS", layout.min_blocks);
  // Loops over short filters are unrolled; over longer ones only those along a row.
  add("UNROLLED_ROWS", unrolled_rows(gather));
  add("DIV_TILES_Q", make_wide_magic(static_cast<std::uint64_t>(ceil_div(largest[2], layout.q))));
  add("DIV_TILES_P", make_wide_magic(static_cast<std::uint64_t>(ceil_div(largest[1], layout.p))));

  Proposal out{{std::move(spec), {}}};
  out.first().launch = gather_launch(
      problem, phase_blocks_of(problem, gather, layout), blocks_of(problem, gather, layout),
      static_cast<std::uint32_t>(layout.threads()), out.first().kernel.shared_memory);
  return out;
}

}  // namespace kiln
