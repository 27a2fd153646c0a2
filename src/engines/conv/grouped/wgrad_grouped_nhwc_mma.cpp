#include "engines/conv/grouped/wgrad_grouped_nhwc_mma.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/tile/groups.hpp"
#include "engines/cost/grouped_cost.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_pixels = 128;   // of dy in a tile
constexpr std::int64_t most_group = 16;     // channels of a group
constexpr std::int64_t most_products = 20;  // of a warp per step: each has 4 sums a thread
constexpr std::int64_t resident = 2, block_warps = 8, step_pixels = 16;

using Tile = WgradGroupedNhwcMmaTile;

std::int64_t slices_of(const Tile& tile) { return block_warps / tile.octets; }

std::int64_t met_octets(const Gather& gather) {
  if (gather.channels > octet) return ceil_div(gather.rows, octet);
  return std::max<std::int64_t>(gather.rows / gather.channels, 1);
}

// Rows of the filter whose sums fit in a warp's registers, evened out over the tiles of dw; 0 if
// not even one row fits.
std::int64_t filter_rows_of(const Gather& gather) {
  const Spatial& taps = gather.phases.front().taps;
  const std::int64_t most = most_products / met_octets(gather) * 2 / taps[2];
  if (most == 0) return 0;
  return ceil_div(taps[1], ceil_div(taps[1], most));
}

std::int64_t tile_count(const Gather& gather, const Tile& tile) {
  const Spatial& pixels = gather.phases.front().pixels;
  return ceil_div(pixels[1], tile.p) * ceil_div(pixels[2], tile.q);
}

std::int64_t places_of(const Gather& gather, const Tile& tile) {
  const auto met = [&](std::size_t i, std::int64_t pixels, std::int64_t taps) {
    return (pixels - 1) * gather.stride[i] + (taps - 1) * std::abs(gather.step[i]) + 1;
  };
  return met(1, tile.p, tile.filter_rows) * met(2, tile.q, gather.phases.front().taps[2]);
}

// The tile with the lowest estimate of products and copies among those that fit in shared memory;
// none if none fits.
std::vector<Tile> lay(const Seen& seen) {
  const Gather& gather = seen.gather;
  const DeviceDescription& device = seen.device;
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t rows = filter_rows_of(gather);
  const std::int64_t room = std::min<std::int64_t>(
      device.shared_memory_per_block, device.shared_memory_per_multiprocessor / resident - 1024);
  std::optional<Tile> best;
  double least = 0;
  for (std::int64_t octets = octets_of(gather.groups * gather.channels); octets >= warp_octets;
       octets /= 2)
    for (std::int64_t q = 1; q <= std::min(phase.pixels[2], most_pixels); ++q)
      for (std::int64_t p = 1; p <= std::min(phase.pixels[1], most_pixels / q); ++p) {
        Tile tile{.p = p,
                  .q = q,
                  .octets = octets,
                  .dy_octets = octets * gather.rows / gather.channels,
                  .filter_rows = rows,
                  .pairs = ceil_div(rows * phase.taps[2], 2),
                  .met = met_octets(gather)};
        const std::int64_t places = places_of(gather, tile);
        const std::int64_t stage_bytes =
            (places * (octets + 1) + p * q * (tile.dy_octets + 1)) * 16;
        const std::int64_t elements = rows * phase.taps[2] * octets * octet * gather.rows;
        tile.shared_memory = std::max(2 * stage_bytes + 16, slices_of(tile) * elements * 4);
        if (tile.shared_memory > room) continue;
        const auto steps = static_cast<double>(ceil_div(p * q, step_pixels * slices_of(tile)));
        const auto copies = static_cast<double>(places * octets + p * q * tile.dy_octets);
        const double work =
            static_cast<double>(tile_count(gather, tile)) *
            (steps * static_cast<double>(8 * tile.pairs * (tile.met + 4)) * 8 + copies * 4 + 1000) /
            static_cast<double>(octets);
        if (!best || work < least) best = tile, least = work;
      }
  if (!best) return {};
  best->dw = {.block_rows = best->dy_octets * octet,
              .filter_rows = best->filter_rows,
              .image_units = tile_count(gather, *best),
              .threads = 32 * block_warps,
              .resident = resident};
  return {*best};
}

