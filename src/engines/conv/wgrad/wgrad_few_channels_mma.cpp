#include "engines/conv/wgrad/wgrad_few_channels_mma.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <utility>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/filter_gradient/product.hpp"
#include "engines/conv/tile/banks.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/whole_rows.hpp"
#include "engines/conv/wgrad/exchanged_roles.hpp"
#include "engines/conv/wgrad/few_channels_operands.hpp"
#include "engines/cost/chips.hpp"
#include "engines/cost/grouped_cost.hpp"

namespace kiln {
namespace {

constexpr std::int64_t block_warps = 8, stages = 3, resident = 2;
constexpr std::int64_t most_pixels = 256, most_columns = 64;  // of pixels of dy in a stage
constexpr int most_cluster = 16;

// Wavefronts of a warp's read of operand B: 8 contiguous columns at pixels that a stride of the
// convolution separates.
std::int64_t right_accesses(const FewChannelsGradientTile& tile, const Gather& gather) {
  const std::int64_t apart = (tile.few_of_x ? gather.stride[2] : 1) * (tile.planar ? 1 : tile.few);
  // Pixels from one lane to the next.
  const std::int64_t step = tile.element == 2 || tile.planar ? 2 : 1;
  std::array<std::int64_t, 32> words{};
  for (std::int64_t lane = 0; lane < 32; ++lane)
    words[static_cast<std::size_t>(lane)] = (lane % 4 * step * apart + lane / 4) * tile.element / 4;
  return bank_accesses(words);
}

// Wavefronts of shared memory in a warp's step of m x n products. Operand B of f32 has half as many
// pixels as one of 16 bits, and takes one read per pixel.
std::int64_t step_reads(const FewChannelsGradientTile& tile, std::int64_t m, std::int64_t n) {
  const std::int64_t left = 4, right = (tile.element == 2 ? 4 : 2) * tile.right_accesses;
  return tile.few_of_x ? left * m + right * n : left * m * n + right;
}

// Whether a thread has registers for m x n products of its warp, 4 sums each. f32 operands take
// more registers than operands of 16 bits, and 3xTF32 operands twice as many as those.
bool has_registers(const FewChannelsGradientTile& tile, std::int64_t m, std::int64_t n) {
  if (tile.split) return m * n <= (tile.few_of_x && !tile.planar && n <= 5 ? 12 : 10);
  return m * n <= 20 && (tile.element == 2 || 4 * m * n + 3 * n + 4 * m <= 112);
}

// Divides products and pixels among a block's warps so that reads of shared memory, and products of
// 3xTF32, are fewest. Returns false if the sums of a warp do not fit in its registers.
bool set_warps(FewChannelsGradientTile& tile, const Gather& gather) {
  const std::int64_t taps = tile.filter_rows * gather.phases.front().taps[2];
  const std::int64_t m = tile.many / 16, n = tile.few_of_x ? ceil_div(taps * tile.few, 8) : taps;
  std::int64_t least = 0;
  bool any = false;
  for (int warps_m = 1; warps_m <= block_warps && warps_m <= m; warps_m *= 2)
    for (int warps_n = 1; warps_m * warps_n <= block_warps && warps_n <= n; warps_n *= 2) {
      if (m % warps_m != 0) continue;
      const std::int64_t of_m = m / warps_m, of_n = ceil_div(n, warps_n);
      if (!has_registers(tile, of_m, of_n)) continue;
      const std::int64_t work =
          warps_m * warps_n * (step_reads(tile, of_m, of_n) + (tile.split ? 5 * of_m * of_n : 0));
      if (any && work >= least) continue;
      any = true, least = work;
      tile.warps_m = warps_m, tile.warps_n = warps_n;
      tile.products_m = of_m, tile.products_n = of_n;
    }
  tile.slices = static_cast<int>(block_warps) / (tile.warps_m * tile.warps_n);
  return any;
}

std::int64_t met(const Gather& gather, std::size_t i, std::int64_t pixels, std::int64_t taps) {
  return (pixels - 1) * gather.stride[i] + (taps - 1) * std::abs(gather.step[i]) + 1;
}

void set_memory(FewChannelsGradientTile& tile, const Gather& gather) {
  const std::int64_t taps_s = gather.phases.front().taps[2];
  const std::int64_t height = met(gather, 1, tile.p, tile.filter_rows),
                     width = met(gather, 2, tile.q, taps_s);
  const std::int64_t many_places = tile.few_of_x ? tile.p * tile.q : height * width;
  const std::int64_t few_rows = (tile.few_of_x ? height : tile.p) * (tile.planar ? tile.few : 1);
  const std::int64_t few_places = tile.few_of_x ? width : tile.q;
  tile.few_pitch =
      whole_row_pitch(few_places * (tile.planar ? 1 : tile.few), tile.element, tile.copy_bytes);
  const std::int64_t lines = tile.planar ? tile.p * tile.many : many_places;
  const std::int64_t line = (tile.planar ? tile.q : tile.many) * tile.element;
  // Padding against bank conflicts (kernel_sources/conv/wgrad/few_channels_products.cuh).
  const std::int64_t pitch = tile.element == 2 ? line + 16 : line + (line + 32) % 64;
  tile.stage_bytes = lines * pitch + few_rows * tile.few_pitch;
  const std::int64_t sums = tile.slices * tile.filter_rows * taps_s * tile.few * tile.many * 4;
  tile.shared_memory = std::max(stages * tile.stage_bytes + 16, sums);
}

std::int64_t tile_count(const Gather& gather, const FewChannelsGradientTile& tile) {
  const Spatial& pixels = gather.phases.front().pixels;
  return ceil_div(pixels[1], tile.p) * ceil_div(pixels[2], tile.q) * pixels[0];
}

// Wavefronts of shared memory of one tile of pixels, for copies and reads.
double tile_wavefronts(const FewChannelsGradientTile& tile) {
  const std::int64_t steps = tile.p * tile.q / tile.step_pixels();
  const std::int64_t reads = step_reads(tile, tile.products_m, tile.products_n);
  return static_cast<double>(steps * reads * tile.warps_m * tile.warps_n) +
         static_cast<double>(tile.stage_bytes) / 128;
}

// Sets the tile's pixels to those with the lowest estimate; none if no tile fits into shared
// memory.
std::optional<FewChannelsGradientTile> lay(FewChannelsGradientTile tile, const Gather& gather,
                                           const DeviceDescription& device) {
  if (!set_warps(tile, gather)) return std::nullopt;
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t room = std::min<std::int64_t>(
      device.shared_memory_per_block, device.shared_memory_per_multiprocessor / resident - 1024);
  std::optional<FewChannelsGradientTile> best;
  double least = 0;
  for (tile.q = tile.step_pixels();
       tile.q <= std::min(most_columns, round_up(phase.pixels[2], tile.step_pixels()));
       tile.q += tile.step_pixels())
    for (tile.p = 1; tile.p <= std::min(phase.pixels[1], most_pixels / tile.q); ++tile.p) {
      set_memory(tile, gather);
      if (tile.shared_memory > room) continue;
      const auto count = static_cast<double>(tile_count(gather, tile));
      // All slices wait for the one with the most steps.
      const std::int64_t steps = tile.p * tile.q / tile.step_pixels();
      const double idle =
          static_cast<double>(round_up(steps, tile.slices)) / static_cast<double>(steps);
      // In clocks, by an H200's times: how much longer NCHW rows take that are shorter than a line
      // of 128 bytes and waste part of it; bytes that a multiprocessor copies; a tile's barriers.
      constexpr double part_lines_share = 1.3, copied_bytes_a_clock = 16, tile_clocks = 500;
      const bool part_lines = tile.planar && tile.q * tile.element < 128;
      const double work =
          count * (part_lines ? part_lines_share : 1) *
          (tile_wavefronts(tile) * idle +
           static_cast<double>(tile.stage_bytes) / copied_bytes_a_clock + tile_clocks);
      if (!best || work < least) best = tile, least = work;
    }
  return best;
}

double seconds(const FewChannelsGradientTile& tile, const Seen& seen, const Sharing& sharing) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const DeviceDescription& device = seen.device;
  const int cluster = sharing.parts;
  const auto count = static_cast<double>(tile.dw.count(gather));
  const double units = static_cast<double>(tile.dw.units(seen)) * count;
  GroupedWork work;
  work.wavefronts = units * tile_wavefronts(tile);
  const std::int64_t steps = tile.p * tile.q / tile.step_pixels();
  work.products = units * static_cast<double>(steps * tile.products_m * tile.products_n *
                                              tile.warps_m * tile.warps_n * (tile.split ? 3 : 1));
  // Fitted to an H200's times. The share of its throughput that a multiprocessor reaches with
  // several blocks, because all wait for the slowest ones; the share of memory's rate; bytes a
  // clock of a multiprocessor from L2; how much longer rows below 64 bytes take.
  constexpr double several_blocks_share = 0.75, memory_share = 0.6, l2_bytes_a_clock = 20.202,
                   half_lines_share = 1.3;
  const double clusters = count * static_cast<double>(sharing.groups);
  const double blocks = clusters * cluster;
  const double rounds = std::ceil(blocks / (cluster_places(cluster, resident, device) * resident));
  const bool alone = blocks <= cluster_places(cluster, 1, device);
  work.blocks = blocks / rounds * (alone ? 1 : several_blocks_share);
  work.warps = tile.warps();
  work.bytes = work_of(problem, false).bytes;
  work.memory_share = memory_share;
  // Blocks of other filter rows read the operand with many channels again, and blocks of other
  // channels the one with few, both from L2.
  const Spatial& taps = gather.phases.front().taps;
  const auto out_places = static_cast<double>(gather.phases.front().out_pixels());
  const auto in_places = static_cast<double>(problem.in_pixels());
  const std::int64_t all_many = tile.few_of_x ? gather.rows : gather.channels;
  const auto images = static_cast<double>(problem.batch * tile.element);
  const double many =
      images * (tile.few_of_x ? out_places : in_places) * static_cast<double>(all_many);
  const double few =
      images * (tile.few_of_x ? in_places : out_places) * static_cast<double>(tile.few);
  const double again =
      many * static_cast<double>(taps[0] * ceil_div(taps[1], tile.filter_rows) - 1) +
      few * static_cast<double>(ceil_div(all_many, tile.many) - 1);
  const double at_work = std::min(blocks / rounds, 1.0 * device.multiprocessors);
  const double seconds =
      grouped_seconds(work, device) + again / (l2_bytes_a_clock * clock_rate(device) * at_work);
  return seconds * ((tile.planar ? tile.q : tile.many) * tile.element < 64 ? half_lines_share : 1);
}

// What all functions of the recipe see: the problem with few channels of x where x and dy can be
// exchanged for it.
struct Exchanged {
  explicit Exchanged(const Seen& asked)
      : problem(with_roles_exchanged(asked.problem)), seen(problem, asked.device) {}
  ConvolutionProblem problem;
  Seen seen;
};

Refusal refusal(const Seen& asked) {
  const Exchanged exchanged(asked);
  const Seen& seen = exchanged.seen;
  auto refused = few_channels_refusal(seen.problem, seen.gather, seen.device);
  if (refused && exchanges_roles(asked.problem)) return cat("x and dy exchanged: ", refused.reason);
  return refused;
}

std::vector<FewChannelsGradientTile> lay(const Seen& asked) {
  const Exchanged exchanged(asked);
  const ConvolutionProblem& problem = exchanged.problem;
  const Gather& gather = exchanged.seen.gather;
  FewChannelsGradientTile tile;
  tile.few_of_x = few_of_x(gather);
  tile.element = static_cast<std::int64_t>(size_of(problem.type()));
  tile.split = is_split(problem);
  const Few few = few_of(gather, tile.few_of_x);
  tile.few = few.channels;
  tile.planar = is_planar(gather);
  tile.right_accesses = right_accesses(tile, gather);
  tile.copy_bytes =
      whole_row_copy(problem, few.width, tile.planar ? 1 : few.channels, few.strides, tile.planar);
  if (tile.planar) tile.many_copy = planar_copy(problem, gather);
  const std::int64_t many = tile.few_of_x ? gather.rows : gather.channels;
  const std::int64_t rows = gather.phases.front().taps[1];
  std::vector<FewChannelsGradientTile> out;
  // Wide blocks read whole lines of memory. Narrow blocks are more in number, which helps where the
  // largest cluster of 16 does not fill the device.
  for (const std::int64_t most : {128, 96, 64, 32, 16}) {
    const std::int64_t width = ceil_div(round_up(many, 16), ceil_div(many, most) * 16) * 16;
    for (std::int64_t parts = 1; parts <= std::min<std::int64_t>(rows, 4); ++parts) {
      tile.many = width;
      tile.filter_rows = ceil_div(rows, parts);
      const auto same = [&](const FewChannelsGradientTile& other) {
        return other.many == tile.many && other.filter_rows == tile.filter_rows;
      };
      if (std::any_of(out.begin(), out.end(), same)) continue;
      auto laid = lay(tile, gather, asked.device);
      if (!laid) continue;
      laid->dw = {.block_rows = laid->few_of_x ? laid->many : laid->few,
                  .block_channels = laid->few_of_x ? laid->few : laid->many,
                  .filter_rows = laid->filter_rows,
                  .image_units = tile_count(gather, *laid),
                  .threads = 32 * laid->warps(),
                  .resident = resident};
      out.push_back(*laid);
    }
  }
  return out;
}

Refusal why_no_tile(const Seen& seen) {
  return cat("a row of the filter has ", seen.gather.phases.front().taps[2],
             " taps, and its sums do not fit into the registers of a block, or the pixels under it "
             "not into shared memory");
}

TileCounts count(const FewChannelsGradientTile& tile, const Seen& asked) {
  return filter_gradient::count(tile, Exchanged(asked).seen);
}

std::vector<Offer> offers(const FewChannelsGradientTile& tile, const Seen& asked,
                          const TileCounts& /*tiles*/) {
  const Exchanged exchanged(asked);
  return filter_gradient::offers_of(
      tile.dw, exchanged.seen, most_cluster,
      [&](const Sharing& sharing) { return seconds(tile, exchanged.seen, sharing); });
}

void write(KernelSpec& spec, const FewChannelsGradientTile& tile, const Seen& asked) {
  const Exchanged roles(asked);
  const bool exchanged = exchanges_roles(asked.problem);
  const ConvolutionProblem& problem = roles.problem;
  const Gather& gather = roles.seen.gather;
  const Gather::Phase& phase = gather.phases.front();
  spec.alignment = static_cast<std::size_t>(std::max(tile.many_copy, tile.copy_bytes));
  filter_gradient::write(spec, tile.dw, roles.seen);
  const ConstantWriter add(spec.constants);
  add("SOURCE_D", gather.source[0]);
  add("STRIDE_D", gather.stride[0]);
  add("STEP_D", gather.step[0]);
  add("ORIGIN_D", phase.origin[0]);
  add("SOURCE_STRIDE_D", gather.source_strides[2]);
  add("OUT_STRIDE_O", gather.out_strides[2]);
  add("SOURCE_STRIDE_C", gather.source_strides[1]);
  add("OUT_STRIDE_ROW", gather.out_strides[1]);
  add("FEW_OF_X", tile.few_of_x, "x has the few channels; else dy has");
  add("PLANAR", tile.planar, "channels first");
  add("BLOCK_MANY", tile.many, "channels of a block, of the tensor that has many");
  add("TILE_P", tile.p, "rows of pixels of a tile");
  add("TILE_Q", tile.q);
  add("WARPS_M", std::int64_t{tile.warps_m}, "warps that share the many channels");
  add("WARPS_N", std::int64_t{tile.warps_n}, "warps that share the columns, or the taps");
  add("SLICES", std::int64_t{tile.slices}, "warps that share the pixels");
  add("PRODUCTS_M", tile.products_m, "products of a warp along M in a step of pixels");
  add("PRODUCTS_N", tile.products_n);
  add("MANY_COPY", tile.many_copy, "bytes in one copy of the tensor of many channels");
  add("COPY_BYTES", tile.copy_bytes, "bytes in one copy of the tensor of few channels");
  add("FEW_PITCH", tile.few_pitch, "bytes from one row of few channels to the next");
  add("STAGES", stages);
  add("MIN_BLOCKS", resident);
  add_split_constants(spec.constants, tile.split, least_reduction(problem));
  add("EXCHANGED", exchanged, "x and dy have exchanged roles; padding is not multiplied");
  add_checked_constant(spec.constants, problem, true, true, exchanged);
  add("SHARED_BYTES", tile.shared_memory);
  add.wide_divisor("DIV_TILES_Q", ceil_div(phase.pixels[2], tile.q));
  add.wide_divisor("DIV_TILES_P", ceil_div(phase.pixels[1], tile.p));
  add.wide_divisor("DIV_OUT_O", phase.pixels[0]);
}

LaunchSpec launch(const KernelSpec& spec, const FewChannelsGradientTile& tile, const Seen& asked,
                  const Sharing& sharing) {
  return filter_gradient::launch(spec, tile, Exchanged(asked).seen, sharing);
}

void finish(Proposal& proposal, const FewChannelsGradientTile& tile, const Seen& asked,
            const Sharing& sharing) {
  filter_gradient::finish(proposal, tile, Exchanged(asked).seen, sharing);
  if (exchanges_roles(asked.problem)) proposal = for_exchanged_roles(std::move(proposal));
}

}  // namespace

std::string describe(const FewChannelsGradientTile& tile) {
  return cat(tile.p, "x", tile.q, " pixels x ", tile.many, " channels, ", tile.filter_rows,
             " rows of the filter, ", 32 * tile.warps(), " threads, ", tile.slices, " slices",
             tile.split ? ", 3 products" : "");
}

constinit const Recipe<FewChannelsGradientTile> wgrad_few_channels_mma = {
    .name = "wgrad_few_channels_mma",
    .file = "conv/wgrad/wgrad_few_channels_mma.cu",
    .filter_gradient = true,
    .mixed_types = true,
    .refusal = refusal,
    .lay = lay,
    .why_no_tile = why_no_tile,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = filter_gradient::threads,
    .shared_memory = filter_gradient::shared_memory,
    .write = write,
    .launch = launch,
    .finish = finish,
};

}  // namespace kiln
