#include "engines/conv/few_input_channels/few_input_channels.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/banks.hpp"
#include "engines/conv/tile/checked_sums.hpp"
#include "engines/conv/tile/line_store.hpp"
#include "engines/conv/tile/loaders.hpp"
#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"
#include "problem/problem.hpp"

namespace kiln {
namespace {

constexpr std::int64_t fragment_words = 8, word_bytes = 4;
constexpr int run_n = 2;  // contiguous pixels of a thread's results

// Two blocks share a multiprocessor, so that one stores results while the other multiplies. The
// filters of the tallest tile leave room for one block only.
constexpr FragmentShape whole_shapes[] = {
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8},
    {.m = 96, .n = 128, .thread_m = 6, .thread_n = 16, .min_blocks = 2},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 16, .min_blocks = 2},
    {.m = 48, .n = 256, .thread_m = 6, .thread_n = 16, .min_blocks = 2},
    {.m = 64, .n = 128, .thread_m = 8, .thread_n = 8, .min_blocks = 2},
    {.m = 32, .n = 256, .thread_m = 4, .thread_n = 16, .min_blocks = 2},
};
constexpr FragmentShape split_shapes[] = {
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8},
    {.m = 64, .n = 128, .thread_m = 8, .thread_n = 8, .min_blocks = 2},
    {.m = 48, .n = 128, .thread_m = 6, .thread_n = 8, .min_blocks = 2},
    {.m = 32, .n = 128, .thread_m = 4, .thread_n = 8, .min_blocks = 2},
};
// For wgmma, whose products have 64 pixels as operand A. A thread has `thread_n` pixels and all
// rows of them.
constexpr FragmentShape whole_warpgroup_shapes[] = {
    warpgroup_shape({.m = 128, .n = 128, .thread_n = 2}),
    warpgroup_shape({.m = 96, .n = 256, .thread_n = 4}),
    warpgroup_shape({.m = 96, .n = 128, .thread_n = 2, .min_blocks = 2}),
    warpgroup_shape({.m = 64, .n = 256, .thread_n = 4}),
    warpgroup_shape({.m = 64, .n = 128, .thread_n = 2, .min_blocks = 2}),
    warpgroup_shape({.m = 48, .n = 256, .thread_n = 4, .min_blocks = 2}),
    warpgroup_shape({.m = 32, .n = 256, .thread_n = 4, .min_blocks = 2}),
};
// 3xTF32: promotion doubles the accumulators, and the hi and lo parts double the filters.
constexpr FragmentShape split_warpgroup_shapes[] = {
    warpgroup_shape({.m = 96, .n = 128, .thread_n = 2}),
    warpgroup_shape({.m = 64, .n = 256, .thread_n = 4}),
    warpgroup_shape({.m = 64, .n = 128, .thread_n = 2, .min_blocks = 2}),
    warpgroup_shape({.m = 48, .n = 384, .thread_n = 4}),
    warpgroup_shape({.m = 48, .n = 256, .thread_n = 4}),
    warpgroup_shape({.m = 32, .n = 384, .thread_n = 4}),
    warpgroup_shape({.m = 32, .n = 256, .thread_n = 4}),
};

// Whether the pixels of a row are contiguous.
bool is_planar(const Gather& gather) {
  return gather.source_strides[4] == 1 || gather.source[2] == 1;
}

Refusal refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  if (auto refused =
          fragment_refusal(seen.problem, gather.channels * gather.most_taps(), seen.device))
    return refused;
  if (auto refused = plane_refusal(gather)) return refused;
  constexpr std::int64_t least_rows = 16;
  if (auto refused = rows_refusal(gather.rows, least_rows)) return refused;
  if (std::abs(gather.step[2]) != 1 && gather.phases.front().taps[2] > 1)
    return "the filter is dilated along the width";
  const Dims& s = gather.source_strides;
  const bool pixels_whole = s[1] == 1 && s[4] == gather.channels;
  if (!is_planar(gather) && !pixels_whole)
    return "in the input neither the pixels of a row are contiguous, nor the channels of all "
           "pixels";
  return {};
}

