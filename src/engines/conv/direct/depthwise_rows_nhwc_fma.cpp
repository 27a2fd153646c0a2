#include "engines/conv/direct/depthwise_rows_nhwc_fma.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/direct/depthwise_lanes.hpp"
#include "engines/conv/direct/narrow_channels.hpp"
#include "engines/conv/recipe/tile_fields.hpp"
#include "engines/cost/depthwise_cost.hpp"

namespace kiln {
namespace {

using Tile = DepthwiseRowsTile;

// The last ones are for layers so small that others would leave multiprocessors idle.
constexpr DepthwiseRowsShape shapes[] = {{.p = 7, .q = 4}, {.p = 7, .q = 7}, {.p = 4, .q = 4},
                                         {.p = 1, .q = 8}, {.p = 2, .q = 4}, {.p = 1, .q = 4},
                                         {.p = 1, .q = 1}};

constexpr std::int64_t most_filter_bytes = 48 * 1024;
constexpr std::int64_t most_kept_registers = 168;  // of a thread that keeps a plane of the filter

std::int64_t bytes_of(DataType type) { return static_cast<std::int64_t>(size_of(type)); }

// Taps of a plane of the filter: of the phase that has most, and of all phases.
std::int64_t most_plane_taps(const Gather& gather) {
  const Spatial taps = gather.largest_taps();
  return taps[1] * taps[2];
}
std::int64_t all_plane_taps(const Gather& gather) {
  std::int64_t all = 0;
  for (const Gather::Phase& phase : gather.phases) all += phase.taps[1] * phase.taps[2];
  return all;
}

std::int64_t met(const Gather& gather, std::size_t dimension, std::int64_t pixels) {
  return places_read(gather, dimension, pixels, gather.largest_taps()[dimension]);
}

// Rows of results are stored one by one, as soon as they are complete.
bool one_plane(const Gather& gather) {
  return gather.largest_taps()[0] == 1 && !gather.leaves_source(0);
}

std::int64_t registers_of(const Tile& tile, const Gather& gather, bool kept) {
  const std::int64_t reach = (gather.largest_taps()[1] - 1) * std::abs(gather.step[1]) + 1;
  const std::int64_t rows =
      one_plane(gather) ? std::min(tile.shape.p, ceil_div(reach, gather.stride[1])) : tile.shape.p;
  const std::int64_t columns = met(gather, 2, tile.shape.q),
                     inputs = narrow_inputs(gather, tile.vector);
  const std::int64_t weights = kept ? most_plane_taps(gather) : gather.largest_taps()[2];
  const std::int64_t values =
      tile.vector * (rows * tile.shape.q + weights) + columns * inputs;  // of the compute type
  return values * bytes_of(compute_type(gather.type)) / 4 +
         2 * columns * ceil_div(inputs * bytes_of(gather.type), 4) + narrow_addresses;
}

std::int64_t filter_bytes(const Gather& gather, std::int64_t channels) {
  return std::max<std::int64_t>(gather.most_taps(), 1) * channels *
         bytes_of(compute_type(gather.type));
}

std::optional<Tile> lay_shape(const DepthwiseRowsShape& shape, const Seen& seen) {
  const Gather& gather = seen.gather;
  Tile out{.shape = shape, .vector = narrow_vector(seen)};
  if (shape.p * shape.q * out.vector * all_plane_taps(gather) > narrow_products)
    return std::nullopt;
  const std::int64_t vectors = gather.groups * gather.rows / out.vector;
  const std::int64_t fit = most_filter_bytes / filter_bytes(gather, out.vector);
  out.lanes = even_lanes(vectors, std::clamp<std::int64_t>(fit, 1, narrow_lanes));
  out.channel_tiles = ceil_div(vectors, out.lanes);
  out.runs = narrow_runs(out.lanes);
  out.shared_memory = filter_bytes(gather, out.lanes * out.vector);
  out.weights_kept = registers_of(out, gather, true) <= most_kept_registers;
  const std::int64_t registers = registers_of(out, gather, out.weights_kept);
  // The compiler keeps weights of f64 in registers, though they are in shared memory.
  if (registers > (bytes_of(compute_type(gather.type)) == 8 ? 160 : narrow_registers))
    return std::nullopt;
  out.resident = narrow_resident(out.threads(), registers, out.shared_memory, seen.device);
  if (out.resident < 1) return std::nullopt;
  return out;
}

std::vector<Tile> lay(const Seen& seen) {
  const Spatial pixels = seen.gather.largest_pixels();
  std::vector<Tile> out;
  for (const DepthwiseRowsShape& shape : shapes) {
    // Tiles larger than an image are idle in part; of one pixel at least, so that there is one.
    if (shape.p > 1 && shape.p >= 2 * pixels[1]) continue;
    if (shape.q > 1 && shape.q >= 2 * pixels[2]) continue;
    if (const auto tile = lay_shape(shape, seen)) out.push_back(*tile);
  }
  return out;
}

Refusal refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  if (auto refused = narrow_channels_refusal(seen)) return refused;
  if (const std::int64_t bytes = filter_bytes(gather, narrow_vector(seen));
      bytes > most_filter_bytes)
    return cat(gather.most_taps(), " taps take ", bytes,
               " bytes of shared memory; expected at most ", most_filter_bytes);
  return {};
}

Refusal why_no_tile(const Seen& seen) {
  return cat(all_plane_taps(seen.gather), " taps in a plane of the filter for ",
             narrow_vector(seen), " channels of a thread; expected at most ", narrow_products,
             " products, in registers");
}

TileCounts count(const Tile& tile, const Seen& seen) {
  const Spatial largest = seen.gather.largest_pixels();
  const std::int64_t runs = seen.problem.batch * largest[0] * ceil_div(largest[1], tile.shape.p) *
                            ceil_div(largest[2], tile.shape.q);
  const std::int64_t of_phase = ceil_div(runs, tile.runs) * tile.channel_tiles;
  return {of_phase, of_phase * static_cast<std::int64_t>(seen.gather.phases.size())};
}

std::vector<Offer> offers(const Tile& tile, const Seen& seen, const TileCounts& tiles) {
  const Gather& gather = seen.gather;
  const std::int64_t planes = std::max<std::int64_t>(gather.largest_taps()[0], 1);
  const auto pixels = static_cast<double>(tile.shape.p * tile.shape.q);
  DepthwiseRowsWork work;
  work.converted = size_of(gather.type) == 2;
  work.channels = static_cast<double>(tile.vector);
  work.products = pixels * gather.mean_taps();
  work.rows = static_cast<double>(planes * met(gather, 1, tile.shape.p));
  work.places = work.rows * static_cast<double>(met(gather, 2, tile.shape.q));
  work.weights = static_cast<double>(gather.most_taps() * (tile.weights_kept ? 1 : tile.shape.p));
  work.results = pixels;
  work.filter = static_cast<double>(gather.most_taps() * tile.lanes * tile.vector) /
                static_cast<double>(tile.threads());
  work.warps = static_cast<double>(ceil_div(tile.threads(), 32));
  work.resident = static_cast<double>(tile.resident);
  work.blocks = static_cast<double>(std::max<std::int64_t>(tiles.all, 1));
  work.bytes = work_of(seen.problem, false).bytes;
  return {{{}, depthwise_rows_seconds(work, seen.device)}};
}

std::string describe(const Tile& tile) {
  return cat(tile.shape.p, "x", tile.shape.q, " pixels x ", tile.vector, " channels a thread, ",
             tile.lanes * tile.vector, " channels a block, ", tile.threads(), " threads");
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  spec.alignment = static_cast<std::size_t>(tile.vector * bytes_of(gather.type));
  spec.constants = gather_constants(seen.problem, gather);
  const ConstantWriter add(spec.constants);
  const Spatial largest = gather.largest_pixels();
  add("GROUPS", gather.groups);
  add("VECTOR", tile.vector, "channels of a thread");
  add("TILE_P", tile.shape.p, "rows of pixels of a thread");
  add("TILE_Q", tile.shape.q);
  add("LANES_C", tile.lanes, "vectors of channels of a block");
  add("RUNS", tile.runs, "threads of a block with different tiles of pixels");
  add("CHANNEL_TILES", tile.channel_tiles);
  add("MOST_TAPS", std::max<std::int64_t>(gather.most_taps(), 1));
  add("WEIGHTS_KEPT", tile.weights_kept, "a plane of the filter stays in registers");
  add("MIN_BLOCKS", tile.resident);
  add.wide_divisor("DIV_TILES_Q", ceil_div(largest[2], tile.shape.q));
  add.wide_divisor("DIV_TILES_P", ceil_div(largest[1], tile.shape.p));
  add.wide_divisor("DIV_PLANES", largest[0]);
}

}  // namespace

const Recipe<DepthwiseRowsTile> depthwise_rows_nhwc_fma = {
    .name = "depthwise_rows_nhwc_fma",
    .file = "conv/direct/depthwise_rows_nhwc_fma.cu",
    .several_groups = true,
    .refusal = refusal,
    .lay = lay,
    .why_no_tile = why_no_tile,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = threads_of,
    .shared_memory = shared_memory_of,
    .write = write,
};

}  // namespace kiln
