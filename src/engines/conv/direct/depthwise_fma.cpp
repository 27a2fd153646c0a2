#include "engines/conv/direct/depthwise_fma.hpp"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "codegen/constant_writer.hpp"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/recipe/tile_fields.hpp"
#include "engines/conv/tile/quad_rows.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_rows = 4, most_taps = 32;  // limits of unrolled loops and registers
constexpr std::int64_t most_row_bytes = 208;           // bytes of a source row that a thread holds
constexpr std::int64_t quad_bytes = 16;                // bytes of a read of shared memory
constexpr std::int64_t most_threads = 256, most_runs = 128, most_sums = 64;
// Threads of a block with several units. With 256, a layer whose units have 125 threads took 35 us
// instead of 26.
constexpr std::int64_t units_threads = 128;
constexpr std::int64_t enough_memory = 56 * 1024;  // bytes of a block with several units

// How many phases have pixels that alternate in rows of the output, which are contiguous.
std::int64_t merged_phases(const Gather& gather) {
  std::int64_t along = 1, down = 1;
  for (const Gather::Phase& phase : gather.phases)
    along = std::max(along, phase.position[2] + 1), down = std::max(down, phase.position[1] + 1);
  const bool whole = gather.out_strides[4] == along &&
                     static_cast<std::int64_t>(gather.phases.size()) == along * down &&
                     gather.z_strides == gather.out_strides;
  return whole ? along : 1;
}

// The gather, with the phases whose pixels alternate in a row one after the other.
Gather rows_gather(Gather gather) {
  if (merged_phases(gather) > 1)
    std::ranges::sort(gather.phases, {}, [](const Gather::Phase& phase) {
      return std::pair(phase.position[1], phase.position[2]);
    });
  return gather;
}

// The range of source positions of pixel 0's taps along height (1) or width (2), over all phases.
struct Reach {
  std::int64_t lowest = 0, places = 0;
};
Reach reach_of(const Gather& gather, std::size_t i) {
  std::int64_t lowest = 0, highest = 0;
  bool any = false;
  for (const Gather::Phase& phase : gather.phases) {
    if (phase.tap_count() == 0) continue;
    const std::int64_t last = phase.origin[i] + (phase.taps[i] - 1) * gather.step[i];
    const auto [low, high] = std::minmax(phase.origin[i], last);
    lowest = any ? std::min(lowest, low) : low, highest = any ? std::max(highest, high) : high;
    any = true;
  }
  return {lowest, highest - lowest + 1};
}

using Tile = DepthwiseFmaTile;

// The taps of all phases.
std::int64_t all_taps(const Gather& gather) {
  std::int64_t taps = 0;
  for (const Gather::Phase& phase : gather.phases) taps += phase.tap_count();
  return taps;
}

std::int64_t padded_rows(const Gather& gather) { return gather.rows == 3 ? 4 : gather.rows; }
std::int64_t compute_bytes(const Gather& gather) {
  return static_cast<std::int64_t>(size_of(compute_type(gather.type)));
}

// Elements of the widest copy that divides all rows, planes and images of the source.
std::int64_t copy_elements(const ConvolutionProblem& problem, const Gather& gather) {
  std::int64_t elements = problem.type() == KILN_DATA_DOUBLE ? 2 : 4;
  const auto fits = [&] {
    const auto bytes = elements * static_cast<std::int64_t>(size_of(problem.type()));
    return problem.alignment >= bytes && gather.source_strides[4] == 1 &&
           gather.source[2] % elements == 0 && gather.source_strides[0] % elements == 0 &&
           gather.source_strides[1] % elements == 0 && gather.source_strides[3] % elements == 0;
  };
  while (elements > 1 && !fits()) elements /= 2;
  return elements;
}

// Rows of a thread: two, where the filter is short enough to be unrolled and few rows are left
// over. Both use a row of the patch, and each weight is read once for both.
std::int64_t rows_of_thread(const Gather& gather) {
  constexpr std::int64_t most_unrolled = 64, least_rows = 12;
  const Spatial taps = gather.largest_taps(), pixels = gather.largest_pixels();
  const bool two = gather.phases.size() == 1 && gather.rows == 1 && gather.stride[1] == 1 &&
                   compute_bytes(gather) == 4 && taps[1] > 1 &&
                   taps[1] * taps[2] <= most_unrolled &&
                   (pixels[1] % 2 == 0 || pixels[1] > least_rows);
  return two ? 2 : 1;
}

// Lays a unit's patch out in shared memory.
void lay_patch(Tile& tile, const Gather& gather, std::int64_t filter) {
  constexpr std::int64_t enough_bytes = 32 * 1024;  // of as many threads as several units have
  const std::int64_t quad = quad_bytes / compute_bytes(gather), threads = tile.unit_threads();
  const QuadRows rows = {
      .runs = tile.row_runs,
      .threads = threads,
      .rows = round_up((tile.rows - 1) * gather.stride[1] + reach_of(gather, 1).places,
                       tile.thread_rows * gather.stride[1]),
      .quads = tile.patch_row_elements / quad,
      .lane_quads = tile.run_pixels * gather.stride[2] / quad};
  const QuadLayout layout = lay_quads(rows, enough_bytes / quad_bytes / tile.stages *
                                                std::min(threads, units_threads) / units_threads);
  tile.pitch_quads = layout.pitch, tile.plane_quads = layout.plane;
  tile.stage_elements = round_up(rows.lane_quads * layout.plane * quad + filter, quad);
}

