#include "engines/conv/direct/depthwise_fma.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
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

// The problem's gather, with the phases whose pixels alternate in a row one after the other.
Gather rows_gather(const ConvolutionProblem& problem) {
  Gather gather = make_gather(problem);
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

struct Tile {
  std::int64_t p = 0, runs = 0,
               run = 8;    // rows of pixels; runs in a row; pixels of a run
  std::int64_t run_p = 1;  // runs of a thread, one below the other
  std::int64_t units = 1;  // a unit is one tile of one group of an image
  std::int64_t tiles_p = 0, tiles_q = 0;
  std::int64_t pack = 1;   // elements of a copy of the source
  std::int64_t shift = 0;  // elements at the start of a row's first copy that no pixel needs
  std::int64_t stages = 0;
  std::int64_t row = 0, patch_width = 0;  // elements of a source row for a thread, and for a tile
  std::int64_t copied = 0;                // elements of a unit's patch, and its filter
  std::int64_t pitch = 0, plane = 0;      // of the patch in shared memory, in quads
  std::int64_t stage_elements = 0;        // elements of a unit in a stage

  std::int64_t unit_threads() const { return p / run_p * runs; }
  std::int64_t threads() const { return round_up(units * unit_threads(), 32); }
  std::int64_t shared_elements() const { return stages * units * stage_elements; }
};

std::int64_t padded_rows(const Gather& gather) { return gather.rows == 3 ? 4 : gather.rows; }
std::int64_t compute_bytes(const ConvolutionProblem& problem) {
  return static_cast<std::int64_t>(size_of(compute_type(problem.type())));
}

// Elements of the widest copy that divides all rows, planes and images of the source.
std::int64_t pack_of(const ConvolutionProblem& problem, const Gather& gather) {
  std::int64_t pack = problem.type() == KILN_DATA_DOUBLE ? 2 : 4;
  const auto fits = [&] {
    const auto bytes = pack * static_cast<std::int64_t>(size_of(problem.type()));
    return problem.alignment >= bytes && gather.source_strides[4] == 1 &&
           gather.source[2] % pack == 0 && gather.source_strides[0] % pack == 0 &&
           gather.source_strides[1] % pack == 0 && gather.source_strides[3] % pack == 0;
  };
  while (pack > 1 && !fits()) pack /= 2;
  return pack;
}

// Rows of a thread: two, where the filter is short enough to be unrolled and few rows are left
// over. Both use a row of the patch, and each weight is read once for both.
std::int64_t rows_of_thread(const ConvolutionProblem& problem, const Gather& gather) {
  constexpr std::int64_t most_unrolled = 64, least_rows = 12;
  const Spatial taps = gather.largest_taps(), pixels = gather.largest_pixels();
  const bool two = gather.phases.size() == 1 && gather.rows == 1 && gather.stride[1] == 1 &&
                   compute_bytes(problem) == 4 && taps[1] > 1 &&
                   taps[1] * taps[2] <= most_unrolled &&
                   (pixels[1] % 2 == 0 || pixels[1] > least_rows);
  return two ? 2 : 1;
}

// Lays a unit's patch out in shared memory.
void lay_patch(Tile& tile, const ConvolutionProblem& problem, const Gather& gather,
               std::int64_t filter) {
  constexpr std::int64_t enough_bytes = 32 * 1024;  // of as many threads as several units have
  const std::int64_t quad = quad_bytes / compute_bytes(problem), threads = tile.unit_threads();
  const QuadRows rows = {
      .runs = tile.runs,
      .threads = threads,
      .rows = round_up((tile.p - 1) * gather.stride[1] + reach_of(gather, 1).places,
                       tile.run_p * gather.stride[1]),
      .quads = tile.patch_width / quad,
      .lane_quads = tile.run * gather.stride[2] / quad};
  const QuadLayout layout = lay_quads(rows, enough_bytes / quad_bytes / tile.stages *
                                                std::min(threads, units_threads) / units_threads);
  tile.pitch = layout.pitch, tile.plane = layout.plane;
  tile.stage_elements = round_up(rows.lane_quads * layout.plane * quad + filter, quad);
}

// A block has up to 256 threads: as many as a row of the output has runs, times rows, times units
// if images are small.
Tile choose_tile(const ConvolutionProblem& problem, const Gather& gather) {
  const Spatial pixels = gather.largest_pixels();
  Tile tile;
  const std::int64_t all = ceil_div(pixels[2], tile.run);
  tile.tiles_q = ceil_div(all, most_runs);
  tile.runs = ceil_div(all, tile.tiles_q);
  tile.run_p = rows_of_thread(problem, gather);
  const std::int64_t strips = ceil_div(pixels[1], tile.run_p);
  tile.tiles_p = ceil_div(strips, std::max<std::int64_t>(most_threads / tile.runs, 1));
  tile.p = ceil_div(strips, tile.tiles_p) * tile.run_p;

  const Reach along = reach_of(gather, 2);
  tile.pack = pack_of(problem, gather);
  tile.shift = (along.lowest % tile.pack + tile.pack) % tile.pack;
  tile.stages = std::min<std::int64_t>(gather.channels, 3);
  tile.row = round_up(tile.shift + (tile.run - 1) * gather.stride[2] + along.places,
                      quad_bytes / compute_bytes(problem));
  tile.patch_width = (tile.runs - 1) * tile.run * gather.stride[2] + tile.row;
  std::int64_t taps = 0;
  for (const Gather::Phase& phase : gather.phases) taps += phase.tap_count();
  const std::int64_t filter = taps * padded_rows(gather);
  tile.copied =
      ((tile.p - 1) * gather.stride[1] + reach_of(gather, 1).places) * tile.patch_width + filter;
  lay_patch(tile, problem, gather, filter);
  if (tile.tiles_p * tile.tiles_q > 1) return tile;
  tile.units = std::max<std::int64_t>(units_threads / tile.unit_threads(), 1);
  while (tile.units > 1 && tile.shared_elements() * compute_bytes(problem) > enough_memory)
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

std::int64_t blocks_of(const ConvolutionProblem& problem, const Tile& tile) {
  return ceil_div(problem.batch * problem.groups, tile.units) * tile.tiles_p * tile.tiles_q;
}

Refusal refusal(const ConvolutionProblem& problem, const Gather& gather) {
  const auto phases = static_cast<std::int64_t>(gather.phases.size());
  for (const Gather::Phase& phase : gather.phases)
    if (gather.source[0] != 1 || phase.pixels[0] != 1 || phase.taps[0] > 1)
      return Refusal{"three dimensions of space; this engine takes one and two"};
  if (gather.rows > most_rows)
    return Refusal{cat(gather.rows, " output channels a group; expected at most ", most_rows)};
  const Spatial taps = gather.largest_taps(), pixels = gather.largest_pixels();
  if (phases > 1 && phases * gather.rows * 8 * compute_bytes(problem) / 4 > most_sums)
    return Refusal{cat("a data gradient of ", phases, " phases of ", gather.rows,
                       " channels, whose sums do not fit in registers")};
  if (phases == 1 && (taps[2] < 2 || taps[2] > most_taps))
    return Refusal{cat(taps[2], " taps in a row of the filter; expected 2 to ", most_taps)};
  if (gather.most_taps() == 0) return Refusal{"no tap of the filter meets the input"};
  const Tile tile = choose_tile(problem, gather);
  if (tile.row * compute_bytes(problem) > most_row_bytes)
    return Refusal{cat(tile.run, " pixels reach over ", tile.row,
                       " pixels of a row; expected at most ",
                       most_row_bytes / compute_bytes(problem))};
  if (pixels[1] > limit32 / 2 || pixels[2] > limit32 / 2)
    return Refusal{cat("an output of ", pixels[1], "x", pixels[2], "; expected at most ",
                       limit32 / 2, " each")};
  return {};
}

}  // namespace

bool DepthwiseFmaEngine::is_for(const Problem& problem) const { return is_gather(problem); }

std::variant<Proposal, Refusal> DepthwiseFmaEngine::propose(const Problem& any,
                                                            const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = rows_gather(problem);
  if (auto refused = refusal(problem, gather)) return refused;
  const Tile tile = choose_tile(problem, gather);

  KernelSpec spec;
  spec.engine = "depthwise_fma";
  spec.file = "conv/direct/depthwise_fma.cu";
  spec.entry = "depthwise_fma";
  spec.tile = cat(tile.units > 1 ? cat(tile.units, " of ") : "", tile.p, "x", tile.runs * tile.run,
                  " pixels, ", tile.run_p * tile.run, " a thread, ", tile.threads(), " threads, ",
                  tile.stages, " stages");
  const std::int64_t vector = out_vector(problem, gather);
  spec.alignment = size_of(problem.type()) * static_cast<std::size_t>(std::max(tile.pack, vector));
  const std::int64_t bytes = tile.shared_elements() * compute_bytes(problem);
  if (bytes > device.shared_memory_per_block)
    return Refusal{cat("the patches need ", bytes, " bytes of shared memory; a block has at most ",
                       device.shared_memory_per_block)};
  spec.shared_memory = static_cast<std::uint32_t>(bytes);
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  const Reach down = reach_of(gather, 1), along = reach_of(gather, 2);
  add("UNITS", tile.units, "images of a group, of a block");
  add("TILE_P", tile.p, "rows of pixels");
  add("RUNS", tile.runs, "in a row of the tile");
  add("RUN", tile.run, "pixels of a row of a thread");
  add("RUN_P", tile.run_p, "rows of a thread");
  add("PADDED_ROWS", padded_rows(gather));
  add("STAGES", tile.stages);
  add("STAGE", tile.stage_elements, "elements of a unit in a stage");
  add("PITCH", tile.pitch, "quads of 16 bytes from a row of the patch to the next");
  add("PLANE", tile.plane, "quads of the patch that threads read at once");
  add("MIN_BLOCKS", std::int64_t{2});
  add("LOWEST_H", down.lowest, "place that a pixel meets");
  add("LOWEST_W", along.lowest);
  add("REACH_H", down.places, "places that it meets");
  add("PACK", tile.pack, "elements of the source that are copied at once");
  add("SHIFT", tile.shift, "those of a row's first copy that no pixel meets");
  add("THREAD_ROW", tile.row, "what a thread holds of a row");
  add("MERGED", merged_phases(gather), "phases whose pixels alternate in a row of the output");
  add("OUT_VECTOR", vector, "elements that leave at once");
  add("ASYNC", problem.type() == compute_type(problem.type()), "element_t is compute_t");
  const auto divisor = [&](const char* name, std::int64_t value) {
    add(name, make_magic(static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(limit32)));
  };
  divisor("DIV_TILES_P", tile.tiles_p);
  divisor("DIV_TILES_Q", tile.tiles_q);
  add("DIV_GROUPS", make_wide_magic(static_cast<std::uint64_t>(problem.groups)));
  const std::int64_t blocks = blocks_of(problem, tile);
  if (blocks > limit32)
    return Refusal{cat(blocks, " thread blocks; a launch has at most ", limit32)};
  Proposal out{{std::move(spec), {}}};
  out.first().launch =
      gather_launch(problem, blocks, blocks, static_cast<std::uint32_t>(tile.threads()),
                    out.first().kernel.shared_memory);
  return out;
}

double DepthwiseFmaEngine::seconds(const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = rows_gather(problem);
  const Tile tile = choose_tile(problem, gather);
  std::int64_t taps = 0;
  for (const Gather::Phase& phase : gather.phases) taps += phase.tap_count();
  const std::int64_t products = tile.run_p * tile.run * gather.rows * gather.channels * taps;
  return depthwise_fma_seconds({problem.type(), static_cast<double>(blocks_of(problem, tile)),
                                static_cast<double>(tile.threads()), static_cast<double>(products),
                                static_cast<double>(gather.channels),
                                static_cast<double>(tile.units * tile.copied) /
                                    static_cast<double>(tile.pack * tile.threads()),
                                gather.source_strides[4] != 1, work_of(problem, false).bytes},
                               device);
}

}  // namespace kiln
