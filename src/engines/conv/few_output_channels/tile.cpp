#include "engines/conv/few_output_channels/tile.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/tile/loaders.hpp"
#include "engines/conv/tile/vector_copies.hpp"
#include "engines/cost/common.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::int64_t vector_bytes = copied_bytes;

// Lines of a tile: all of them if their pairs fit; else an equal share, made of whole phases if
// possible. Only strided gradients have so many lines.
std::int64_t lines_of_tile(const UnitedGather& united, bool by_warpgroups) {
  const std::int64_t lines = united.lines(), rows = united.gather.rows;
  const std::int64_t pairs =
      by_warpgroups && size_of(united.gather.type) == 2 ? most_warpgroup_pairs : most_pairs;
  const std::int64_t most =
      std::max<std::int64_t>(pairs / std::max<std::int64_t>(united.taps_in_row, 1), 1);
  if (lines <= most) return lines;
  const std::int64_t unit = rows <= most ? rows : 1;
  const std::int64_t groups = ceil_div(lines / unit, most / unit);
  return ceil_div(lines / unit, groups) * unit;
}

// Shapes with as few columns as hold the pairs, and various rows: fewer rows make more blocks.
// 3xTF32 sums are promoted and take twice the registers, as f64 sums do: a thread holds 64 of
// these, or 48 in a block of twelve warps. Three warpgroups hide each other's waits better than
// two.
std::vector<FragmentShape> shapes(const ConvolutionProblem& problem, bool by_warpgroups,
                                  std::int64_t pairs) {
  const int n = static_cast<int>(std::max<std::int64_t>(round_up(pairs, 8), 16)), thread_n = n / 4;
  const bool split = is_split(problem);
  std::vector<FragmentShape> shapes;
  if (problem.type() == KILN_DATA_DOUBLE) {
    if (n <= 32) shapes.push_back({.m = 512, .n = n, .thread_m = 8, .thread_n = thread_n});
    if (n <= 40) shapes.push_back({.m = 384, .n = n, .thread_m = 6, .thread_n = thread_n});
    if (n <= 48) shapes.push_back({.m = 384, .n = n, .thread_m = 4, .thread_n = thread_n});
    shapes.push_back({.m = 256, .n = n, .thread_m = 4, .thread_n = thread_n});
    shapes.push_back({.m = 128, .n = n, .thread_m = 4, .thread_n = thread_n});
    return shapes;
  }
  const bool many = n > most_pairs;
  if (!many && (!split || n <= 24))
    shapes.push_back({.m = 512, .n = n, .thread_m = 8, .thread_n = thread_n});
  if (by_warpgroups && !many)
    shapes.push_back({.m = 384, .n = n, .thread_m = 4, .thread_n = thread_n});
  // Two resident blocks hide each other's waits for chunks and for stores.
  const bool two = !by_warpgroups && size_of(problem.type()) == 2 && n > 16 && n <= 48;
  shapes.push_back(
      {.m = 256, .n = n, .thread_m = 4, .thread_n = thread_n, .min_blocks = two ? 2 : 1});
  shapes.push_back({.m = 128, .n = n, .thread_m = 4, .thread_n = thread_n});
  return shapes;
}

// Rows of taps that lie inside the source for some pixel of a tile, averaged over the tiles.
double mean_live_taps(const FewOutputChannelsTile& tile, const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  constexpr std::int64_t most_tiles = 1024;  // of more tiles, those at the edges hardly count
  if (tile.tiles > most_tiles) return static_cast<double>(tile.taps);
  std::int64_t live = 0;
  for (std::int64_t i = 0; i < tile.tiles; ++i) {
    const std::int64_t first = i * tile.rows;
    live += gather.live_taps(1, first, std::min(first + tile.rows, phase.pixels[1]) - 1);
  }
  return static_cast<double>(live) / static_cast<double>(tile.tiles);
}

// Lines whose sums pass through shared memory together: the lines of as many whole phases as fit in
// the halo's room. f64 sums are large, so any number of lines is taken for them.
std::int64_t exchanged_lines(const FewOutputChannelsTile& tile, const UnitedGather& united) {
  const std::int64_t rows = united.gather.rows;
  const std::int64_t room =
      std::clamp<std::int64_t>(tile.halo_bytes() / tile.exchange_bytes(1), 1, tile.lines);
  const std::int64_t whole = room / rows * rows;
  return whole > 0 ? whole : tile.element < 8 ? std::min(rows, tile.lines) : room;
}

void set_rows(FewOutputChannelsTile& tile, const UnitedGather& united, std::int64_t rows) {
  const Gather& gather = united.gather;
  tile.rows = rows;
  tile.tiles = ceil_div(gather.phases.front().pixels[1], rows);
  tile.halo_rows = (rows - 1) * gather.stride[1] + (tile.taps - 1) * std::abs(gather.step[1]) + 1;
  tile.exchange_lines = exchanged_lines(tile, united);
}

