#include "engines/conv/direct/depthwise_nhwc_fma.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/direct/depthwise_lanes.hpp"
#include "engines/conv/recipe/tile_fields.hpp"
#include "engines/conv/tile/channel_vectors.hpp"
#include "engines/cost/chips.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_filter_bytes = 48 * 1024;
constexpr std::int64_t most_row_bytes = 256;    // of a thread's registers, for a row of the source
constexpr std::int64_t most_pixel_bytes = 512;  // of a thread's registers, for all reads of a pixel
constexpr std::int64_t filter_reads = 8;        // of a thread at once (depthwise_filter.cuh)

using Tile = DepthwiseNhwcTile;

// One tile for depthwise layers, and one for several channels a group, in which weights are read
// for each channel, so that a thread takes more pixels for a weight. The others are for layers so
// small that these leave multiprocessors idle: inference of one image.
constexpr DepthwiseNhwcShape depthwise_shape = {.p = 2, .q = 4, .lanes = 32, .threads = 256};
constexpr DepthwiseNhwcShape group_shape = {.p = 1, .q = 8, .lanes = 32, .threads = 256};
constexpr DepthwiseNhwcShape small_shapes[] = {
    {.p = 2, .q = 4, .lanes = 4, .threads = 128},
    {.p = 1, .q = 4, .lanes = 4, .threads = 128},
    {.p = 1, .q = 2, .lanes = 4, .threads = 128},
    {.p = 1, .q = 1, .lanes = 4, .threads = 128},
};

std::int64_t columns_met(const Gather& gather, std::int64_t q) {
  return (q - 1) * gather.stride[2] + (gather.largest_taps()[2] - 1) * std::abs(gather.step[2]) + 1;
}

std::int64_t row_bytes(const Gather& gather, std::int64_t vector, std::int64_t q) {
  return columns_met(gather, q) * group_inputs(vector, gather) *
         static_cast<std::int64_t>(size_of(gather.type));
}

std::int64_t compute_bytes(const Gather& gather) {
  return static_cast<std::int64_t>(size_of(compute_type(gather.type)));
}

// Bytes of shared memory for a vector of channels.
std::int64_t filter_bytes(const Gather& gather, std::int64_t vector) {
  return gather.most_taps() * gather.channels * vector * compute_bytes(gather);
}

// Vectors of channels of a block. Those of 16 bytes have whole sectors of memory.
std::int64_t lanes_of(const Gather& gather, std::int64_t vector, std::int64_t most) {
  const std::int64_t vectors = ceil_div(gather.groups * gather.rows, vector);
  return vector == channel_vector(gather.type) ? depthwise_lanes(vectors, most)
                                               : even_lanes(vectors, most);
}

Tile lay_shape(const DepthwiseNhwcShape& shape, const Gather& gather, std::int64_t vector) {
  const std::int64_t filter = std::max<std::int64_t>(filter_bytes(gather, vector), 1);
  Tile out{.p = shape.p, .q = shape.q, .vector = vector};
  out.lanes = lanes_of(gather, vector,
                       std::clamp<std::int64_t>(most_filter_bytes / filter, 1, shape.lanes));
  const Spatial largest = gather.largest_pixels();
  while (out.q > 1 &&
         (row_bytes(gather, vector, out.q) > most_row_bytes || out.q / 2 >= largest[2]))
    out.q /= 2;
  if (largest[1] == 1 || gather.largest_taps()[1] == 1) out.p = 1;
  const std::int64_t sums = out.p * out.q * out.vector * compute_bytes(gather) / 4;
  const DepthwiseBlock block = depthwise_block(sums + row_bytes(gather, vector, out.q) / 4 +
                                               (gather.channels == 1 ? 0 : 16));
  out.runs = std::max<std::int64_t>(std::min(block.threads, shape.threads) / out.lanes, 1);
  out.min_blocks = block.min_blocks;
  return out;
}

Tile lay_large(const Gather& gather, std::int64_t vector) {
  return lay_shape(gather.channels == 1 ? depthwise_shape : group_shape, gather, vector);
}

std::vector<Tile> lay(const Seen& seen) {
  const std::int64_t vector = fitting_vector(seen.problem, seen.gather);
  std::vector<Tile> out{lay_large(seen.gather, vector)};
  for (const DepthwiseNhwcShape& shape : small_shapes)
    if (const Tile tile = lay_shape(shape, seen.gather, vector);
        std::find(out.begin(), out.end(), tile) == out.end())
      out.push_back(tile);
  return out;
}

std::int64_t channel_tiles(const Tile& tile, const Gather& gather) {
  return ceil_div(gather.groups * gather.rows, tile.lanes * tile.vector);
}

// Blocks of one phase, and of all.
TileCounts count(const Tile& tile, const Seen& seen) {
  const Spatial largest = seen.gather.largest_pixels();
  const std::int64_t runs =
      seen.problem.batch * ceil_div(largest[1], tile.p) * ceil_div(largest[2], tile.q);
  const std::int64_t of_phase = ceil_div(runs, tile.runs) * channel_tiles(tile, seen.gather);
  return {of_phase, of_phase * static_cast<std::int64_t>(seen.gather.phases.size())};
}

// Rows of a short filter are loaded and added side by side; those of a longer one in turn.
std::int64_t unrolled_rows(const Gather& gather) {
  return gather.most_taps() * gather.channels <= 9 ? 8 : 1;
}

