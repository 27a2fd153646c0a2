#include "engines/conv/direct/wgrad_depthwise_rows_nhwc_fma.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/direct/depthwise_lanes.hpp"
#include "engines/conv/direct/narrow_channels.hpp"
#include "engines/cost/depthwise_cost.hpp"

namespace kiln {
namespace {

using Tile = WgradDepthwiseRowsTile;

// Rows and columns of pixels of a unit, at most, and the most vectors of channels of a block.
// Without workspace only a cluster shares a tile of dw: the last ones, of fewer channels, have more
// blocks.
struct Shape {
  std::int64_t p, q, lanes;
};
constexpr Shape shapes[] = {{.p = 4, .q = 4, .lanes = narrow_lanes},
                            {.p = 4, .q = 8, .lanes = narrow_lanes},
                            {.p = 7, .q = 8, .lanes = narrow_lanes},
                            {.p = 4, .q = 8, .lanes = 16},
                            {.p = 4, .q = 8, .lanes = 4}};
constexpr std::int64_t most_registers = 176;

std::int64_t bytes_of(DataType type) { return static_cast<std::int64_t>(size_of(type)); }
std::int64_t compute_bytes(const Gather& gather) { return bytes_of(compute_type(gather.type)); }
const Spatial& taps_of(const Gather& gather) { return gather.phases.front().taps; }
const Spatial& pixels_of(const Gather& gather) { return gather.phases.front().pixels; }

// The columns of a unit: few of the last one lie past the row's end.
std::int64_t columns_of(std::int64_t pixels, std::int64_t most) {
  std::int64_t best = std::min(most, pixels);
  for (std::int64_t q = best - 1; 2 * q > most; --q)
    if (round_up(pixels, q) < round_up(pixels, best)) best = q;
  return best;
}

std::int64_t registers_of(const Tile& tile, const Gather& gather, std::int64_t filter_rows) {
  const std::int64_t taps = taps_of(gather)[2], inputs = narrow_inputs(gather, tile.vector);
  const std::int64_t columns = places_read(gather, 2, tile.q, taps);
  const std::int64_t reach = (filter_rows - 1) * std::abs(gather.step[1]) + 1;
  const std::int64_t rows = std::min(tile.p, ceil_div(reach, gather.stride[1]));
  const std::int64_t values = tile.vector * (filter_rows * taps + rows * tile.q) + columns * inputs;
  const auto words = [&](std::int64_t channels) {
    return ceil_div(channels * bytes_of(gather.type), 4);
  };
  // With strides, rows of dy are under way while several rows of x go by.
  constexpr std::int64_t strided = 24;
  return values * compute_bytes(gather) / 4 + 2 * columns * words(inputs) +
         tile.q * words(tile.vector) + narrow_addresses + (gather.stride[1] > 1 ? strided : 0);
}

// The rows of the filter of a thread: all, or as many as registers hold. 0: not even one.
std::int64_t filter_rows_of(const Tile& tile, const Gather& gather) {
  const Spatial& taps = taps_of(gather);
  for (std::int64_t rows = taps[1]; rows > 0; rows = rows == 1 ? 0 : ceil_div(rows, 2))
    if (registers_of(tile, gather, rows) <= most_registers &&
        tile.p * tile.q * rows * taps[2] * tile.vector <= narrow_products)
      return rows;
  return 0;
}

std::optional<Tile> lay_shape(const Shape& shape, const Seen& seen) {
  const Gather& gather = seen.gather;
  const Spatial &taps = taps_of(gather), &pixels = pixels_of(gather);
  Tile tile{.vector = narrow_vector(seen),
            .p = std::min(shape.p, pixels[1]),
            .q = columns_of(pixels[2], shape.q)};
  // One channel keeps more rows of a large filter.
  if (filter_rows_of(tile, gather) < taps[1]) tile.vector = 1;
  const std::int64_t filter_rows = filter_rows_of(tile, gather);
  if (filter_rows == 0) return std::nullopt;
  tile.lanes = even_lanes(gather.groups * gather.rows / tile.vector, shape.lanes);
  tile.runs = narrow_runs(tile.lanes);
  tile.dw = {.block_rows = tile.lanes * tile.vector,
             .filter_rows = filter_rows,
             .image_units = pixels[0] * ceil_div(pixels[1], tile.p) * ceil_div(pixels[2], tile.q),
             .at_once = tile.runs,
             .threads = tile.lanes * tile.runs};
  tile.own = round_up(tile.dw.threads * taps[2] * tile.vector * compute_bytes(gather), 16);
  tile.shared_memory = tile.own + tile.dw.elements(gather) * compute_bytes(gather);
  tile.min_blocks = narrow_resident(tile.dw.threads, registers_of(tile, gather, filter_rows),
                                    tile.shared_memory, seen.device);
  if (tile.min_blocks < 1 || tile.shared_memory > seen.device.shared_memory_per_block)
    return std::nullopt;
  tile.dw.resident = std::max<std::int64_t>(tile.min_blocks, 2);
  return tile;
}

std::vector<Tile> lay(const Seen& seen) {
  std::vector<Tile> out;
  for (const Shape& shape : shapes) {
    const auto tile = lay_shape(shape, seen);
    const auto same = [&](const Tile& other) {
      return other.p == tile->p && other.q == tile->q && other.lanes == tile->lanes;
    };
    if (tile && std::none_of(out.begin(), out.end(), same)) out.push_back(*tile);
  }
  return out;
}

double seconds(const Tile& tile, const Seen& seen, const Sharing& sharing) {
  const Gather& gather = seen.gather;
  const Spatial& taps = taps_of(gather);
  WgradDepthwiseRowsWork work;
  work.converted = size_of(gather.type) == 2;
  work.channels = static_cast<double>(tile.vector);
  work.gradients = static_cast<double>(tile.p * tile.q);
  work.taps = static_cast<double>(tile.dw.filter_rows * taps[2]);
  work.rows = static_cast<double>(places_read(gather, 1, tile.p, tile.dw.filter_rows));
  work.places = work.rows * static_cast<double>(places_read(gather, 2, tile.q, taps[2]));
  work.units = static_cast<double>(
      ceil_div(tile.dw.units(seen), tile.runs * sharing.parts * sharing.groups));
  work.warps = static_cast<double>(ceil_div(tile.dw.threads, 32));
  work.resident = static_cast<double>(tile.min_blocks);
  work.blocks = static_cast<double>(tile.dw.blocks(seen, sharing));
  // Lines of 128 bytes that a warp's load touches: those of each of its units, unless units are
  // near.
  constexpr double bytes_of_line = 128, of_one = 1.5;
  const double units = std::max(32.0 / static_cast<double>(tile.lanes), 1.0);
  const auto apart = static_cast<double>(tile.q * gather.source_strides[4] * bytes_of(gather.type));
  work.lines = std::min(units - 1, units * apart / bytes_of_line) + of_one;
  // Blocks read whole sectors of memory, which their channels of a pixel fill the less the fewer
  // they are; and all blocks of a plane, or of some rows, of the filter read all pixels.
  constexpr double sector = 32;
  const auto line = static_cast<double>(tile.dw.block_rows * bytes_of(gather.type));
  const auto readings = static_cast<double>(taps[0] * ceil_div(taps[1], tile.dw.filter_rows));
  work.bytes = work_of(seen.problem, false).bytes;
  work.cache_bytes = work.bytes * readings * (line + sector) / line;
  return wgrad_depthwise_rows_seconds(work, seen.device);
}

std::string describe(const Tile& tile) {
  return cat(tile.dw.block_rows, " channels, ", tile.vector, " a thread, ", tile.dw.filter_rows,
             " rows of the filter, ", tile.p, "x", tile.q, " pixels a unit, ", tile.dw.threads,
             " threads");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  spec.alignment = static_cast<std::size_t>(tile.vector * bytes_of(gather.type));
  filter_gradient::write(spec, tile.dw, seen);
  const ConstantWriter add(spec.constants);
  const Spatial& pixels = pixels_of(gather);
  add("SOURCE_D", gather.source[0]);
  add("STRIDE_D", gather.stride[0]);
  add("STEP_D", gather.step[0]);
  add("ORIGIN_D", gather.phases.front().origin[0]);
  add("PADDED_D", gather.leaves_source(0));
  add("SOURCE_STRIDE_D", gather.source_strides[2]);
  add("OUT_STRIDE_O", gather.out_strides[2]);
  add("VECTOR", tile.vector, "channels of dy of a thread");
  add("LANES_C", tile.lanes, "vectors of channels of a block");
  add("RUNS", tile.runs, "threads of a block that take units of pixels in turn");
  add("TILE_P", tile.p, "rows of pixels of dy in a unit");
  add("TILE_Q", tile.q, "pixels of dy in a row of a unit");
  add.wide_divisor("DIV_TILES_Q", ceil_div(pixels[2], tile.q));
  add.wide_divisor("DIV_TILES_P", ceil_div(pixels[1], tile.p));
  add.wide_divisor("DIV_PLANES", pixels[0]);
  add("MIN_BLOCKS", tile.min_blocks);
  add("OWN_OFFSET", tile.own, "bytes before the block's own sums");
  add("SHARED_BYTES", tile.shared_memory);
}

}  // namespace

constinit const Recipe<WgradDepthwiseRowsTile> wgrad_depthwise_rows_nhwc_fma = {
    .name = "wgrad_depthwise_rows_nhwc_fma",
    .file = "conv/direct/wgrad_depthwise_rows_nhwc_fma.cu",
    .filter_gradient = true,
    .several_groups = true,
    .refusal = narrow_channels_refusal,
    .lay = lay,
    .no_tile = "no row of the filter fits into registers with the pixels that it meets",
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
