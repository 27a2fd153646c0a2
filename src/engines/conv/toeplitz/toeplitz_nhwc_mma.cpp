#include "engines/conv/toeplitz/toeplitz_nhwc_mma.hpp"

#include <algorithm>
#include <cstdlib>
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
#include "engines/cost/depthwise_cost.hpp"

namespace kiln {
namespace {

constexpr ToeplitzShape shapes[] = {
    {.rows = 7, .columns = 4},  {.rows = 4, .columns = 4}, {.rows = 2, .columns = 4},
    {.rows = 4, .columns = 2},  {.rows = 7, .columns = 2}, {.rows = 2, .columns = 2},
    {.rows = 1, .columns = 12},
};

constexpr std::int64_t stages = 2, box_rows = 8, most_box = 256;
constexpr int threads = 32 * octet;

using Tile = ToeplitzTile;

std::optional<Tile> lay_shape(const ToeplitzShape& shape, const Seen& seen) {
  const Gather::Phase& phase = seen.gather.phases.front();
  Tile out;
  out.shape = shape;
  out.weight_tiles = (phase.taps[2] + 14) / 16 + 1;
  out.halo_columns = 16 * round_up(shape.columns + out.weight_tiles - 1, 2);
  out.halo_rows = 8 * shape.rows + phase.taps[1] - 1;
  if (out.halo_columns > most_box) return std::nullopt;
  out.boxes = ceil_div(out.halo_rows, box_rows);
  out.tiles_p = ceil_div(phase.pixels[1], 8 * shape.rows);
  out.tiles_q = ceil_div(phase.pixels[2], 16 * shape.columns);
  const std::int64_t planes = octet * out.halo_rows * (out.halo_columns + 8) * 2,
                     results = octet * 8 * shape.rows * (16 * shape.columns + 4) * 4,
                     weights = octet * phase.taps[1] * 2 * (16 * out.weight_tiles + 16) * 2;
  out.shared_memory = stages * box_rows * out.halo_columns * octet * 2 +
                      round_up(std::max(planes, results), 16) + round_up(weights, 16) +
                      round_up(stages * 8, 16) + 16;
  if (out.shared_memory > seen.device.shared_memory_per_block) return std::nullopt;
  return out;
}

std::vector<Tile> lay(const Seen& seen) {
  std::vector<Tile> out;
  for (const ToeplitzShape& shape : shapes)
    if (const auto tile = lay_shape(shape, seen)) out.push_back(*tile);
  return out;
}

// Blocks for one tile of channels, so that each multiprocessor runs one block at a time.
std::int64_t channel_blocks(std::int64_t tiles, const Seen& seen) {
  const std::int64_t places =
      std::max<std::int64_t>(seen.device.multiprocessors / (seen.gather.groups / octet), 1);
  return std::clamp<std::int64_t>(tiles, 1, places);
}

TileCounts count(const Tile& tile, const Seen& seen) {
  const std::int64_t tiles = seen.problem.batch * tile.image_tiles();
  const std::int64_t chunks = seen.gather.groups / octet;
  return {
      .of_pixels = tiles, .all = tiles * chunks, .blocks = channel_blocks(tiles, seen) * chunks};
}

std::vector<Offer> offers(const Tile& tile, const Seen& seen, const TileCounts& tiles) {
  const Gather& gather = seen.gather;
  ToeplitzWork work;
  work.products = static_cast<double>(gather.phases.front().taps[1] * tile.shape.rows *
                                      tile.shape.columns * tile.weight_tiles);
  work.halo_pixels = static_cast<double>(tile.halo_rows * tile.halo_columns);
  work.boxes = static_cast<double>(tile.boxes);
  work.results = static_cast<double>(128 * tile.shape.rows * tile.shape.columns);
  work.weights = static_cast<double>(gather.most_taps());
  work.tiles = static_cast<double>(ceil_div(std::max<std::int64_t>(tiles.of_pixels, 1),
                                            channel_blocks(tiles.of_pixels, seen))) *
               static_cast<double>(ceil_div(tiles.blocks, seen.device.multiprocessors));
  work.bytes = work_of(seen.problem, false).bytes;
  return {{{}, toeplitz_seconds(work, seen.device)}};
}

std::string describe(const Tile& tile) {
  return cat(8 * tile.shape.rows, "x", 16 * tile.shape.columns, " pixels x ", octet, " channels, ",
             threads, " threads");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  spec.constants = gather_constants(seen.problem, seen.gather);
  const ConstantWriter add(spec.constants);
  add("ROW_TILES", tile.shape.rows, "tiles of 8 rows of pixels");
  add("COLUMN_TILES", tile.shape.columns, "tiles of 16 columns of pixels");
  add("STAGES", stages, "boxes in shared memory");
  add("BOX_ROWS", box_rows, "source rows in a box");
  add("TILES_P", tile.tiles_p, "tiles down an image");
  add("TILES_Q", tile.tiles_q);
  add("CHANNEL_TILES", seen.gather.groups / octet);
  add("SHARED_BYTES", tile.shared_memory);
}

LaunchSpec launch(const KernelSpec& /*spec*/, const Tile& tile, const Seen& seen,
                  const Sharing& /*one*/) {
  const TileCounts tiles = count(tile, seen);
  return boxed_gather_launch(seen.problem, seen.gather, {octet, tile.halo_columns, box_rows},
                             tiles.of_pixels, tiles.blocks, {threads, tile.shared_memory});
}

}  // namespace

Refusal toeplitz_refusal(const ConvolutionProblem& problem, const Gather& gather,
                         const DeviceDescription& device) {
  if (gather.channels != 1 || gather.rows != 1)
    return cat(gather.channels, " input and ", gather.rows,
               " output channels a group; this engine takes one of each");
  if (auto refused = half_products_refusal(problem, device)) return refused;
  if (auto refused = boxes_refusal(device)) return refused;
  if (auto refused = plane_refusal(gather)) return refused;
  for (int i = 1; i < 3; ++i) {
    if (gather.stride[i] != 1) return cat("a stride is ", gather.stride[i], "; expected 1");
    if (std::abs(gather.step[i]) != 1 && gather.phases.front().taps[i] > 1)
      return cat("the dilation is ", std::abs(gather.step[i]), "; expected 1");
  }
  return channel_vectors_refusal(problem, gather);
}

const Recipe<ToeplitzTile> toeplitz_nhwc_mma = {
    .name = "toeplitz_nhwc_mma",
    .file = "conv/toeplitz/toeplitz_nhwc_mma.cu",
    .several_groups = true,
    .refusal =
        [](const Seen& seen) { return toeplitz_refusal(seen.problem, seen.gather, seen.device); },
    .lay = lay,
    .no_tile = "the halo and the filter of no tile fit into shared memory",
    .tile_refusal = boxed_gather::tile_refusal<Tile, limit32 / 64>,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = [](const Tile& /*tile*/) { return threads; },
    .shared_memory = shared_memory_of,
    .alignment = vector_alignment,
    .write = write,
    .launch = launch,
};

}  // namespace kiln