// A tile of `shape` with bands of rows x columns pixels. The pitches of its lines are not set.
FewInputChannelsTile make_tile(const FragmentShape& shape, const Gather& gather, std::int64_t rows,
                               std::int64_t columns, std::int64_t alignment, bool split) {
  const Gather::Phase& phase = gather.phases.front();
  FewInputChannelsTile tile;
  tile.shape = shape;
  tile.split = split;
  tile.rows = rows, tile.columns = columns;
  tile.bands = ceil_div(phase.pixels[1], rows) * ceil_div(phase.pixels[2], columns);
  const bool planar = is_planar(gather);
  SourceLines& lines = tile.lines;
  lines.element = static_cast<std::int64_t>(size_of(gather.type));
  lines.planes = planar ? gather.channels : 1;
  lines.pixel_elements = planar ? 1 : gather.channels;
  lines.rows = (rows - 1) * gather.stride[1] + (phase.taps[1] - 1) * std::abs(gather.step[1]) + 1;
  tile.run_words = ceil_div(phase.taps[2] * lines.pixel_elements, lines.word_elements());
  tile.runs = lines.planes * phase.taps[1];
  const std::int64_t pixel_step = gather.stride[2] * lines.pixel_elements;
  BandOfLines band;
  band.elements = (columns - 1) * pixel_step + tile.run_words * lines.word_elements();
  band.step = columns == phase.pixels[2] ? 0 : columns * pixel_step;
  band.odd = pixel_step % 2 != 0;
  lay_lines(lines, band, gather, alignment);
  return tile;
}

bool fits(FewInputChannelsTile tile, const DeviceDescription& device) {
  for (const std::int64_t factor : {tile.runs, tile.run_words, tile.runs * tile.run_words})
    if (factor > device.shared_memory_per_block) return false;
  const std::int64_t threads = tile.shape.threads();
  if (!reserve_pitches(tile.lines, device) ||
      !fits_shared_memory(tile.shared_memory(), tile.shape.min_blocks, device))
    return false;
  // Words of the next band that a thread copies during one fragment.
  const std::int64_t batch = lines_batch(tile.lines, threads, tile.fragments());
  return batch_bearable(batch, waiting_registers(tile.lines, batch));
}

// Contiguous rows of a thread's results; wgmma's accumulators come in pairs of rows.
int run_m_of(const Gather& gather, const FragmentShape& shape) {
  const int run = rows_side_by_side(gather, shape.thread_m);
  return shape.columns_left ? std::max(run, 2) : run;
}

bool goes_out_whole(const FewInputChannelsTile& tile, const ConvolutionProblem& problem,
                    const Gather& gather) {
  return stores_vectors(problem, gather, tile.columns, run_m_of(gather, tile.shape), run_n);
}

// The shape with the bands of lowest estimated time; none if no band fits into shared memory.
std::optional<FewInputChannelsTile> lay_tile(const FragmentShape& shape,
                                             const ConvolutionProblem& problem,
                                             const Gather& gather,
                                             const DeviceDescription& device) {
  const Spatial& pixels = gather.phases.front().pixels;
  constexpr std::int64_t narrowest = 8;
  // Larger sizes fit into no shared memory, and their products would overflow 64 bits.
  constexpr std::int64_t most = 1 << 16;
  if (gather.channels > most || gather.stride[2] > most) return std::nullopt;
  std::optional<FewInputChannelsTile> best;
  double best_clocks = 0;
  for (std::int64_t columns = std::min<std::int64_t>(pixels[2], shape.n);
       columns >= std::min(narrowest, pixels[2]); --columns) {
    const std::int64_t rows = std::min<std::int64_t>(pixels[1], shape.n / columns);
    FewInputChannelsTile tile =
        make_tile(shape, gather, rows, columns, problem.alignment, is_split(problem));
    // Clocks of an image: products, copies and stores of its bands. Predicted, not measured, as are
    // the clocks of 32 results that leave as whole lines, or one by one.
    constexpr double line_store_clocks = 5.3, single_store_clocks = 53;
    const double store_clocks =
        goes_out_whole(tile, problem, gather) ? line_store_clocks : single_store_clocks;
    const double fragment = fragment_clocks(shape, shape.threads(), product_clocks);
    const double products = static_cast<double>(tile.fragments()) * fragment,
                 stores = shape.m * shape.n / warp * store_clocks;
    const auto bands = static_cast<double>(tile.bands);
    // A band whose estimate is too large even without its copies is not examined further.
    if (best && bands * (products + stores) >= best_clocks) continue;
    if (!fits(tile, device)) continue;
    const double clocks =
        bands * (products + static_cast<double>(tile.lines.chunks()) * chunk_copy_clocks + stores);
    if (!best || clocks < best_clocks) best = tile, best_clocks = clocks;
  }
  if (best) set_narrowest_pitches(best->lines);
  return best;
}