// A block has up to 256 threads: as many as a row of the output has runs, times rows, times units
// if images are small.
Tile choose_tile(const Seen& seen) {
  const Gather& gather = seen.gather;
  const Spatial pixels = gather.largest_pixels();
  Tile tile;
  const std::int64_t all = ceil_div(pixels[2], tile.run_pixels);
  tile.tiles_along = ceil_div(all, most_runs);
  tile.row_runs = ceil_div(all, tile.tiles_along);
  tile.thread_rows = rows_of_thread(gather);
  const std::int64_t strips = ceil_div(pixels[1], tile.thread_rows);
  tile.tiles_down = ceil_div(strips, std::max<std::int64_t>(most_threads / tile.row_runs, 1));
  tile.rows = ceil_div(strips, tile.tiles_down) * tile.thread_rows;

  const Reach along = reach_of(gather, 2);
  tile.copy_elements = copy_elements(seen.problem, gather);
  tile.skipped_elements =
      (along.lowest % tile.copy_elements + tile.copy_elements) % tile.copy_elements;
  tile.stages = std::min<std::int64_t>(gather.channels, 3);
  tile.thread_row_elements =
      round_up(tile.skipped_elements + (tile.run_pixels - 1) * gather.stride[2] + along.places,
               quad_bytes / compute_bytes(gather));
  tile.patch_row_elements =
      (tile.row_runs - 1) * tile.run_pixels * gather.stride[2] + tile.thread_row_elements;
  const std::int64_t filter = all_taps(gather) * padded_rows(gather);
  tile.copied_elements =
      ((tile.rows - 1) * gather.stride[1] + reach_of(gather, 1).places) * tile.patch_row_elements +
      filter;
  lay_patch(tile, gather, filter);
  if (tile.tiles_down * tile.tiles_along > 1) return tile;
  tile.units = std::max<std::int64_t>(units_threads / tile.unit_threads(), 1);
  while (tile.units > 1 && tile.shared_elements() * compute_bytes(gather) > enough_memory)
    --tile.units;
  return tile;
}

// Elements of a store: a vector of up to 16 bytes that divides all rows.
std::int64_t out_vector(const ConvolutionProblem& problem, const Gather& gather) {
  const auto bytes = static_cast<std::int64_t>(size_of(problem.type()));
  const Dims& strides = gather.out_strides;
  const auto fits = [&](std::int64_t vector) {
    return problem.alignment >= vector * bytes && strides[0] % vector == 0 &&
           strides[1] % vector == 0 && strides[3] % vector == 0 &&
           std::ranges::all_of(gather.phases, [&](const Gather::Phase& phase) {
             return (phase.out_first - phase.position[2]) % vector == 0;
           });
  };
  const bool contiguous = strides[4] == merged_phases(gather) &&
                          (!problem.epilogue.residual || gather.z_strides == gather.out_strides);
  std::int64_t vector = contiguous ? quad_bytes / bytes : 1;
  while (vector > 1 && !fits(vector)) vector /= 2;
  return vector;
}

Refusal refusal(const Seen& seen) {
  const Gather& gather = seen.gather;
  const auto phases = static_cast<std::int64_t>(gather.phases.size());
  for (const Gather::Phase& phase : gather.phases)
    if (gather.source[0] != 1 || phase.pixels[0] != 1 || phase.taps[0] > 1)
      return "three dimensions of space; this engine takes one and two";
  if (gather.rows > most_rows)
    return cat(gather.rows, " output channels a group; expected at most ", most_rows);
  const Spatial taps = gather.largest_taps(), pixels = gather.largest_pixels();
  if (phases > 1 && phases * gather.rows * 8 * compute_bytes(gather) / 4 > most_sums)
    return cat("a data gradient of ", phases, " phases of ", gather.rows,
               " channels, whose sums do not fit in registers");
  if (phases == 1 && (taps[2] < 2 || taps[2] > most_taps))
    return cat(taps[2], " taps in a row of the filter; expected 2 to ", most_taps);
  // Merged phases begin with that of the output's first pixel. Gradients in which it meets no tap
  // are left to other engines: no such kernel was run.
  if (rows_gather(gather).phases.front().tap_count() == 0)
    return "the output's first pixel meets no tap of the filter";
  if (pixels[1] > limit32 / 2 || pixels[2] > limit32 / 2)
    return cat("an output of ", pixels[1], "x", pixels[2], "; expected at most ", limit32 / 2,
               " each");
  return {};
}

