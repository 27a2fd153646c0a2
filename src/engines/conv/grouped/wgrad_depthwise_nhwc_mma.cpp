#include "engines/conv/grouped/wgrad_depthwise_nhwc_mma.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <optional>

#include "codegen/constant_writer.hpp"
#include "conv/geometry/boxed_wgrad_params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/maps/boxed_source.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/tile/groups.hpp"
#include "engines/cost/grouped_cost.hpp"

namespace kiln {
namespace {

constexpr std::int64_t stages = 2, block_warps = 8;
constexpr std::int64_t most_rows = 14;       // rows of dy in a tile
constexpr std::int64_t most_box = 256;       // columns or rows of a box: the copy engine's limit
constexpr std::int64_t most_sums = 64;       // registers of a thread for sums
constexpr std::int64_t resident_warps = 16;  // warps of a multiprocessor

using Tile = WgradDepthwiseNhwcMmaTile;

std::int64_t taps_of(const Gather& gather, int i) { return gather.phases.front().taps[i]; }
std::int64_t met(const Gather& gather, int i, std::int64_t pixels) {
  return (pixels - 1) * gather.stride[i] + (taps_of(gather, i) - 1) * std::abs(gather.step[i]) + 1;
}
std::int64_t box_columns(const Gather& gather, const Tile& tile) {
  return round_up(met(gather, 2, 16 * tile.columns), 8);
}
std::int64_t pairs_of(const Gather& gather) { return ceil_div(taps_of(gather, 2), 2); }

// Warps that the pairs of taps of a row are split between, so that the sums of each fit in
// registers; 0 if four warps are too few.
std::int64_t splits_of(const Gather& gather) {
  for (std::int64_t splits = 1; splits <= 4; splits *= 2)
    if (4 * taps_of(gather, 1) * ceil_div(pairs_of(gather), splits) <= most_sums) return splits;
  return 0;
}

std::int64_t tile_count(const Gather& gather, const Tile& tile) {
  const Spatial& pixels = gather.phases.front().pixels;
  return ceil_div(pixels[1], tile.p) * ceil_div(pixels[2], 16 * tile.columns);
}
std::int64_t stage_bytes(const Gather& gather, const Tile& tile) {
  const std::int64_t line = tile.octets * 16;
  return round_up(met(gather, 1, tile.p) * box_columns(gather, tile) * line, 1024) +
         round_up(tile.p * 16 * tile.columns * line, 1024);
}

// The work of one tile of pixels, over all channels.
GroupedWork work_of_tile(const Gather& gather, const Tile& tile) {
  const std::int64_t octets = round_up(gather.groups * gather.channels / octet, tile.octets);
  // Groups of 16 columns of an octet, each over all rows of the tile.
  const auto groups = static_cast<double>(tile.columns * octets);
  const std::int64_t rows = met(gather, 1, tile.p), pairs = pairs_of(gather);
  GroupedWork work;
  work.products = groups * static_cast<double>(tile.p * taps_of(gather, 1) * pairs);
  const std::int64_t reads = rows * pairs + tile.splits * tile.p / 2;
  work.wavefronts = groups * static_cast<double>(4 * reads);
  work.warps = static_cast<double>(tile.warps());
  return work;
}

// The tile with the lowest estimate of products, reads and copies among those that fit in shared
// memory; none if none fits.
std::vector<Tile> lay(const Seen& seen) {
  const Gather& gather = seen.gather;
  const DeviceDescription& device = seen.device;
  const Spatial& pixels = gather.phases.front().pixels;
  const std::int64_t splits = splits_of(gather);
  std::optional<Tile> best;
  double least = 0;
  for (std::int64_t octets : {8, 4, 2})
    for (std::int64_t p = 2; p <= std::min(round_up(pixels[1], 2), most_rows); p += 2)
      for (std::int64_t columns = 1; columns <= std::min<std::int64_t>(ceil_div(pixels[2], 16), 8);
           ++columns) {
        Tile tile{.p = p, .columns = columns, .octets = octets, .splits = splits};
        while (2 * tile.warps() <= block_warps && columns % (2 * tile.slices) == 0)
          tile.slices *= 2;
        if (tile.warps() > 2 * block_warps || box_columns(gather, tile) > most_box ||
            met(gather, 1, p) > most_box)
          continue;
        const std::int64_t sums =
            tile.slices * gather.most_taps() * octets * octet * gather.rows * 4;
        tile.shared_memory = std::max(stages * stage_bytes(gather, tile) + 16 + 8 * stages, sums);
        tile.resident =
            std::min(resident_warps / tile.warps(),
                     device.shared_memory_per_multiprocessor / (tile.shared_memory + 1024));
        if (tile.shared_memory > device.shared_memory_per_block || tile.resident < 1) continue;
        const GroupedWork work = work_of_tile(gather, tile);
        // By which layouts of the tile are compared; chosen, not fitted. Bytes that memory brings a
        // multiprocessor in a clock, clocks of its tensor cores for a product, clocks of a tile's
        // start, which other resident blocks hide, the share of its rates that a multiprocessor
        // with next to no warps reaches, and how much longer copies of single sectors take.
        constexpr double memory_bytes_a_clock = 20, clocks_a_product = 1.65, start_clocks = 1500,
                         few_warps_share = 0.5, sectors_share = 1.25;
        const std::int64_t all = round_up(gather.groups * gather.channels / octet, octets);
        const std::int64_t blocks = all / octets, beside = tile.resident;
        const auto bytes = static_cast<double>(stage_bytes(gather, tile) * blocks);
        const double waits =
            start_clocks * static_cast<double>(blocks) / static_cast<double>(beside);
        const double busy =
            static_cast<double>(tile.resident * tile.warps()) / static_cast<double>(resident_warps);
        const double clocks = std::max({work.wavefronts, work.products * clocks_a_product,
                                        bytes / memory_bytes_a_clock}) /
                                  (few_warps_share + (1 - few_warps_share) * busy) +
                              waits;
        const double total = clocks * static_cast<double>(tile_count(gather, tile)) *
                             (octets == 2 ? sectors_share : 1);
        if (!best || total < least) best = tile, least = total;
      }
  if (!best) return {};
  best->dw = {.block_rows = best->octets * octet,
              .filter_rows = taps_of(gather, 1),
              .image_units = tile_count(gather, *best),
              .threads = 32 * best->warps(),
              .resident = best->resident};
  return {*best};
}

Refusal refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  if (auto refused = half_products_refusal(seen.problem, seen.device)) return refused;
  if (auto refused = boxes_refusal(seen.device)) return refused;
  if (gather.channels != gather.rows || octet % gather.rows != 0)
    return cat("groups of ", gather.channels, " input and ", gather.rows,
               " output channels; this engine takes 1, 2, 4 or 8 of both");
  if (auto refused = channel_vectors_refusal(seen.problem, gather)) return refused;
  if (splits_of(gather) == 0)
    return cat(taps_of(gather, 1), " x ", taps_of(gather, 2),
               " taps, whose sums do not fit in the registers of four warps");
  return {};
}

Refusal tile_refusal(const Tile& tile, const Seen& seen, const Sharing& /*sharing*/) {
  if (const std::int64_t units = tile.dw.units(seen); units > limit32 / 2)
    return cat(units, " tiles of pixels; expected at most ", limit32 / 2);
  return {};
}

double seconds(const Tile& tile, const Seen& seen, const Sharing& sharing) {
  const auto all = static_cast<double>(tile.dw.units(seen));
  GroupedWork work = work_of_tile(seen.gather, tile);
  work.products *= all, work.wavefronts *= all;
  work.blocks = static_cast<double>(tile.dw.blocks(seen, sharing));
  work.bytes = work_of(seen.problem, false).bytes;
  constexpr double memory_share = 0.55;  // as measured on an H200
  work.memory_share = memory_share;
  return grouped_seconds(work, seen.device);
}

std::string describe(const Tile& tile) {
  return cat(tile.p, "x", 16 * tile.columns, " pixels x ", tile.octets * octet, " channels, ",
             tile.dw.threads, " threads");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  const Spatial& pixels = seen.gather.phases.front().pixels;
  spec.alignment = channel_vector_bytes;
  filter_gradient::write(spec, tile.dw, seen);
  const ConstantWriter add(spec.constants);
  add("OCTETS", tile.octets, "octets of channels of a block");
  add("SLICES", tile.slices, "warps that share the columns");
  add("SPLITS", tile.splits, "warps that share the taps of a row");
  add("TILE_P", tile.p, "rows of pixels of a tile");
  add("COLUMN_BLOCKS", tile.columns, "blocks of 16 columns of pixels");
  add("TILES_P", ceil_div(pixels[1], tile.p), "tiles down an image");
  add("TILES_Q", ceil_div(pixels[2], 16 * tile.columns));
  add("MIN_BLOCKS", tile.resident);
  add("SHARED_BYTES", tile.shared_memory);
}

LaunchSpec launch(const KernelSpec& spec, const Tile& tile, const Seen& seen,
                  const Sharing& sharing) {
  const Gather& gather = seen.gather;
  LaunchSpec launch = filter_gradient::launch(spec, tile, seen, sharing);
  launch.parameters.resize(sizeof(BoxedWgradParams));
  TensorMapSpec x = source_map(
                    seen.problem, gather,
                    {tile.octets * octet, box_columns(gather, tile), met(gather, 1, tile.p)}),
                dy = output_map(seen.problem, gather,
                                {tile.octets * octet, 16 * tile.columns, tile.p});
  x.swizzled = dy.swizzled = true;
  launch.maps = {{x, 0, 0, offsetof(BoxedWgradParams, x)},
                 {dy, 1, 0, offsetof(BoxedWgradParams, dy)}};
  return launch;
}

}  // namespace

constinit const Recipe<WgradDepthwiseNhwcMmaTile> wgrad_depthwise_nhwc_mma = {
    .name = "wgrad_depthwise_nhwc_mma",
    .file = "conv/grouped/wgrad_depthwise_nhwc_mma.cu",
    .filter_gradient = true,
    .several_groups = true,
    .refusal = refusal,
    .lay = lay,
    .no_tile = "the rows of x that two rows of dy need do not fit into shared memory",
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
