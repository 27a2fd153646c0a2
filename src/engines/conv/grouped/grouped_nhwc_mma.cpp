#include "engines/conv/grouped/grouped_nhwc_mma.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <vector>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/recipe/tile_fields.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/tile/groups.hpp"
#include "engines/cost/grouped_cost.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_pixels = 128;               // of a tile
constexpr std::int64_t most_shared_memory = 96 * 1024;  // two blocks on a multiprocessor of sm_90

// The unit of channels that a warp computes: octets that hold whole groups, the taps of a step, and
// the products of a step.
struct Unit {
  std::int64_t octets, step_taps, products;
  std::int64_t step_quads() const { return step_taps / 4; }
};
Unit unit_of(std::int64_t group) {
  if (group == 2) return {1, 8, 4};
  return group == 16 ? Unit{2, 4, 8} : Unit{1, 4, 2};
}

using Tile = GroupedNhwcTile;

std::int64_t places_of(const Gather& gather, std::int64_t p, std::int64_t q) {
  std::int64_t most = 1;
  for (const Gather::Phase& phase : gather.phases) {
    if (phase.tap_count() == 0) continue;
    const auto met = [&](std::size_t i, std::int64_t pixels) {
      return (pixels - 1) * gather.stride[i] + (phase.taps[i] - 1) * std::abs(gather.step[i]) + 1;
    };
    most = std::max(most, met(1, p) * met(2, q));
  }
  return most;
}

std::int64_t steps_of(const Gather& gather) {
  return std::max<std::int64_t>(ceil_div(gather.most_taps(), unit_of(gather.rows).step_taps), 1);
}

std::int64_t tiles_of(const Gather& gather, const Tile& tile) {
  const Spatial largest = gather.largest_pixels();
  return ceil_div(largest[1], tile.p) * ceil_div(largest[2], tile.q);
}

// The tile with the lowest estimate of products and copies among those that fit in shared memory;
// none if none fits.
std::vector<Tile> lay(const Seen& seen) {
  const Gather& gather = seen.gather;
  const Unit unit = unit_of(gather.rows);
  const Spatial largest = gather.largest_pixels();
  const std::int64_t room =
      std::min<std::int64_t>(most_shared_memory, seen.device.shared_memory_per_block);
  // What a tile costs relative to a product of a pixel with a tap; chosen, not measured: to store a
  // pixel, to copy a pixel of the halo, and besides; and how much more with one warp's octets.
  constexpr double store_cost = 8, copy_cost = 8, tile_cost = 256, narrow_share = 1.1;
  std::vector<Tile> best;
  double least = 0;
  for (std::int64_t octets = octets_of(gather.groups * gather.rows); octets >= warp_octets;
       octets /= 2)
    for (std::int64_t q = 1; q <= std::min(largest[2], most_pixels); ++q)
      for (std::int64_t p = 1; p <= std::min(largest[1], most_pixels / q); ++p) {
        Tile tile{.p = p, .q = q, .octets = octets, .places = places_of(gather, p, q)};
        tile.shared_memory =
            2 * tile.stage_bytes() + octets / unit.octets * steps_of(gather) * unit.products * 256;
        if (tile.shared_memory > room) continue;
        const auto pixels = static_cast<double>(tile.warps_p() * warp_pixels);
        const double work = static_cast<double>(tiles_of(gather, tile)) *
                            (pixels * (static_cast<double>(gather.most_taps()) + store_cost) +
                             copy_cost * static_cast<double>(tile.places) + tile_cost) *
                            (octets > warp_octets ? 1.0 : narrow_share);
        if (best.empty() || work < least) best = {tile}, least = work;
      }
  return best;
}

Refusal refusal(const Seen& seen) {
  if (auto refused = half_products_refusal(seen.problem, seen.device)) return refused;
  const std::int64_t group = seen.gather.rows;
  if (seen.gather.channels != group || (group != 2 && group != 4 && group != 8 && group != 16))
    return cat("groups of ", seen.gather.channels, " input and ", group,
               " output channels; this engine takes 2, 4, 8 or 16 of both");
  return channel_vectors_refusal(seen.problem, seen.gather);
}

Refusal why_no_tile(const Seen& seen) {
  return cat("the ", places_of(seen.gather, 1, 1), " source pixels under the taps of a pixel, and ",
             seen.gather.most_taps(), " taps of the filter, do not fit into shared memory");
}