// Sets the pitches of lines so that the 8 pixels x 4 words that a warp reads at once conflict in as
// few banks as possible. fits() leaves room for these pitches.
void spread_over_banks(FewInputChannelsTile& tile, const Gather& gather) {
  const std::int64_t pixel_step = gather.stride[2] * tile.lines.pixel_elements;
  constexpr std::int64_t most_words = 64;
  const std::int64_t words = std::min(tile.runs * tile.run_words, most_words);
  spread_over_banks(tile.lines, words / 4, [&](const SourceLines& lines, std::int64_t read) {
    std::array<std::int64_t, 32> lanes{};
    for (std::int64_t i = 0; i < 32; ++i) {
      const std::int64_t word = 4 * read + i % 4;
      lanes[static_cast<std::size_t>(i)] =
          lines.place(i / 4 * pixel_step) +
          word / tile.run_words * std::abs(gather.step[1]) * lines.row + word % tile.run_words;
    }
    return bank_accesses(lanes);
  });
}

// Whether offsets within an image and within the filter fit into 32 bits, including those that
// threads compute beyond the last row or pixel.
bool narrow(const Gather& gather, const FewInputChannelsTile& tile, const Dims& z_strides) {
  const Spatial& pixels = gather.phases.front().pixels;
  const Dims& s = gather.source_strides;
  const std::int64_t rows = gather.rows + tile.shape.m;
  const auto output = [&](const Dims& strides) {
    return image_span(strides, rows, pixels) + tile.rows * strides[3] + tile.columns * strides[4];
  };
  const std::int64_t source =
      image_span(s, gather.channels, gather.source) +
      2 * (tile.lines.rows * s[3] + tile.lines.words * tile.lines.word_elements());
  const std::int64_t w = rows * gather.w_row + gather.channels * gather.w_channel +
                         gather.w_tap[1] * gather.largest_taps()[1] +
                         gather.w_tap[2] * gather.largest_taps()[2];
  return std::max({source, w, output(gather.out_strides), output(z_strides)}) <= limit32;
}

std::vector<FewInputChannelsTile> lay(std::span<const FragmentShape> shapes, const Seen& seen) {
  std::vector<FewInputChannelsTile> out;
  for (FragmentShape shape : shapes) {
    auto tile = lay_tile(shape, seen.problem, seen.gather, seen.device);
    if (!tile && shape.min_blocks > 1) {  // one block of a multiprocessor may fit where two do not
      shape.min_blocks = 1;
      tile = lay_tile(shape, seen.problem, seen.gather, seen.device);
    }
    if (tile && narrow(seen.gather, *tile, seen.gather.z_strides)) out.push_back(*tile);
  }
  return out;
}

Refusal why_no_tile(const Seen& seen) {
  return cat("filters of ", seen.gather.channels * seen.gather.most_taps(),
             " elements, which do not fit into shared memory, or offsets into 32 bits");
}

