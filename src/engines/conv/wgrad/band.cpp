#include "engines/conv/wgrad/band.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/banks.hpp"
#include "engines/conv/tile/loaders.hpp"
#include "engines/conv/tile/vector_copies.hpp"
#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::int64_t fragment_bytes = 32;

// Pixels from one row of a band to the next, rounded up to whole words.
std::int64_t row_pixels(const BandTile& tile) {
  return round_up(tile.columns, tile.lines.word_elements());
}

// Elements from a pixel's leftmost tap to its rightmost one, within one phase of the line.
std::int64_t widest_shift(const Gather& gather) {
  return (gather.phases.front().taps[2] - 1) * std::abs(gather.step[2]) / gather.stride[2];
}

// The most channels that n consecutive columns of dw belong to.
std::int64_t channels_of(std::int64_t n, const Gather& gather) {
  const std::int64_t taps = gather.phases.front().tap_count();
  return std::min(gather.channels, n % taps == 0 ? n / taps : (n - 2) / taps + 2);
}

// Whether every band of dy can be copied in vectors of `count` contiguous, aligned elements.
bool copies_whole(const BandTile& tile, const Gather& gather, std::int64_t count) {
  const Spatial& pixels = gather.phases.front().pixels;
  const Dims& s = gather.out_strides;
  const auto whole = [&](std::int64_t n) { return n % count == 0; };
  if (s[4] != 1 || row_pixels(tile) != tile.columns) return false;
  if (!whole(s[0]) || !whole(s[1]) || !whole(s[1] * gather.rows)) return false;
  if (whole(tile.columns) && whole(s[3])) return true;
  const bool rows_follow = tile.columns == pixels[2] && s[3] == pixels[2];
  return rows_follow && whole(tile.rows * tile.columns) &&
         whole(pixels[1] % tile.rows * tile.columns);
}

// A tile with a band of rows x columns pixels. The pitches of its lines are not set.
BandTile make_band(const FragmentShape& shape, const Gather& gather, bool split, std::int64_t rows,
                   std::int64_t columns, std::int64_t alignment) {
  const Gather::Phase& phase = gather.phases.front();
  BandTile tile;
  tile.shape = shape;
  tile.split = split;
  const int element = static_cast<int>(size_of(gather.type));
  tile.lines.element = element;
  tile.rows = rows, tile.columns = columns;
  tile.bands = ceil_div(phase.pixels[1], rows) * (phase.pixels[2] / columns);
  tile.filters_inner = phase.pixels[2] > 1 && gather.out_strides[4] != 1;
  // wgmma transposes operands in shared memory only for 16-bit types.
  const bool copied_whole = tile.filters_inner && !(shape.columns_left && element == 4);
  tile.copy_bytes = copied_whole ? static_cast<int>(copied_bytes) : element;
  for (int bytes = 16; bytes > element; bytes /= 2)
    if (!tile.filters_inner && bytes >= tile.lines.word_bytes() && bytes <= alignment &&
        copies_whole(tile, gather, bytes / element)) {
      tile.copy_bytes = bytes;
      break;
    }
  SourceLines& lines = tile.lines;
  lines.planes = channels_of(shape.n, gather);
  lines.rows = (rows - 1) * gather.stride[1] + (phase.taps[1] - 1) * std::abs(gather.step[1]) + 1;
  lines.phases = gather.stride[2];
  BandOfLines band;
  band.elements = row_pixels(tile) + widest_shift(gather);
  band.step = columns == phase.pixels[2] ? 0 : columns * gather.stride[2];
  // Tap 0 begins at an even element; another one may begin at an odd one.
  for (std::int64_t s = 0; s < phase.taps[2]; ++s)
    band.odd = band.odd || s * std::abs(gather.step[2]) / gather.stride[2] % 2 != 0;
  lay_lines(lines, band, gather, alignment);
  return tile;
}

