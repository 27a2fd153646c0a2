#include "engines/conv/direct/wgrad_depthwise_fma.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/quad_rows.hpp"
#include "engines/conv/tile/whole_rows.hpp"
#include "engines/cost/chips.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_channels = 8;  // of a group; each channel of x reads dy once more
// 32-bit registers of a thread for sums, and for a row of x.
constexpr std::int64_t most_sums = 72, most_row = 48;
constexpr std::int64_t block_threads = 256, most_runs = 128, resident = 2, vector_bytes = 16;

using Tile = WgradDepthwiseFmaTile;

std::int64_t element_of(DataType type) { return static_cast<std::int64_t>(size_of(type)); }
std::int64_t words_of(DataType type) {
  return static_cast<std::int64_t>(size_of(compute_type(type))) / 4;
}

std::int64_t reach(const Gather& gather, std::size_t i, std::int64_t pixels, std::int64_t taps) {
  return (pixels - 1) * gather.stride[i] + (taps - 1) * std::abs(gather.step[i]) + 1;
}

// Pixels of a thread: the largest of 8, 7 and 4 that divides a row.
std::int64_t run_of(std::int64_t width) {
  for (const std::int64_t run : {8, 7, 4})
    if (width % run == 0) return run;
  return 8;
}

// Elements of the widest copy, of up to 16 bytes, that divides a tensor's rows.
std::int64_t pack_of(const ConvolutionProblem& problem, std::int64_t width, const Dims& strides) {
  return whole_row_copy(problem, width, 1, strides, true) / element_of(problem.type());
}

std::vector<Tile> lay(const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t element = element_of(problem.type());
  Tile tile;
  tile.run = run_of(phase.pixels[2]);
  const std::int64_t rows =
      std::max<std::int64_t>(most_sums / words_of(problem.type()) / phase.taps[2], 1);
  tile.filter_rows = ceil_div(phase.taps[1], ceil_div(phase.taps[1], rows));
  const std::int64_t all = ceil_div(phase.pixels[2], tile.run);
  tile.tiles_q = ceil_div(all, most_runs);
  tile.runs = ceil_div(all, tile.tiles_q);
  tile.tiles_p = ceil_div(phase.pixels[1], std::max<std::int64_t>(block_threads / tile.runs, 1));
  tile.p = ceil_div(phase.pixels[1], tile.tiles_p);
  if (tile.tiles_p * tile.tiles_q == 1) tile.units = block_threads / (tile.p * tile.runs);

  tile.pack = pack_of(problem, gather.source[2], gather.source_strides);
  tile.dy_pack = pack_of(problem, phase.pixels[2], gather.out_strides);
  while (tile.run % tile.dy_pack != 0) tile.dy_pack /= 2;
  // Where runs begin at multiples of 16 bytes, x is read by as many.
  const std::int64_t quad = vector_bytes / element, between = tile.run * gather.stride[2];
  const bool quads = between % quad == 0;
  tile.read = quads              ? quad
              : between % 4 == 0 ? vector_bytes / std::max<std::int64_t>(element, 4)
                                 : 1;
  const std::int64_t lowest =
      phase.origin[2] + std::min<std::int64_t>((phase.taps[2] - 1) * gather.step[2], 0);
  const auto shift = [&] { return (lowest % tile.pack + tile.pack) % tile.pack; };
  // Each tile of a row has to begin at a multiple of a copy.
  while (tile.pack > 1 && tile.runs * tile.run * gather.stride[2] % tile.pack != 0 &&
         tile.tiles_q > 1)
    tile.pack /= 2;
  // A thread would hold the elements of the shift for nothing.
  while (tile.pack > 1 && shift() > 3) tile.pack /= 2;
  tile.shift = shift();
  tile.row = round_up(tile.shift + reach(gather, 2, tile.run, phase.taps[2]), tile.read);
  tile.patch_width = round_up((tile.runs - 1) * tile.run * gather.stride[2] + tile.row,
                              std::max<std::int64_t>(vector_bytes / element, tile.pack));
  const std::int64_t x_rows =
      round_up(reach(gather, 1, tile.p, tile.filter_rows), gather.stride[1]);
  tile.unit = std::max(tile.read, tile.pack);
  tile.pitch = tile.patch_width, tile.plane = x_rows * tile.patch_width;
  if (quads) {
    constexpr std::int64_t enough_bytes = 20 * 1024;  // of a tile's part of x
    tile.lane_units = between / quad;
    const QuadLayout layout = lay_quads({.runs = tile.runs,
                                         .threads = tile.p * tile.runs,
                                         .rows = x_rows,
                                         .quads = tile.patch_width / quad,
                                         .lane_quads = tile.lane_units},
                                        enough_bytes / vector_bytes);
    tile.pitch = layout.pitch * quad, tile.plane = layout.plane * quad;
  }
  const std::int64_t patch = tile.lane_units * tile.plane;
  const std::int64_t sums = tile.filter_rows * phase.taps[2] * 4 * words_of(problem.type());
  const auto memory = [&] {
    return round_up(2 * tile.units * patch * element, 16) + round_up(sums, 16) +
           sums * round_up(tile.units * tile.p * tile.runs, 32) / 32;
  };
  // Other blocks of the multiprocessor hide the waits as well as more units would.
  constexpr std::int64_t enough_memory = 56 * 1024;
  while (tile.units > 1 && memory() > enough_memory) --tile.units;
  tile.shared_memory = memory();
  tile.dw = {.block_rows = 1,
             .block_channels = 1,
             .filter_rows = tile.filter_rows,
             .image_units = phase.pixels[0] * tile.tiles_p * tile.tiles_q,
             .at_once = tile.units,
             .threads = round_up(tile.units * tile.p * tile.runs, 32)};
  return {tile};
}

