#include "engines/conv/toeplitz/wgrad_toeplitz_nhwc_mma.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "codegen/constant_writer.hpp"
#include "conv/geometry/boxed_wgrad_params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/maps/boxed_source.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/tile/groups.hpp"
#include "engines/conv/toeplitz/toeplitz_nhwc_mma.hpp"
#include "engines/cost/chips.hpp"
#include "engines/cost/depthwise_cost.hpp"

namespace kiln {
namespace {

constexpr std::int64_t stages = 3, box_rows = 8, most_box = 256;
constexpr std::int64_t most_registers = 100;  // registers for operands and sums, of 128

using Tile = WgradToeplitzNhwcMmaTile;

std::int64_t taps_of(const Gather& gather, int i) { return gather.phases.front().taps[i]; }
// Columns of the filter in units of 16, rows in units of 8.
std::int64_t column_tiles(const Gather& gather) { return ceil_div(taps_of(gather, 2), 16); }
std::int64_t row_tiles(const Gather& gather) { return ceil_div(taps_of(gather, 1), 8); }

std::int64_t halo_columns(const Gather& gather, std::int64_t columns) {
  return 16 * round_up(columns + column_tiles(gather), 2);
}
std::int64_t halo_rows(const Gather& gather, std::int64_t p) {
  return p + 8 * row_tiles(gather) - 1;
}

std::int64_t registers_of(const Gather& gather, std::int64_t columns) {
  return 4 * column_tiles(gather) * row_tiles(gather) +
         row_tiles(gather) * halo_columns(gather, columns) / 8 + 2 * columns + 3;
}

std::int64_t shared_memory_of(const Gather& gather, std::int64_t p, std::int64_t columns) {
  const std::int64_t across = halo_columns(gather, columns);
  const std::int64_t planes = octet * halo_rows(gather, p) * (across + 8) * 2,
                     sums = octet * taps_of(gather, 1) * taps_of(gather, 2) * 4;
  return stages * box_rows * across * octet * 2 + round_up(std::max(planes, sums), 16) +
         octet * p * 2 * (16 * columns + 32) * 2 + round_up(stages * 8, 16) + 16;
}

std::int64_t tile_count(const Gather& gather, const Tile& tile) {
  const Spatial& pixels = gather.phases.front().pixels;
  return ceil_div(pixels[1], tile.p) * ceil_div(pixels[2], 16 * tile.columns);
}

ToeplitzWork work_of_unit(const Gather& gather, const Tile& tile) {
  ToeplitzWork work;
  work.products =
      static_cast<double>(tile.p * (tile.columns + 1) * column_tiles(gather) * row_tiles(gather));
  const std::int64_t rows = halo_rows(gather, tile.p);
  work.halo_pixels = static_cast<double>(rows * halo_columns(gather, tile.columns) +
                                         2 * tile.p * 16 * tile.columns);
  work.boxes = static_cast<double>(ceil_div(rows, box_rows) + ceil_div(tile.p, box_rows));
  work.weights = static_cast<double>(gather.most_taps());
  return work;
}

// The tile that fits and has the least work for all pixels.
std::vector<Tile> lay(const Seen& seen) {
  const Gather& gather = seen.gather;
  const Spatial& pixels = gather.phases.front().pixels;
  std::optional<Tile> best;
  double least = 0;
  for (std::int64_t columns = 1; columns <= ceil_div(pixels[2], 16); ++columns) {
    if (halo_columns(gather, columns) > most_box || registers_of(gather, columns) > most_registers)
      break;
    for (std::int64_t bands = 1; bands <= pixels[1]; ++bands) {
      const std::int64_t p = ceil_div(pixels[1], bands);
      const Tile tile{
          .p = p, .columns = columns, .shared_memory = shared_memory_of(gather, p, columns)};
      if (tile.shared_memory > seen.device.shared_memory_per_block) continue;
      ToeplitzWork work = work_of_unit(gather, tile);
      work.tiles = static_cast<double>(tile_count(gather, tile));
      const double seconds = toeplitz_seconds(work, seen.device);
      if (!best || seconds < least) best = tile, least = seconds;
      break;  // the smallest number of bands that fits
    }
  }
  if (!best) return {};
  best->dw = {.block_rows = octet,
              .filter_rows = taps_of(gather, 1),
              .image_units = tile_count(gather, *best),
              .threads = 2 * 32 * octet,
              .resident = 1};
  return {*best};
}

Refusal refusal(const Seen& seen) {
  if (auto refused = toeplitz_refusal(seen.problem, seen.gather, seen.device)) return refused;
  if (registers_of(seen.gather, 1) > most_registers)
    return cat("the sums of a filter of ", taps_of(seen.gather, 1), " x ", taps_of(seen.gather, 2),
               " taps do not fit in registers");
  return {};
}

Refusal tile_refusal(const Tile& tile, const Seen& seen, const Sharing& /*sharing*/) {
  if (const std::int64_t units = tile.dw.units(seen); units > limit32 / 64)
    return cat(units, " tiles of pixels; expected at most ", limit32 / 64);
  return {};
}

double seconds(const Tile& tile, const Seen& seen, const Sharing& sharing) {
  const std::int64_t chunks = seen.gather.groups / octet;
  const auto all = static_cast<double>(tile.dw.units(seen) * chunks),
             blocks = static_cast<double>(tile.dw.blocks(seen, sharing));
  ToeplitzWork work = work_of_unit(seen.gather, tile);
  work.tiles =
      std::ceil(all / blocks) * std::ceil(blocks / cluster_places(sharing.parts, 1, seen.device));
  work.bytes = work_of(seen.problem, false).bytes;
  return toeplitz_seconds(work, seen.device);
}

std::string describe(const Tile& tile) {
  return cat(tile.p, "x", 16 * tile.columns, " pixels x ", octet, " channels, ", tile.dw.threads,
             " threads");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  const Spatial& pixels = seen.gather.phases.front().pixels;
  spec.alignment = channel_vector_bytes;
  filter_gradient::write(spec, tile.dw, seen);
  const ConstantWriter add(spec.constants);
  add("TILE_P", tile.p, "rows of pixels of a tile");
  add("D_TILES", tile.columns, "tiles of 16 columns of pixels");
  add("STAGES", stages, "boxes in shared memory");
  add("BOX_ROWS", box_rows);
  add("TILES_P", ceil_div(pixels[1], tile.p), "tiles down an image");
  add("TILES_Q", ceil_div(pixels[2], 16 * tile.columns));
  add("SHARED_BYTES", tile.shared_memory);
}

LaunchSpec launch(const KernelSpec& spec, const Tile& tile, const Seen& seen,
                  const Sharing& sharing) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  LaunchSpec launch = filter_gradient::launch(spec, tile, seen, sharing);
  launch.parameters.resize(sizeof(BoxedWgradParams));
  launch.maps = {
      {source_map(problem, gather, {octet, halo_columns(gather, tile.columns), box_rows}), 0, 0,
       offsetof(BoxedWgradParams, x)},
      {output_map(problem, gather, {octet, 16 * tile.columns, box_rows}), 1, 0,
       offsetof(BoxedWgradParams, dy)}};
  return launch;
}

}  // namespace

constinit const Recipe<WgradToeplitzNhwcMmaTile> wgrad_toeplitz_nhwc_mma = {
    .name = "wgrad_toeplitz_nhwc_mma",
    .file = "conv/toeplitz/wgrad_toeplitz_nhwc_mma.cu",
    .filter_gradient = true,
    .several_groups = true,
    .refusal = refusal,
    .lay = lay,
    .no_tile = "the rows of x that a row of dy needs do not fit into shared memory",
    .tile_refusal = tile_refusal,
    .count = filter_gradient::count,
    .offers = filter_gradient::offers<seconds>,
    .describe = describe,
    .threads = filter_gradient::threads,
    .shared_memory = filter_gradient::shared_memory,
    .write = write,
    .launch = launch,
    .finish = filter_gradient::finish,
};

}  // namespace kiln
