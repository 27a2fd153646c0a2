#include "engines/conv/grouped/grouped_halo_nhwc_mma.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/maps/boxed_source.hpp"
#include "engines/conv/recipe/boxed_gather.hpp"
#include "engines/conv/recipe/tile_fields.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/conv/tile/groups.hpp"
#include "engines/cost/grouped_cost.hpp"

namespace kiln {
namespace {

constexpr GroupedHaloShape shapes[] = {
    {.p = 16, .q = 16, .octets = 8, .slices = 2}, {.p = 8, .q = 16, .octets = 8, .slices = 2},
    {.p = 4, .q = 32, .octets = 8, .slices = 2},  {.p = 8, .q = 32, .octets = 8, .slices = 2},
    {.p = 4, .q = 64, .octets = 8, .slices = 2},  {.p = 16, .q = 16, .octets = 4, .slices = 4},
    {.p = 8, .q = 32, .octets = 4, .slices = 4},  {.p = 16, .q = 32, .octets = 4, .slices = 4},
    {.p = 4, .q = 64, .octets = 4, .slices = 4},  {.p = 8, .q = 64, .octets = 4, .slices = 4},
    {.p = 16, .q = 16, .octets = 2, .slices = 8}, {.p = 16, .q = 32, .octets = 2, .slices = 8},
    {.p = 8, .q = 64, .octets = 2, .slices = 8},
};

constexpr std::int64_t unit = 16;  // channels of a warp
constexpr std::int64_t block_rows = 2, block_columns = 8, swizzle_lines = 8;
constexpr std::int64_t most_box = 256, most_stages = 3;
constexpr std::int64_t most_resident = 2;  // blocks of 256 threads, of 128 registers each
constexpr std::int64_t most_filter_registers = 64;
constexpr std::int64_t block_shared_memory = 1024;  // that the driver takes for each block

// Products of a block of 16 pixels by 16 channels: steps, and products of each.
std::int64_t steps_of(const Gather& gather) {
  return ceil_div(gather.most_taps() * gather.rows, unit);
}
std::int64_t step_products(const Gather& gather) { return gather.rows == 4 ? 4 : 2; }

using Tile = GroupedHaloTile;

std::optional<Tile> lay_shape(const GroupedHaloShape& wanted, const Seen& seen) {
  const Gather& gather = seen.gather;
  const Spatial& pixels = gather.phases.front().pixels;
  Tile out;
  out.shape = wanted;
  out.tiles_p = ceil_div(pixels[1], wanted.p);
  out.tiles_q = ceil_div(pixels[2], wanted.q);
  out.shape.p = round_up(ceil_div(pixels[1], out.tiles_p), block_rows);
  out.shape.q = round_up(ceil_div(pixels[2], out.tiles_q), block_columns);
  out.channel_tiles = ceil_div(gather.groups * gather.rows, out.shape.octets * octet);
  out.halo_rows = places_met(gather, 1, out.shape.p);
  // Columns beyond the image's last one may read whatever follows.
  const std::int64_t columns = places_met(gather, 2, out.shape.q);
  const std::int64_t needed = places_met(gather, 2, std::min(out.shape.q, pixels[2]));
  // With groups of 4, lanes beside each other read taps of two rows, which half the swizzle keeps
  // from meeting in the same banks.
  const std::int64_t apart = gather.rows == 4 ? swizzle_lines / 2 : 0;
  out.halo_columns = round_up(needed + apart, swizzle_lines) - apart;
  if (out.halo_rows > most_box || out.halo_columns > most_box) return std::nullopt;
  constexpr std::int64_t whole_swizzle = 1024;
  const std::int64_t beyond = std::max<std::int64_t>(columns - out.halo_columns, 0);
  out.stage_bytes = round_up(out.halo_bytes() + beyond * out.pixel_bytes(), whole_swizzle);
  for (out.stages = most_stages; out.stages >= 2; --out.stages) {
    out.shared_memory = out.stages * out.stage_bytes + channel_vector_bytes + out.stages * 8;
    if (out.shared_memory > seen.device.shared_memory_per_block) continue;
    out.resident = std::min(most_resident, seen.device.shared_memory_per_multiprocessor /
                                               (out.shared_memory + block_shared_memory));
    if (out.resident == most_resident || out.stages == 2) break;
  }
  if (out.stages < 2 || out.resident < 1) return std::nullopt;
  return out;
}

std::vector<Tile> lay(const Seen& seen) {
  std::vector<Tile> out;
  for (const GroupedHaloShape& shape : shapes)
    // Small images make several tiles the same.
    if (const auto tile = lay_shape(shape, seen);
        tile && std::ranges::find(out, tile->shape, &Tile::shape) == out.end())
      out.push_back(*tile);
  return out;
}

Refusal refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  if (auto refused = half_products_refusal(seen.problem, seen.device)) return refused;
  if (gather.channels != gather.rows || (gather.rows != 4 && gather.rows != 8 && gather.rows != 16))
    return cat("groups of ", gather.channels, " input and ", gather.rows,
               " output channels; this engine takes 4, 8 or 16 of both");
  if (auto refused = plane_refusal(gather)) return refused;
  if (auto refused = channel_vectors_refusal(seen.problem, gather)) return refused;
  if (2 * step_products(gather) * steps_of(gather) > most_filter_registers)
    return cat(gather.most_taps(), " taps; the filter would not fit into registers");
  return boxes_refusal(seen.device);
}

std::vector<Offer> offers(const Tile& tile, const Seen& seen, const TileCounts& tiles) {
  const Gather& gather = seen.gather;
  GroupedHaloWork work;
  const double warp_blocks = static_cast<double>(
      ceil_div(tile.shape.p / block_rows * (tile.shape.q / block_columns), tile.shape.slices));
  // A step reads one operand A, or one for each product; it has four wavefronts.
  const std::int64_t reads = gather.rows == unit ? 1 : step_products(gather);
  work.wavefronts = warp_blocks * static_cast<double>(4 * reads * steps_of(gather));
  work.products = warp_blocks * static_cast<double>(step_products(gather) * steps_of(gather));
  work.warps = static_cast<double>(tile.threads()) / 32;
  work.lines = static_cast<double>(tile.halo_rows * tile.halo_columns);
  work.line_bytes = static_cast<double>(tile.pixel_bytes());
  work.resident = static_cast<double>(tile.resident);
  work.tiles = static_cast<double>(ceil_div(std::max<std::int64_t>(tiles.of_pixels, 1),
                                            boxed_gather::channel_blocks(tile, seen)));
  work.blocks = static_cast<double>(tiles.blocks);
  work.bytes = work_of(seen.problem, false).bytes;
  return {{{}, grouped_halo_seconds(work, seen.device)}};
}

std::string describe(const Tile& tile) {
  return cat(tile.shape.p, "x", tile.shape.q, " pixels x ", tile.shape.octets * octet,
             " channels, ", tile.threads(), " threads, ", tile.stages, " stages");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  spec.constants = gather_constants(seen.problem, gather);
  const ConstantWriter add(spec.constants);
  add("GROUP", gather.rows, "channels of a group");
  add("GROUPS", gather.groups);
  add("ALL_CHANNELS", gather.groups * gather.rows);
  add("OCTETS", tile.shape.octets, "octets of channels of a block");
  add("SLICES", tile.shape.slices, "warps that share the pixels");
  add("TILE_P", tile.shape.p, "rows of pixels of a tile");
  add("TILE_Q", tile.shape.q);
  add("TILES_P", tile.tiles_p, "tiles down an image");
  add("TILES_Q", tile.tiles_q);
  add("CHANNEL_TILES", tile.channel_tiles);
  add("HALO_W", tile.halo_columns, "columns of a halo");
  add("STAGE_BYTES", tile.stage_bytes, "bytes of a halo and of what is read beyond it");
  add("STAGES", tile.stages, "halos in shared memory");
  add("MIN_BLOCKS", tile.resident);
  add("SHARED_BYTES", tile.shared_memory);
}

LaunchSpec launch(const KernelSpec& /*spec*/, const Tile& tile, const Seen& seen,
                  const Sharing& /*one*/) {
  const TileCounts tiles = boxed_gather::count(tile, seen);
  LaunchSpec out = boxed_gather_launch(
      seen.problem, seen.gather, {tile.shape.octets * octet, tile.halo_columns, tile.halo_rows},
      tiles.of_pixels, tiles.blocks, {tile.threads(), tile.shared_memory});
  for (LaunchSpec::Map& map : out.maps) map.spec.swizzled = true;
  return out;
}

}  // namespace

const Recipe<GroupedHaloTile> grouped_halo_nhwc_mma = {
    .name = "grouped_halo_nhwc_mma",
    .file = "conv/grouped/grouped_halo_nhwc_mma.cu",
    .several_groups = true,
    .refusal = refusal,
    .lay = lay,
    .no_tile = "the halo of no tile fits into shared memory",
    .tile_refusal = boxed_gather::tile_refusal<Tile, limit32 / 2>,
    .count = boxed_gather::count,
    .offers = offers,
    .describe = describe,
    .threads = threads_of,
    .shared_memory = shared_memory_of,
    .alignment = vector_alignment,
    .write = write,
    .launch = launch,
};

}  // namespace kiln