Refusal tile_refusal(const FewInputChannelsTile& tile, const Seen& seen, const Sharing& /*one*/) {
  if (seen.problem.batch * tile.bands > limit32)
    return cat("more than ", limit32, " bands of pixels");
  return {};
}

// Blocks are persistent and share the bands of all images evenly.
std::int64_t bands_of_block(std::int64_t bands, const FewInputChannelsTile& tile,
                            const Seen& seen) {
  const std::int64_t places = std::int64_t{seen.device.multiprocessors} * tile.shape.min_blocks;
  const std::int64_t at_once = std::max<std::int64_t>(places / tile.row_tiles(seen.gather), 1);
  return std::max<std::int64_t>(ceil_div(bands, at_once), 1);
}

TileCounts count(const FewInputChannelsTile& tile, const Seen& seen) {
  const std::int64_t bands = seen.problem.batch * tile.bands;
  const std::int64_t row_tiles = tile.row_tiles(seen.gather);
  return {.of_pixels = bands,
          .all = bands * row_tiles,
          .blocks = ceil_div(bands, bands_of_block(bands, tile, seen)) * row_tiles};
}

// Wavefronts in which a warp reads 4 contiguous words of 8 pixels. Pixels whose distance is near a
// multiple of 32 banks conflict most.
std::int64_t accesses_of_a_read(const FewInputChannelsTile& tile, const Gather& gather) {
  const std::int64_t pixel_bytes =
      gather.stride[2] * tile.lines.pixel_elements * tile.lines.element;
  std::array<std::int64_t, 32> lanes{};
  for (std::int64_t i = 0; i < 32; ++i)
    lanes[static_cast<std::size_t>(i)] = i / 4 * pixel_bytes / word_bytes + i % 4;
  return bank_accesses(lanes);
}

FragmentWork work_of_tile(const FewInputChannelsTile& tile, const Seen& seen,
                          const TileCounts& tiles) {
  const FragmentShape& shape = tile.shape;
  FragmentWork work;
  work.type = seen.problem.type();
  work.split = tile.split;
  work.shape = shape;
  work.shared_memory = static_cast<double>(tile.shared_memory());
  work.tiles = tiles.blocks;
  work.results = static_cast<double>(operands_of(seen.problem).back().count());
  const auto bands = static_cast<double>(bands_of_block(tiles.of_pixels, tile, seen));
  work.fragments = bands * static_cast<double>(tile.fragments());
  work.scalar_copies = true;
  work.right_stays = true;  // wgmma reads operand B, the filters, from shared memory
  const double lines = seen.gather.out_strides[1] == 1 ? shape.thread_n : shape.thread_m;
  work.moves = bands * (lines - 1) * shape.thread_m * shape.thread_n;
  work.copies = bands * static_cast<double>(tile.lines.chunks());
  work.copy_bytes = static_cast<double>(tile.lines.chunk * 4);
  work.row_copies = static_cast<double>(shape.m * tile.fragments() * fragment_words);
  work.row_copy_bytes = 4;
  work.scattered = !goes_out_whole(tile, seen.problem, seen.gather);
  work.column_accesses = static_cast<double>(accesses_of_a_read(tile, seen.gather));
  work.bytes = work_of(seen.problem, false).bytes;
  return work;
}

std::vector<Offer> offers(const FewInputChannelsTile& tile, const Seen& seen,
                          const TileCounts& tiles) {
  const FragmentWork work = work_of_tile(tile, seen, tiles);
  return {{{},
           tile.shape.columns_left ? warpgroup_fragment_seconds(work, 1, seen.device)
                                   : fragment_seconds(work, 1, seen.device)}};
}

int threads(const FewInputChannelsTile& tile) { return tile.shape.threads(); }

std::string describe_kernel(const FewInputChannelsTile& tile) {
  return cat(describe(tile), tile.split ? ", 3 products" : "");
}