bool fits(BandTile tile, const DeviceDescription& device) {
  return reserve_pitches(tile.lines, device) &&
         fits_shared_memory(tile.shared_memory(), tile.shape.min_blocks, device);
}

// Rows of dy in a stage (pixels in NHWC, else filters), and the copies that a row takes.
std::int64_t gradient_rows(const BandTile& tile) {
  return tile.filters_inner ? tile.stage_pixels() : tile.shape.m;
}
std::int64_t positions(const BandTile& tile) {
  return tile.gradient_copies() / gradient_rows(tile);
}

// Whether a thread has registers for its copies in flight, spread over the fragments of a stage.
bool copies_spread(const BandTile& tile) {
  const std::int64_t threads = tile.shape.threads(), steps = tile.turns() - 1;
  const std::int64_t of_x = lines_batch(tile.lines, threads, steps);
  const std::int64_t of_dy = row_batch(gradient_rows(tile), positions(tile), threads, steps);
  return batch_bearable(
      of_x + of_dy, waiting_registers(tile.lines, of_x) + (tile.copy_bytes == 2 ? of_dy * 2 : 0));
}

// Clocks of a multiprocessor for an image: products, copies, and the end of each stage. Predicted,
// not measured.
double clocks_of(const BandTile& tile, bool split) {
  constexpr double stage_clocks = 300;  // the barriers of a stage
  const FragmentShape& shape = tile.shape;
  const double fragment = fragment_clocks(shape, shape.slice_threads(),
                                          product_clocks_of(tile.lines.element) * (split ? 3 : 1));
  const double copies = static_cast<double>(tile.lines.chunks()) * chunk_copy_clocks +
                        static_cast<double>(tile.gradient_copies()) *
                            (tile.copy_bytes == 2 ? row_pair_clocks : row_copy_clocks);
  return static_cast<double>(tile.bands) *
         (static_cast<double>(tile.fragments()) * fragment + copies + stage_clocks);
}

// The word of x that a column of dw reads at a band's first pixel.
std::int64_t place_of(const SourceLines& lines, const Gather& gather, std::int64_t column) {
  const Spatial& taps = gather.phases.front().taps;
  const std::int64_t c = column / (taps[1] * taps[2]), r = column / taps[2] % taps[1];
  const std::int64_t shift = column % taps[2] * std::abs(gather.step[2]);
  const std::int64_t element = shift / gather.stride[2];
  return c * lines.plane + r * std::abs(gather.step[1]) * lines.row +
         shift % gather.stride[2] * lines.line + lines.place(element);
}

// The columns of dw whose pixels a warp reads at once, 4 contiguous words each. f64 words take two
// banks, so there half a warp does.
std::int64_t columns_at_once(const SourceLines& lines) { return 32 / lines.word_bytes(); }

// Wavefronts of that read.
std::int64_t accesses(const SourceLines& lines, std::int64_t first, const Gather& gather) {
  std::array<std::int64_t, 32> words{};
  const std::int64_t banks = lines.word_bytes() / 4;
  for (std::int64_t column = 0; column < columns_at_once(lines); ++column) {
    const std::int64_t place = place_of(lines, gather, first + column) * banks;
    for (std::int64_t i = 0; i < 4 * banks; ++i)
      words[static_cast<std::size_t>(column * 4 * banks + i)] = place + i;
  }
  return bank_accesses(words);
}

}  // namespace

std::int64_t BandTile::turns() const {
  constexpr std::int64_t least = 2;
  return std::max(
      least, ceil_div(rows * row_pixels(*this) * lines.element, shape.slices * fragment_bytes));
}
std::int64_t BandTile::fragments() const { return turns() * shape.slices; }
std::int64_t BandTile::stage_pixels() const { return fragments() * fragment_bytes / lines.element; }
std::int64_t BandTile::gradient_copies() const {
  return shape.m * stage_pixels() / (copy_bytes == 2 ? 2 : copy_bytes / lines.element);
}