// Why a thread's registers or a block's shared memory do not hold the tile.
Refusal room_refusal(const Tile& tile, const Seen& seen) {
  const std::int64_t element = compute_bytes(seen.gather);
  if (tile.thread_row_elements * element > most_row_bytes)
    return cat(tile.run_pixels, " pixels reach over ", tile.thread_row_elements,
               " pixels of a row; expected at most ", most_row_bytes / element);
  if (const std::int64_t bytes = tile.shared_elements() * element;
      bytes > seen.device.shared_memory_per_block)
    return cat("the patches need ", bytes, " bytes of shared memory; a block has at most ",
               seen.device.shared_memory_per_block);
  return {};
}

std::vector<Tile> lay(const Seen& seen) {
  const Tile tile = choose_tile(seen);
  if (room_refusal(tile, seen)) return {};
  return {tile};
}

Refusal why_no_tile(const Seen& seen) { return room_refusal(choose_tile(seen), seen); }

TileCounts count(const Tile& tile, const Seen& seen) {
  const std::int64_t tiles = ceil_div(seen.problem.batch * seen.gather.groups, tile.units) *
                             tile.tiles_down * tile.tiles_along;
  return {tiles, tiles};
}

std::vector<Offer> offers(const Tile& tile, const Seen& seen, const TileCounts& tiles) {
  const Gather& gather = seen.gather;
  SlidingWork work;
  work.type = gather.type;
  work.blocks = static_cast<double>(tiles.all);
  work.threads = static_cast<double>(tile.threads());
  work.products = static_cast<double>(tile.thread_rows * tile.run_pixels * gather.rows *
                                      gather.channels * all_taps(gather));
  work.steps = static_cast<double>(gather.channels);
  work.copies = static_cast<double>(tile.units * tile.copied_elements) /
                static_cast<double>(tile.copy_elements * tile.threads());
  work.channels_inner = gather.source_strides[4] != 1;
  work.bytes = work_of(seen.problem, false).bytes;
  return {{{}, depthwise_fma_seconds(work, seen.device)}};
}

std::string describe(const Tile& tile) {
  return cat(tile.units > 1 ? cat(tile.units, " of ") : "", tile.rows, "x",
             tile.row_runs * tile.run_pixels, " pixels, ", tile.thread_rows * tile.run_pixels,
             " a thread, ", tile.threads(), " threads, ", tile.stages, " stages");
}

std::uint32_t shared_memory(const Tile& tile, const Seen& seen) {
  return static_cast<std::uint32_t>(tile.shared_elements() * compute_bytes(seen.gather));
}

void write(KernelSpec& spec, const Tile& tile, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  const Gather gather = rows_gather(seen.gather);
  const std::int64_t vector = out_vector(problem, gather);
  spec.alignment =
      size_of(problem.type()) * static_cast<std::size_t>(std::max(tile.copy_elements, vector));
  spec.constants = gather_constants(problem, gather);
  const ConstantWriter add(spec.constants);
  const Reach down = reach_of(gather, 1), along = reach_of(gather, 2);
  add("UNITS", tile.units, "images of a group, of a block");
  add("TILE_P", tile.rows, "rows of pixels");
  add("RUNS", tile.row_runs, "in a row of the tile");
  add("RUN", tile.run_pixels, "pixels of a row of a thread");
  add("RUN_P", tile.thread_rows, "rows of a thread");
  add("PADDED_ROWS", padded_rows(gather));
  add("STAGES", tile.stages);
  add("STAGE", tile.stage_elements, "elements of a unit in a stage");
  add("PITCH", tile.pitch_quads, "quads of 16 bytes from a row of the patch to the next");
  add("PLANE", tile.plane_quads, "quads of the patch that threads read at once");
  add("MIN_BLOCKS", std::int64_t{2});
  add("LOWEST_H", down.lowest, "place that a pixel meets");
  add("LOWEST_W", along.lowest);
  add("REACH_H", down.places, "places that it meets");
  add("PACK", tile.copy_elements, "elements of the source that are copied at once");
  add("SHIFT", tile.skipped_elements, "those of a row's first copy that no pixel meets");
  add("THREAD_ROW", tile.thread_row_elements, "what a thread holds of a row");
  add("MERGED", merged_phases(gather), "phases whose pixels alternate in a row of the output");
  add("OUT_VECTOR", vector, "elements that leave at once");
  add("ASYNC", problem.type() == compute_type(problem.type()), "element_t is compute_t");
  add.divisor("DIV_TILES_P", tile.tiles_down);
  add.divisor("DIV_TILES_Q", tile.tiles_along);
  add.wide_divisor("DIV_GROUPS", gather.groups);
}

}  // namespace

const Recipe<DepthwiseFmaTile> depthwise_fma = {
    .name = "depthwise_fma",
    .file = "conv/direct/depthwise_fma.cu",
    .refusal = refusal,
    .lay = lay,
    .why_no_tile = why_no_tile,
    .count = count,
    .offers = offers,
    .describe = describe,
    .threads = threads_of,
    .shared_memory = shared_memory,
    .write = write,
};

}  // namespace kiln