std::int64_t channel_tiles(const Tile& tile, const Gather& gather) {
  return ceil_div(gather.groups * gather.rows, tile.octets * octet);
}

// Blocks of the same channels and phase take tiles in turn: `slots` of them.
TileCounts count(const Tile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  const std::int64_t tiles = seen.problem.batch * tiles_of(gather, tile);
  const std::int64_t each =
      channel_tiles(tile, gather) * static_cast<std::int64_t>(gather.phases.size());
  const std::int64_t resident = std::clamp<std::int64_t>(
      seen.device.shared_memory_per_multiprocessor / (tile.shared_memory + 1024), 1,
      tile.min_blocks());
  const std::int64_t slots = std::clamp<std::int64_t>(resident * seen.device.multiprocessors / each,
                                                      1, std::max<std::int64_t>(tiles, 1));
  return {.of_pixels = tiles, .all = tiles * each, .blocks = slots * each};
}

std::vector<Offer> offers(const Tile& tile, const Seen& seen, const TileCounts& all) {
  const Gather& gather = seen.gather;
  const Unit unit = unit_of(gather.rows);
  // A warp, for its 32 pixels and an octet, reads four times 16 bytes per lane for every four taps,
  // and one operand B per product of 32 pixels.
  double units = 0, steps = 0, places = 0;
  for (const Gather::Phase& phase : gather.phases) {
    const auto tiles =
        static_cast<double>(seen.problem.batch * ceil_div(phase.pixels[1], tile.p) *
                            ceil_div(phase.pixels[2], tile.q) * channel_tiles(tile, gather));
    const std::int64_t tile_units = tile.warps_p() * tile.octets / unit.octets;
    const double here = tiles * static_cast<double>(tile_units);
    units += here;
    steps += here * static_cast<double>(ceil_div(phase.tap_count(), unit.step_taps));
    if (phase.tap_count() > 0) places += tiles * static_cast<double>(tile.places * tile.octets);
  }
  GroupedWork work;
  work.products = steps * static_cast<double>(2 * unit.products);
  work.wavefronts =
      steps * static_cast<double>(16 * unit.step_quads() * unit.octets + 2 * unit.products) +
      units * static_cast<double>(32 * unit.octets) + places / 8;
  work.warps = static_cast<double>(tile.threads()) / 32;
  work.blocks = static_cast<double>(all.all);
  work.bytes = work_of(seen.problem, false).bytes;
  return {{{}, grouped_seconds(work, seen.device)}};
}

std::string describe(const Tile& tile) {
  return cat(tile.p, "x", tile.q, " pixels x ", tile.octets * octet, " channels, ", tile.threads(),
             " threads");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  spec.constants = gather_constants(seen.problem, gather);
  const ConstantWriter add(spec.constants);
  const Spatial largest = gather.largest_pixels();
  add("GROUP", gather.rows, "channels of a group");
  add("GROUPS", gather.groups);
  add("ALL_CHANNELS", gather.groups * gather.rows);
  add("OCTETS", tile.octets, "octets of channels of a block");
  add("WARPS_P", tile.warps_p(), "warps of a block that take different pixels, 32 each");
  add("TILE_P", tile.p, "rows of pixels of a block");
  add("TILE_Q", tile.q);
  add("CHANNEL_TILES", channel_tiles(tile, gather));
  add("STAGE_BYTES", tile.stage_bytes(), "bytes of a halo");
  add("MOST_STEPS", steps_of(gather));
  add("MIN_BLOCKS", tile.min_blocks());
  add.wide_divisor("DIV_TILES_Q", ceil_div(largest[2], tile.q));
  add.wide_divisor("DIV_TILES_P", ceil_div(largest[1], tile.p));
}

}  // namespace

const Recipe<GroupedNhwcTile> grouped_nhwc_mma = {
    .name = "grouped_nhwc_mma",
    .file = "conv/grouped/grouped_nhwc_mma.cu",
    .several_groups = true,
    .refusal = refusal,
    .lay = lay,
    .why_no_tile = why_no_tile,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = threads_of,
    .shared_memory = shared_memory_of,
    .alignment = vector_alignment,
    .write = write,
};

}  // namespace kiln