bool fits(const FewOutputChannelsTile& tile, const DeviceDescription& device) {
  constexpr std::int64_t most_rows = 1 << 12;
  if (tile.halo_rows > most_rows ||
      !fits_shared_memory(tile.shared_memory(), tile.shape.min_blocks, device))
    return false;
  // The copies that a thread has in flight at a time (loader.cuh).
  const std::int64_t threads = tile.shape.threads();
  const std::int64_t fragments = tile.taps * tile.chunk_steps;
  constexpr std::int64_t least_slots = 2;  // fragments of each loader, where the two take turns
  if (tile.load_fragments > 1 && fragments < least_slots * tile.load_fragments) return false;
  const std::int64_t slots =
      std::max<std::int64_t>(fragments / tile.load_fragments - (3 - tile.load_fragments), 1);
  constexpr std::int64_t units = 4;  // words that neighboring lanes copy at once
  const std::int64_t unit_bytes = units * std::max<std::int64_t>(tile.element, 4);
  const bool vectors = tile.copy_bytes == vector_bytes;
  const std::int64_t pixels_a_turn = threads / (vectors ? 2 * tile.chunk_steps : units);
  // Words that a thread copies of a pixel or of a row of the filter.
  const std::int64_t words = 32 * tile.chunk_steps / unit_bytes;
  const std::int64_t halo = ceil_div(ceil_div(tile.halo_pixels(), pixels_a_turn), slots);
  const std::int64_t filter =
      ceil_div(ceil_div(tile.taps * tile.pairs, threads / units), slots) * words;
  const std::int64_t halo_copies = vectors ? halo : halo * words;
  const std::int64_t waiting =
      tile.element == 2 ? 2 * (filter + (vectors ? 0 : halo_copies)) : std::int64_t{0};
  return batch_bearable(halo_copies, waiting) && batch_bearable(filter, waiting);
}

// Clocks of a multiprocessor for the tiles of an image (cost_model.hpp).
double clocks_of(const FewOutputChannelsTile& tile, const Gather& gather) {
  const FragmentShape& shape = tile.shape;
  const double fragment = fragment_clocks(shape, shape.threads(), product_clocks_of(tile.element));
  const FewOutputChannelsTile::Copies copies = tile.copies();
  const double copy_clocks = row_copy_clocks * static_cast<double>(copies.halo + copies.filter);
  const auto chunks = static_cast<double>(ceil_div(gather.channels, tile.chunk_channels()));
  constexpr double chunk_clocks = 400;  // the barrier at the end of a chunk; predicted
  return static_cast<double>(tile.tiles * tile.strips * tile.line_groups) * chunks *
         (tile.live_taps * static_cast<double>(tile.chunk_steps) * fragment + copy_clocks +
          chunk_clocks);
}

// The shape with the strips and rows of lowest estimate; none if none fits into shared memory.
std::optional<FewOutputChannelsTile> lay_tile(const FragmentShape& shape, bool planes,
                                              const ConvolutionProblem& problem,
                                              const UnitedGather& united,
                                              const DeviceDescription& device) {
  const Gather& gather = united.gather;
  const Gather::Phase& phase = united.whole();
  FewOutputChannelsTile tile;
  tile.shape = shape;
  tile.planes = planes;
  tile.split = is_split(problem);
  tile.element = static_cast<std::int64_t>(size_of(problem.type()));
  tile.copy_bytes = vectors_of_channels(problem, gather) ? vector_bytes : tile.element;
  tile.taps = phase.taps[1];
  tile.planes_of_taps = phase.taps[0];
  tile.taps_in_row = united.taps_in_row;
  tile.lines = lines_of_tile(united, planes);
  tile.line_groups = ceil_div(united.lines(), tile.lines);
  tile.pairs = tile.lines * tile.taps_in_row;
  const std::int64_t extent = (phase.taps[2] - 1) * std::abs(gather.step[2]);
  std::optional<FewOutputChannelsTile> best;
  double best_clocks = 0;
  const std::int64_t widest = std::min<std::int64_t>(round_up(gather.source[2], 8), shape.m);
  for (tile.columns = widest; tile.columns > 0; tile.columns -= 8) {
    // Neighboring strips overlap by `extent` columns, the reach of the taps.
    const bool whole = tile.columns >= gather.source[2];
    tile.strip_step = whole ? tile.columns : tile.columns - extent;
    if (tile.strip_step <= 0) break;
    tile.strips = whole ? 1 : ceil_div(gather.source[2] - extent, tile.strip_step);
    for (tile.chunk_steps = 1; tile.chunk_steps <= 2; ++tile.chunk_steps) {
      std::int64_t rows = std::min(shape.m / tile.columns, phase.pixels[1]);
      for (; rows > 0; --rows) {
        set_rows(tile, united, rows);
        tile.load_fragments = 2;
        if (fits(tile, device)) break;
        tile.load_fragments = 1;
        if (fits(tile, device)) break;
      }
      if (rows == 0) continue;
      set_rows(tile, united, ceil_div(phase.pixels[1], tile.tiles));
      tile.live_taps = mean_live_taps(tile, gather);
      const double clocks = clocks_of(tile, gather);
      if (!best || clocks < best_clocks) best = tile, best_clocks = clocks;
    }
  }
  if (best)
    best->image_tiles =
        best->tiles * best->strips * best->line_groups * gather.groups * phase.pixels[0];
  return best;
}