Refusal refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  const Gather::Phase& phase = gather.phases.front();
  if (gather.channels > most_channels)
    return cat(gather.channels, " input channels a group; expected at most ", most_channels);
  if (auto refused = whole_rows_refusal("x", gather.source[2], 1, gather.source_strides))
    return refused;
  if (auto refused = whole_rows_refusal("dy", phase.pixels[2], 1, gather.out_strides))
    return refused;
  if (auto refused = whole_row_sizes_refusal(gather, 1)) return refused;
  const std::int64_t words = words_of(seen.problem.type());
  if (phase.taps[2] * words > most_sums)
    return cat("a row of the filter has ", phase.taps[2], " taps; expected at most ",
               most_sums / words);
  return {};
}

Refusal tile_refusal(const Tile& tile, const Seen& seen, const Sharing& /*sharing*/) {
  const std::int64_t words = words_of(seen.problem.type());
  if (tile.row * words > most_row)
    return cat(tile.run, " pixels reach over ", tile.row, " places of a row; expected at most ",
               most_row / words);
  if (tile.shared_memory >
      std::min<std::int64_t>(seen.device.shared_memory_per_block,
                             seen.device.shared_memory_per_multiprocessor / resident - 1024))
    return cat("the pixels of x of a tile take ", tile.shared_memory, " bytes of shared memory");
  return {};
}

double seconds(const Tile& tile, const Seen& seen, const Sharing& sharing) {
  // Fitted to an H200's times of 3x3 filters and of rows of 31 taps. Instructions of a copy, of the
  // conversion of a word, and of a turn's start.
  constexpr double copy_instructions = 24, conversion_instructions = 2, start_instructions = 40;
  // Shares that are reached: of the schedulers' issue rate, of the clock rate in chips.cpp, and of
  // memory's rate.
  constexpr double issue_share = 0.72, clock_share = 1.755 / 1.98, memory_share = 0.75;
  // Clocks of a turn's barrier, which up to so many blocks hide, and of a block's start.
  constexpr double turn_clocks = 600, hiding_blocks = 4, first_clocks = 2000;
  // How much faster L2, from which tiles of other filter rows read again, is than memory.
  constexpr double cache_share = 2;
  const Gather& gather = seen.gather;
  const DeviceDescription& device = seen.device;
  const std::int64_t blocks = tile.dw.blocks(seen, sharing);
  const auto taps_s = static_cast<double>(gather.phases.front().taps[2]);
  const bool halves = size_of(seen.problem.type()) == 2;
  const auto run = static_cast<double>(tile.run), row = static_cast<double>(tile.row);
  const auto rows = static_cast<double>(tile.filter_rows);
  const auto patch = static_cast<double>(tile.units * tile.patch_width *
                                         reach(gather, 1, tile.p, tile.filter_rows));
  const double thread =
      start_instructions +
      rows * (run * taps_s * static_cast<double>(words_of(seen.problem.type())) +
              row / static_cast<double>(tile.read) + (halves ? row * conversion_instructions : 0)) +
      patch / static_cast<double>(tile.pack * tile.dw.threads) * copy_instructions;
  const double turns =
      static_cast<double>(ceil_div(tile.dw.units(seen), tile.units) * tile.dw.count(gather)) /
      static_cast<double>(blocks);  // turns of a block
  const double beside =
      std::ceil(static_cast<double>(blocks) / static_cast<double>(device.multiprocessors));
  const double work =
      thread * static_cast<double>(tile.dw.threads) / warp / issue_width / issue_share;
  const double clocks =
      beside * (first_clocks + turns * (work + turn_clocks / std::min(beside, hiding_blocks)));
  const auto readings =
      static_cast<double>(ceil_div(gather.phases.front().taps[1], tile.filter_rows) *
                          gather.phases.front().taps[0] * gather.channels);
  return std::max(clocks / (clock_rate(device) * clock_share),
                  memory_bound_seconds(work_of(seen.problem, false).bytes *
                                           std::max(readings / cache_share, 1.0) / memory_share,
                                       device));
}