void write(KernelSpec& spec, const FewInputChannelsTile& laid, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather& gather = seen.gather;
  FewInputChannelsTile tile = laid;
  spread_over_banks(tile, gather);
  const FragmentShape& shape = tile.shape;
  spec.shared_memory = static_cast<std::uint32_t>(tile.shared_memory());
  spec.alignment = static_cast<std::size_t>(tile.lines.access);
  spec.constants = gather_constants(problem, gather);
  const ConstantWriter add(spec.constants);
  add("offset_t", TypeName{"int"});
  add("out_offset_t", TypeName{"int"});
  const int run_m = run_m_of(gather, shape);
  add_fragment_constants(spec.constants, shape, problem, run_m);
  add_line_store_constants(spec.constants, problem, gather, tile.columns, run_m, run_n);
  add("BAND_ROWS", tile.rows, "rows of pixels in a tile");
  add("BAND_COLUMNS", tile.columns);
  add("PIXEL_ELEMENTS", tile.lines.pixel_elements, "contiguous elements of a pixel of the source");
  add_lines_constants(spec.constants, tile.lines);
  // The tensor cores round sums toward zero, so 3xTF32 sums are promoted to stay as exact as f32's
  // own sums. Sums of other types are never long enough here for this to matter
  // (src/engines/conv/halo/mma_engine.cpp).
  const std::int64_t reduction = gather.channels * gather.most_taps();
  add_split_constants(spec.constants, tile.split, reduction);
  add_checked_constant(spec.constants, problem, true, false);
  add("PROMOTE", tile.split ? promotion_run(reduction) / fragment_words : std::int64_t{0},
      "fragments of the reduction between promotions");
  add("PROMOTE_LOCAL", false);
  add.divisor("DIV_TILES_M", ceil_div(gather.rows, shape.m));
  add.divisor("DIV_GROUPS", gather.groups);
  if (shape.columns_left) add_warpgroup_instruction(spec.constants, shape.m);
}

}  // namespace

std::int64_t FewInputChannelsTile::fragments() const {
  return ceil_div(runs * run_words, fragment_words);
}

std::int64_t FewInputChannelsTile::row_tiles(const Gather& gather) const {
  return gather.groups * ceil_div(gather.rows, shape.m);
}

std::int64_t FewInputChannelsTile::shared_memory() const {
  const std::int64_t reduction = fragments() * fragment_words * word_bytes;
  const std::int64_t filters =
      shape.columns_left ? reduction * (shape.m + 1) * (split ? 2 : 1) : shape.m * (reduction + 16);
  return filters + 2 * lines.bytes() + 2 * reduction;
}

std::string describe(const FewInputChannelsTile& tile) {
  return cat(describe(tile.shape), ", bands of ", tile.rows, "x", tile.columns);
}

const Recipe<FewInputChannelsTile> few_input_channels_mma = {
    .name = "few_input_channels_mma",
    .file = "conv/few_input_channels/few_input_channels_mma.cu",
    .refusal = refusal,
    .lay =
        [](const Seen& seen) {
          return is_split(seen.problem) ? lay(split_shapes, seen) : lay(whole_shapes, seen);
        },
    .tile_refusal = tile_refusal,
    .why_no_tile = why_no_tile,
    .count = count,
    .offers = offers,
    .describe = describe_kernel,
    .threads = threads,
    .write = write,
};

const Recipe<FewInputChannelsTile> few_input_channels_wgmma_swap = {
    .name = "few_input_channels_wgmma_swap",
    .file = "conv/few_input_channels/few_input_channels_wgmma_swap.cu",
    .refusal =
        [](const Seen& seen) {
          auto refused = warpgroup_refusal(seen.device);
          return refused ? refused : refusal(seen);
        },
    .lay =
        [](const Seen& seen) {
          return is_split(seen.problem) ? lay(split_warpgroup_shapes, seen)
                                        : lay(whole_warpgroup_shapes, seen);
        },
    .tile_refusal = tile_refusal,
    .why_no_tile = why_no_tile,
    .count = count,
    .offers = offers,
    .describe = describe_kernel,
    .threads = threads,
    .write = write,
};

}  // namespace kiln