// Whether offsets within an image and within the filter fit into 32 bits, including those that
// threads compute beyond the last channel or pixel and never read from.
bool narrow(const UnitedGather& united, const FewOutputChannelsTile& tile) {
  const Gather& gather = united.gather;
  const Gather::Phase& phase = united.whole();
  const Dims& s = gather.source_strides;
  const std::int64_t channels = gather.channels + 2 * tile.chunk_channels();
  const std::int64_t source_rows = std::abs(phase.origin[1]) +
                                   phase.taps[1] * std::abs(gather.step[1]) +
                                   phase.pixels[1] * gather.stride[1] + 2 * tile.halo_rows;
  const std::int64_t source_columns = gather.source[2] + tile.columns;
  // Sizes are at most 2^24, so each product with a stride is checked before it is added.
  std::int64_t source = 0;
  for (const auto& [count, stride] :
       {std::pair(channels, s[1]), std::pair(source_rows, s[3]), std::pair(source_columns, s[4])}) {
    if (stride > limit32 || count > limit32 || count * stride > limit32) return false;
    source += count * stride;
  }
  std::int64_t w = gather.rows * gather.w_row + channels * gather.w_channel, out = 0, z = 0;
  for (int i = 1; i < 3; ++i) w += gather.w_tap[i] * phase.taps[i];
  for (const Gather::Phase& each : gather.phases) {
    w = std::max(w, w + each.w_first);
    out = std::max(out, each.out_first), z = std::max(z, each.z_first);
  }
  const std::int64_t rows = gather.rows + 1;
  return std::max({source, w, out + image_span(gather.out_strides, rows, phase.pixels),
                   z + image_span(gather.z_strides, rows, phase.pixels)}) <= limit32;
}

}  // namespace

std::int64_t few_output_channels_pairs(const UnitedGather& united) {
  return united.lines() * united.taps_in_row;
}

bool vectors_of_channels(const ConvolutionProblem& problem, const Gather& gather) {
  const std::int64_t vector = vector_bytes / static_cast<std::int64_t>(size_of(problem.type()));
  const auto whole = [&](std::int64_t stride) { return stride % vector == 0; };
  const Dims& s = gather.source_strides;
  return problem.alignment >= vector_bytes && s[1] == 1 && whole(gather.channels) && whole(s[0]) &&
         whole(s[3]) && whole(s[4]);
}

std::int64_t FewOutputChannelsTile::filter_bytes() const {
  const std::int64_t pairs_read = element < 8 ? 16 : 8;
  return taps * (planes ? 32 * chunk_steps * (shape.n + 1)
                        : round_up(shape.n, pairs_read) * fragments_pitch(chunk_steps, element));
}

std::int64_t FewOutputChannelsTile::halo_bytes() const {
  return halo_pixels() * fragments_pitch(chunk_steps, element);
}

std::int64_t FewOutputChannelsTile::exchange_bytes(std::int64_t of_lines) const {
  return of_lines * taps_in_row * (shape.m * std::max<std::int64_t>(element, 4) + 16);
}

std::int64_t FewOutputChannelsTile::stage_bytes() const {
  return std::max(halo_bytes(), exchange_bytes(exchange_lines)) + filter_bytes();
}

std::int64_t FewOutputChannelsTile::shared_memory() const {
  constexpr std::int64_t table_entry = 8;
  const std::int64_t lo_parts = planes && split ? filter_bytes() : 0;
  return 2 * stage_bytes() + lo_parts + line_groups * taps * pairs * table_entry;
}

FewOutputChannelsTile::Copies FewOutputChannelsTile::copies() const {
  const std::int64_t bytes = 32 * chunk_steps;
  return {halo_pixels() * bytes / copy_bytes, taps * pairs * bytes / element};
}

std::vector<FewOutputChannelsTile> few_output_channels_tiles(const ConvolutionProblem& problem,
                                                             const UnitedGather& united,
                                                             bool by_warpgroups,
                                                             const DeviceDescription& device) {
  std::vector<FewOutputChannelsTile> out;
  const std::int64_t pairs = lines_of_tile(united, by_warpgroups) * united.taps_in_row;
  for (const FragmentShape& shape : shapes(problem, by_warpgroups, pairs)) {
    const auto tile = lay_tile(shape, by_warpgroups, problem, united, device);
    if (tile && narrow(united, *tile)) out.push_back(*tile);
  }
  return out;
}

std::string describe(const FewOutputChannelsTile& tile) {
  return cat(describe(tile.shape), ", places ", tile.rows, "x", tile.columns, " of ",
             tile.chunk_channels(), " channels");
}

}  // namespace kiln