std::string describe(const Tile& tile) {
  return cat(tile.units > 1 ? cat(tile.units, " of ") : "", tile.p, "x", tile.runs * tile.run,
             " pixels, ", tile.filter_rows, " rows of the filter, ", tile.run, " a thread, ",
             tile.dw.threads, " threads");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  const Gather::Phase& phase = gather.phases.front();
  spec.alignment =
      size_of(seen.problem.type()) * static_cast<std::size_t>(std::max(tile.pack, tile.dy_pack));
  filter_gradient::write(spec, tile.dw, seen);
  const ConstantWriter add(spec.constants);
  add("SOURCE_D", gather.source[0]);
  add("STRIDE_D", gather.stride[0]);
  add("STEP_D", gather.step[0]);
  add("ORIGIN_D", phase.origin[0]);
  add("SOURCE_STRIDE_D", gather.source_strides[2]);
  add("SOURCE_STRIDE_C", gather.source_strides[1]);
  add("OUT_STRIDE_O", gather.out_strides[2]);
  add("OUT_STRIDE_ROW", gather.out_strides[1]);
  add("IMAGES", tile.tiles_p * tile.tiles_q * phase.pixels[0] == 1, "are tiles of pixels");
  add("UNITS", tile.units, "tiles of pixels at a time");
  add("TILE_P", tile.p, "rows of pixels of a tile");
  add("RUNS", tile.runs, "of pixels of its rows");
  add("RUN", tile.run, "pixels of a thread");
  add("PACK", tile.pack, "elements of x that are copied at once");
  add("SHIFT", tile.shift, "those of a row's first copy that no pixel meets");
  add("DY_PACK", tile.dy_pack, "elements of dy that are read at once");
  add("READ", tile.read, "and of shared memory");
  add("THREAD_ROW", tile.row, "what a thread holds of a row of x");
  add("PATCH_W", tile.patch_width, "what a tile does");
  add("UNIT", tile.unit, "elements of a row of x that lie side by side");
  add("LANE_UNITS", tile.lane_units, "units from run to run");
  add("PITCH", tile.pitch, "elements from a row of x to its neighbour");
  add("PLANE", tile.plane, "elements from units that are read at once to the next ones");
  add("MIN_BLOCKS", resident);
  add("SHARED_BYTES", tile.shared_memory);
  add.wide_divisor("DIV_TILES_Q", tile.tiles_q);
  add.wide_divisor("DIV_TILES_P", tile.tiles_p);
  add.wide_divisor("DIV_OUT_O", phase.pixels[0]);
}

}  // namespace

constinit const Recipe<WgradDepthwiseFmaTile> wgrad_depthwise_fma = {
    .name = "wgrad_depthwise_fma",
    .file = "conv/direct/wgrad_depthwise_fma.cu",
    .filter_gradient = true,
    .several_groups = true,
    .refusal = refusal,
    .lay = lay,
    .tile_refusal = tile_refusal,
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