Refusal refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  if (auto refused = half_products_refusal(seen.problem, seen.device)) return refused;
  const std::int64_t channels = gather.channels, rows = gather.rows;
  for (const std::int64_t of : {channels, rows})
    if (of > most_group || !std::has_single_bit(static_cast<std::uint64_t>(of)))
      return cat("groups of ", channels, " input and ", rows,
                 " output channels; this engine takes powers of two to ", most_group);
  if (rows > 4 * channels || channels > 4 * rows)
    return cat("groups of ", channels, " input and ", rows,
               " output channels; this engine takes ratios of at most four");
  if (auto refused = channel_vectors_refusal(seen.problem, gather)) return refused;
  if (filter_rows_of(gather) == 0)
    return cat(gather.phases.front().taps[2], " taps in a row of the filter; expected at most ",
               most_products / met_octets(gather) * 2);
  return {};
}

double seconds(const Tile& tile, const Seen& seen, const Sharing& sharing) {
  const Gather& gather = seen.gather;
  const auto all = static_cast<double>(tile.dw.units(seen) * tile.dw.count(gather));
  const auto steps = static_cast<double>(ceil_div(tile.p * tile.q, step_pixels) * tile.octets);
  // In each step of 16 pixels, a warp loads four 8x8 matrices for every two taps and for every two
  // octets of dy.
  GroupedWork work;
  work.wavefronts = all * (steps * static_cast<double>(4 * (tile.pairs + ceil_div(tile.met, 2))) +
                           static_cast<double>(places_of(gather, tile) * tile.octets +
                                               tile.p * tile.q * tile.dy_octets) /
                               8);
  work.products = all * steps * static_cast<double>(tile.pairs * tile.met);
  work.blocks = static_cast<double>(tile.dw.blocks(seen, sharing));
  work.warps = block_warps;
  work.bytes = work_of(seen.problem, false).bytes;
  constexpr double memory_share = 0.5;  // as measured for the other engines of such gradients
  work.memory_share = memory_share;
  return grouped_seconds(work, seen.device);
}

std::string describe(const Tile& tile) {
  return cat(tile.p, "x", tile.q, " pixels x ", tile.octets * octet, " channels, ",
             tile.filter_rows, " rows of the filter, ", tile.dw.threads, " threads");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  spec.alignment = channel_vector_bytes;
  filter_gradient::write(spec, tile.dw, seen);
  const ConstantWriter add(spec.constants);
  const Spatial& pixels = seen.gather.phases.front().pixels;
  add("OCTETS", tile.octets, "octets of channels of x of a block");
  add("SLICES", slices_of(tile), "warps that have the same channels");
  add("TILE_P", tile.p, "rows of pixels of a tile");
  add("TILE_Q", tile.q);
  add.wide_divisor("DIV_TILES_Q", ceil_div(pixels[2], tile.q));
  add.wide_divisor("DIV_TILES_P", ceil_div(pixels[1], tile.p));
  add("MIN_BLOCKS", resident);
  add("SHARED_BYTES", tile.shared_memory);
}

}  // namespace

constinit const Recipe<WgradGroupedNhwcMmaTile> wgrad_grouped_nhwc_mma = {
    .name = "wgrad_grouped_nhwc_mma",
    .file = "conv/grouped/wgrad_grouped_nhwc_mma.cu",
    .filter_gradient = true,
    .several_groups = true,
    .refusal = refusal,
    .lay = lay,
    .no_tile =
        "the pixels of x that a pixel of dy needs take more than half of a multiprocessor's shared "
        "memory",
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
