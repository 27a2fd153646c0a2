#include "engines/conv/direct/depthwise_halo_nhwc_fma.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/direct/depthwise_sums.hpp"
#include "engines/conv/maps/boxed_source.hpp"
#include "engines/conv/recipe/boxed_gather.hpp"
#include "engines/conv/recipe/tile_fields.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/cost/depthwise_cost.hpp"

namespace kiln {
namespace {

using Tile = DepthwiseHaloTile;

constexpr DepthwiseHaloShape shapes[] = {
    {.p = 7, .q = 2, .lanes = 32},  {.p = 7, .q = 2, .lanes = 16},  {.p = 14, .q = 2, .lanes = 32},
    {.p = 14, .q = 2, .lanes = 16}, {.p = 7, .q = 4, .lanes = 32},  {.p = 7, .q = 4, .lanes = 16},
    {.p = 14, .q = 4, .lanes = 32}, {.p = 14, .q = 4, .lanes = 16}, {.p = 7, .q = 7, .lanes = 32},
    {.p = 7, .q = 7, .lanes = 16},  {.p = 4, .q = 4, .lanes = 32},  {.p = 4, .q = 4, .lanes = 16},
    {.p = 1, .q = 8, .lanes = 32},  {.p = 1, .q = 8, .lanes = 16},  {.p = 1, .q = 4, .lanes = 32},
};

// In layers of several rows, tiles of one row would read each row once for every row of the filter.
bool suits(const DepthwiseHaloShape& shape, const Gather& gather) {
  return shape.p > 1 || gather.phases.front().pixels[1] == 1;
}

constexpr std::int64_t pair = 2;  // channels of a thread
constexpr std::int64_t stages = 2;
constexpr std::int64_t block_threads = 256, most_box = 256;
constexpr std::int64_t most_registers = 255, register_unit = 8;
constexpr std::int64_t address_registers = 26;
// Blocks that have the same channels, where each leaves sums: a thread of the second step loads
// those of a thirty-second of them at once.
constexpr std::int64_t most_parts = 768;

std::int64_t registers_of(const Gather& gather, const DepthwiseHaloShape& shape, bool kept) {
  const Spatial& taps = gather.phases.front().taps;
  const std::int64_t rows = std::min(shape.p, ceil_div(places_met(gather, 1, 1), gather.stride[1]));
  return pair * (rows * shape.q + places_met(gather, 2, shape.q) +
                 (kept ? taps[1] * taps[2] : taps[2])) +
         address_registers;
}

// Bytes that memory and L2 move for each byte of a line of `line_bytes`; fitted to an H200's times.
double moved_share(std::int64_t line_bytes) {
  constexpr double whole = 1, sectors = 1.05, parts = 1.8;
  return line_bytes % 64 == 0 ? whole : line_bytes % 32 == 0 ? sectors : parts;
}

// How many 16-byte vectors of channels a block takes: whole memory sectors where possible, with few
// idle vectors in the last block.
std::int64_t vectors_of(std::int64_t all, std::int64_t most) {
  // What a tile costs besides its vectors, relative to one of them; chosen, not measured.
  constexpr double tile_cost = 0.5;
  std::int64_t best = 1;
  double least = 0;
  for (std::int64_t vectors = 1; vectors <= std::min(all, most); ++vectors) {
    const double cost = static_cast<double>(round_up(all, vectors)) *
                        moved_share(vectors * channel_vector_bytes) *
                        (1 + tile_cost / static_cast<double>(vectors));
    if (least == 0 || cost <= least) best = vectors, least = cost;
  }
  return best;
}

std::optional<Tile> lay_shape(const DepthwiseHaloShape& shape, const Seen& seen) {
  const Gather& gather = seen.gather;
  const DeviceDescription& device = seen.device;
  const Spatial& pixels = gather.phases.front().pixels;
  const auto element = static_cast<std::int64_t>(size_of(gather.type));
  Tile out;
  out.shape = shape;
  // A line of a halo is a multiple of 16 bytes.
  const std::int64_t vector = channel_vector(gather.type);
  out.lanes = vectors_of(gather.groups / vector, shape.lanes * pair / vector) * vector / pair;
  out.channel_tiles = ceil_div(gather.groups, out.lanes * pair);
  const std::int64_t all_columns = ceil_div(pixels[2], shape.q),
                     all_strips = ceil_div(pixels[1], shape.p);
  out.tiles_q = ceil_div(all_columns * out.lanes, block_threads);
  out.columns = ceil_div(all_columns, out.tiles_q);
  const std::int64_t most_strips =
      std::clamp<std::int64_t>(block_threads / (out.lanes * out.columns), 1, all_strips);
  out.tiles_p = ceil_div(all_strips, most_strips);
  out.strips = ceil_div(all_strips, out.tiles_p);

  const std::int64_t of_sums = depthwise_sums_registers(seen.problem, shape.q);
  out.weights_kept = registers_of(gather, shape, true) + of_sums <= most_registers;
  out.registers = registers_of(gather, shape, out.weights_kept) + of_sums;
  if (out.registers > most_registers) return std::nullopt;
  const std::int64_t rows = places_met(gather, 1, out.strips * shape.p),
                     columns = places_met(gather, 2, out.columns * shape.q);
  if (rows > most_box || columns > most_box) return std::nullopt;
  const std::int64_t channels = out.lanes * pair;
  out.shared_memory = stages * round_up(rows * columns * channels * element, 128) +
                      round_up(gather.most_taps() * channels * 4, 16) + stages * 8;
  out.shared_memory =
      std::max(out.shared_memory, depthwise_sums_bytes(seen.problem, out.threads()));
  if (out.shared_memory > device.shared_memory_per_block) return std::nullopt;
  std::int64_t warps = ceil_div(out.threads(), 32);
  // ptxas bounds registers as if blocks had multiples of four warps. Plain kernels are left as they
  // were measured.
  if (asks_for_sums(seen.problem)) warps = round_up(warps, 4);
  out.resident = std::min(
      device.registers_per_multiprocessor / (warps * 32 * round_up(out.registers, register_unit)),
      device.shared_memory_per_multiprocessor / (out.shared_memory + 1024));
  if (asks_for_sums(seen.problem))
    out.resident = std::min(
        out.resident,
        std::max<std::int64_t>(most_parts * out.channel_tiles / seen.device.multiprocessors, 1));
  if (out.resident < 1) return std::nullopt;
  return out;
}

std::vector<Tile> lay(const Seen& seen) {
  std::vector<Tile> out;
  for (const DepthwiseHaloShape& shape : shapes) {
    if (!suits(shape, seen.gather)) continue;
    if (const auto tile = lay_shape(shape, seen)) out.push_back(*tile);
  }
  return out;
}

DepthwiseParts parts_of(const Tile& tile, const Seen& seen) {
  return {.channels = tile.channel_tiles * tile.lanes * pair,
          .parts = boxed_gather::channel_blocks(tile, seen),
          .at_most = std::max<std::int64_t>(
              tile.resident * seen.device.multiprocessors / tile.channel_tiles, 1)};
}

Refusal refusal(const Seen& seen) {
  if (seen.gather.channels != 1 || seen.gather.rows != 1)
    return cat(seen.gather.channels, " input and ", seen.gather.rows,
               " output channels a group; this engine takes one of each");
  if (size_of(seen.problem.type()) > 4)
    return "the data type is f64; this engine takes f32, f16 and bf16";
  if (auto refused = plane_refusal(seen.gather)) return refused;
  if (auto refused = channel_vectors_refusal(seen.problem, seen.gather)) return refused;
  if (auto refused = depthwise_sums_refusal(seen)) return refused;
  return boxes_refusal(seen.device);
}

std::vector<Offer> offers(const Tile& tile, const Seen& seen, const TileCounts& tiles) {
  const Gather& gather = seen.gather;
  const DepthwiseHaloShape& shape = tile.shape;
  DepthwiseHaloWork work;
  work.products = static_cast<double>(pair * shape.p * shape.q * gather.most_taps());
  work.places =
      static_cast<double>(places_met(gather, 1, shape.p) * places_met(gather, 2, shape.q));
  work.weights = tile.weights_kept ? 0 : static_cast<double>(shape.p * gather.most_taps());
  work.results = static_cast<double>(shape.p * shape.q);
  work.warps = static_cast<double>(ceil_div(tile.threads(), 32));
  work.resident = static_cast<double>(tile.resident);
  work.tiles = static_cast<double>(ceil_div(std::max<std::int64_t>(tiles.of_pixels, 1),
                                            boxed_gather::channel_blocks(tile, seen)));
  work.blocks = static_cast<double>(tiles.blocks);
  work.lines_share =
      moved_share(tile.lanes * pair * static_cast<std::int64_t>(size_of(gather.type))) *
      static_cast<double>(tile.channel_tiles * tile.lanes * pair) /
      static_cast<double>(gather.groups);
  work.bytes = work_of(seen.problem, false).bytes;
  const double seconds = depthwise_halo_seconds(work, seen.device);
  if (!asks_for_sums(seen.problem)) return {{{}, seconds}};
  constexpr double joining = 3e-6;  // counted: the end of the blocks and the second step
  return {{{}, seconds + joining, parts_of(tile, seen).workspace(seen.problem)}};
}

std::string describe(const Tile& tile) {
  return cat(tile.shape.p, "x", tile.shape.q, " pixels a thread, ", tile.strips * tile.shape.p, "x",
             tile.columns * tile.shape.q, " pixels x ", tile.lanes * pair, " channels a block, ",
             tile.threads(), " threads");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  spec.constants = gather_constants(seen.problem, seen.gather);
  const ConstantWriter add(spec.constants);
  add("GROUPS", seen.gather.groups);
  add("TILE_P", tile.shape.p, "rows of pixels of a thread");
  add("TILE_Q", tile.shape.q);
  add("LANES_C", tile.lanes, "pairs of channels of a block");
  add("COLUMNS", tile.columns, "threads of a block along a row of pixels");
  add("STRIPS", tile.strips, "threads of a block down a column of pixels");
  add("STAGES", stages, "halos in shared memory");
  add("TILES_P", tile.tiles_p, "tiles down an image");
  add("TILES_Q", tile.tiles_q);
  add("CHANNEL_TILES", tile.channel_tiles);
  add("WEIGHTS_KEPT", tile.weights_kept, "the filter's weights stay in registers");
  add("MIN_BLOCKS", tile.resident);
  add("SHARED_BYTES", tile.shared_memory);
}

LaunchSpec launch(const KernelSpec& /*spec*/, const Tile& tile, const Seen& seen,
                  const Sharing& /*one*/) {
  const TileCounts tiles = boxed_gather::count(tile, seen);
  const PixelsBox halo{tile.lanes * pair, places_met(seen.gather, 2, tile.columns * tile.shape.q),
                       places_met(seen.gather, 1, tile.strips * tile.shape.p)};
  return boxed_gather_launch(seen.problem, seen.gather, halo, tiles.of_pixels, tiles.blocks,
                             {tile.threads(), tile.shared_memory});
}

}  // namespace

const Recipe<DepthwiseHaloTile> depthwise_halo_nhwc_fma = {
    .name = "depthwise_halo_nhwc_fma",
    .file = "conv/direct/depthwise_halo_nhwc_fma.cu",
    .several_groups = true,
    .moments = true,
    .normalization_gradient = true,
    .refusal = refusal,
    .lay = lay,
    .no_tile = "the halo or the sums of no tile fit into a multiprocessor",
    .tile_refusal = boxed_gather::tile_refusal<Tile, limit32 / 2>,
    .count = boxed_gather::count,
    .offers = offers,
    .describe = describe,
    .threads = threads_of,
    .shared_memory = shared_memory_of,
    .alignment = vector_alignment,
    .write = write,
    .launch = launch,
    .finish =
        [](Proposal& proposal, const Tile& tile, const Seen& seen, const Sharing& /*one*/) {
          add_depthwise_sums(proposal, parts_of(tile, seen), seen);
        },
};

}  // namespace kiln