std::int64_t BandTile::gradient_bytes() const {
  if (shape.columns_left && filters_inner && lines.element == 2)
    return shape.m / 8 * (stage_pixels() + 1) * 16;
  if (shape.columns_left) return stage_pixels() * lines.element * (shape.m + 1);
  if (filters_inner)
    return stage_pixels() * (shape.m * lines.element + transposed_pad(lines.element));
  return shape.m * fragments_pitch(fragments(), lines.element);
}

std::int64_t BandTile::shared_memory() const {
  const std::int64_t table = stage_pixels() / lines.word_elements() * 8;
  // Clusters exchange at least one row of each thread's sums at a time.
  const std::int64_t line = lines.word_bytes() * shape.threads() * shape.thread_n;
  const std::int64_t lo_parts = shape.columns_left && split ? gradient_bytes() : 0;
  return std::max(2 * (gradient_bytes() + lines.bytes()) + lo_parts + table, line);
}

Gather in_lines(const Gather& gather) {
  const std::int64_t channels = gather.channels;
  const Gather::Phase& phase = gather.phases.front();
  const bool single = phase.taps[2] == 1;
  const bool follow = gather.source_strides[1] == 1 && gather.source_strides[4] == channels &&
                      gather.w_channel == 1 &&
                      (single || (gather.step[2] == 1 && gather.w_tap[2] == channels));
  if (gather.source[2] == 1 || !follow || gather.groups > 1 || channels == 1 ||
      channels * gather.stride[2] > most_line_phases)
    return gather;
  Gather out = gather;
  out.channels = 1;
  out.source[2] *= channels;
  out.stride[2] *= channels;
  out.step[2] = 1;
  out.source_strides[4] = 1;
  out.w_tap[2] = 1;
  out.phases.front().taps[2] *= channels;
  out.phases.front().origin[2] *= channels;
  return out;
}

std::optional<BandTile> lay_band(const FragmentShape& shape, const Gather& gather, bool split,
                                 std::int64_t alignment, const DeviceDescription& device) {
  const Spatial& pixels = gather.phases.front().pixels;
  constexpr std::int64_t narrowest = 64;  // bytes of a strip's row: two sectors
  const auto element = static_cast<std::int64_t>(size_of(gather.type));
  // A fragment of f64 has half as many pixels as one of f32.
  const std::int64_t most_fragments = shape.columns_left ? 64 : element == 8 ? 48 : 24;
  std::optional<BandTile> best;
  double best_clocks = 0;
  for (std::int64_t strips = 1; strips == 1 || pixels[2] / strips * element >= narrowest;
       ++strips) {
    if (pixels[2] % strips != 0) continue;
    for (std::int64_t rows = 1; rows <= pixels[1]; ++rows) {
      BandTile tile = make_band(shape, gather, split, rows, pixels[2] / strips, alignment);
      if (tile.fragments() > most_fragments || !fits(tile, device)) break;
      // Each thread copies one position of every row.
      if (positions(tile) > shape.threads() || !copies_spread(tile)) continue;
      set_narrowest_pitches(tile.lines);
      const double clocks = clocks_of(tile, split);
      if (!best || clocks < best_clocks) best = tile, best_clocks = clocks;
    }
  }
  return best;
}

void spread_over_banks(BandTile& tile, const Gather& gather) {
  // The first ones of a tile stand for all.
  constexpr std::int64_t most_columns = 128;
  const std::int64_t columns = std::min({gather.channels * gather.phases.front().tap_count(),
                                         most_columns, static_cast<std::int64_t>(tile.shape.n)});
  const std::int64_t at_once = columns_at_once(tile.lines);
  spread_over_banks(tile.lines, columns / at_once, [&](const SourceLines& lines, std::int64_t i) {
    return accesses(lines, i * at_once, gather);
  });
}

std::string describe(const BandTile& tile) {
  return cat(describe(tile.shape), ", bands of ", tile.rows, "x", tile.columns,
             tile.split ? ", 3 products" : "");
}

}  // namespace kiln