Refusal refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  if (auto refused = volume_refusal(gather)) return refused;
  const std::int64_t vector = fitting_vector(seen.problem, gather);
  if (auto refused = channel_vectors_refusal(seen.problem, gather, vector)) return refused;
  if (row_bytes(gather, vector, 1) > most_pixel_bytes)
    return cat("a row of the filter reaches over ", columns_met(gather, 1), " places of ",
               group_inputs(vector, gather), " channels; expected at most ",
               most_pixel_bytes / static_cast<std::int64_t>(size_of(gather.type)), " elements");
  if (const std::int64_t filter = filter_bytes(gather, vector); filter > most_filter_bytes)
    return cat(gather.most_taps(), " taps take ", filter, " bytes of shared memory for ", vector,
               " channels; expected at most ", most_filter_bytes);
  return {};
}

double seconds(const Tile& tile, const Seen& seen, const TileCounts& tiles) {
  const Gather& gather = seen.gather;
  // Multiply-adds of a multiprocessor in a clock, of 16-bit elements, which are converted, and of
  // others; and the share of memory's rate that is reached. Fitted to an H200's times of 3x3 to 7x7
  // filters in 16 bits; for other types counted.
  constexpr double converted_products = 20.7071, products = 64.6465, memory_share = 0.5;
  // Counted, not measured: with several channels a group, each weight that is read serves only a
  // few pixels.
  constexpr double group_share = 0.6;
  // Counted, too: with two channels or one, a thread has fewer products for each row that it reads.
  constexpr double narrow_share = 0.6;
  // A weight is read for the pixels of a row of a thread's tile. One pixel, with 31x31 in f32, took
  // 4.8 times as long as four.
  constexpr double pixel_products = products / 4.8;
  // What a thread waits at each round of reads, for memory and for each read; of an H200's times of
  // single images.
  constexpr double round_clocks = 700, read_clocks = 40;
  const double rate = std::min(size_of(gather.type) == 2 ? converted_products : products,
                               pixel_products * static_cast<double>(tile.q)) *
                      (seen.problem.group_in() * seen.problem.group_out() > 1 ? group_share : 1) *
                      (tile.vector < channel_vector(gather.type) ? narrow_share : 1);
  const Work work = work_of(seen.problem, false);
  const std::int64_t blocks = std::max<std::int64_t>(tiles.all, 1);
  // The products of the multiprocessor that has most.
  const double busiest = work.flops / 2 / static_cast<double>(blocks) *
                         std::ceil(static_cast<double>(blocks) / seen.device.multiprocessors);
  const std::int64_t weights = gather.most_taps() * gather.channels * tile.vector;
  const std::int64_t rows = (tile.p - 1) * gather.stride[1] +
                            (gather.largest_taps()[1] - 1) * std::abs(gather.step[1]) + 1;
  const auto clocks = [&](std::int64_t rounds, std::int64_t reads) {
    return static_cast<double>(rounds) * (round_clocks + read_clocks * static_cast<double>(reads));
  };
  const double waits = clocks(ceil_div(weights, tile.runs * filter_reads), filter_reads) +
                       clocks(rows, columns_met(gather, tile.q));
  return clocks_to_seconds(busiest / rate, work.bytes / memory_share, seen.device) +
         waits / clock_rate(seen.device);
}

// Layers that fill the chip have the large tile alone.
std::vector<Offer> offers(const Tile& tile, const Seen& seen, const TileCounts& tiles) {
  if (const Tile large = lay_large(seen.gather, tile.vector);
      tile != large && count(large, seen).all >= 2 * seen.device.multiprocessors)
    return {};
  return {{{}, seconds(tile, seen, tiles)}};
}

std::string describe(const Tile& tile) {
  return cat(tile.p, "x", tile.q, " pixels x ", tile.vector, " channels a thread, ",
             tile.lanes * tile.vector, " channels a block, ", tile.threads(), " threads");
}

std::uint32_t shared_memory(const Tile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  return static_cast<std::uint32_t>(tile.lanes *
                                    std::max<std::int64_t>(filter_bytes(gather, tile.vector),
                                                           tile.vector * compute_bytes(gather)));
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  const Gather& gather = seen.gather;
  spec.alignment = static_cast<std::size_t>(tile.vector) * size_of(gather.type);
  spec.constants = gather_constants(seen.problem, gather);
  const ConstantWriter add(spec.constants);
  const Spatial largest = gather.largest_pixels();
  add("GROUPS", gather.groups);
  add("ACCESS", input_access(tile.vector, gather), "channels of the source in one load");
  add("VECTOR", tile.vector, "channels of a thread");
  add("PARTS", std::int64_t{tile.vector * compute_bytes(gather) > 16 ? 2 : 1},
      "loads of shared memory for the weights of these channels");
  add("TILE_P", tile.p, "rows of pixels of a thread");
  add("TILE_Q", tile.q);
  add("LANES_C", tile.lanes, "vectors of channels of a block");
  add("RUNS", tile.runs, "threads of a block with different tiles of pixels");
  add("CHANNEL_TILES", channel_tiles(tile, gather));
  add("MOST_TAPS", std::max<std::int64_t>(gather.most_taps(), 1));
  add("MIN_BLOCKS", tile.min_blocks);
  // Loops over short filters are unrolled; over longer ones only those along a row.
  add("UNROLLED_ROWS", unrolled_rows(gather));
  add.wide_divisor("DIV_TILES_Q", ceil_div(largest[2], tile.q));
  add.wide_divisor("DIV_TILES_P", ceil_div(largest[1], tile.p));
}

}  // namespace

const Recipe<DepthwiseNhwcTile> depthwise_nhwc_fma = {
    .name = "depthwise_nhwc_fma",
    .file = "conv/direct/depthwise_nhwc_fma.cu",
    .several_groups = true,
    .refusal = refusal,
    .lay = lay,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = threads_of,
    .shared_memory = shared_memory,
    .write = write,
};

}  // namespace kiln
