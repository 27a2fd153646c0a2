#include "engines/conv/direct/depthwise_fma.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_rows = 4, most_taps = 32;  // what unrolled loops and registers bear
constexpr std::int64_t most_row_bytes = 208;           // of what a thread holds of a row
constexpr std::int64_t least_threads = 64;
constexpr std::int64_t quad_bytes = 16;  // that are read of shared memory at once

struct Tile {
  std::int64_t p, runs, run;  // rows of pixels; runs of pixels in a row, one a thread
  std::int64_t pack = 1;      // elements of the source's row that are copied at once
  std::int64_t shift = 0;     // those of the first copy that no pixel meets
  std::int64_t stages = 0;
  std::int64_t threads() const { return p * runs; }
};

std::int64_t distance(const Gather& gather, int i) { return std::abs(gather.step[i]); }
std::int64_t reach(const Gather& gather, int i, std::int64_t pixels) {
  return (pixels - 1) * gather.stride[i] +
         (gather.phases.front().taps[i] - 1) * distance(gather, i) + 1;
}

// As many elements at once as all rows and images begin and end with, if a row's lie side by side.
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

// Up to 256 threads: runs enough for a row of the output, the rest of the threads in height.
Tile choose_tile(const ConvolutionProblem& problem, const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  Tile tile{16, 16, 8};
  while (tile.runs > 2 && tile.runs / 2 * tile.run >= phase.pixels[2]) {
    tile.runs /= 2;
    tile.p *= 2;
  }
  while (tile.p > 1 && tile.p / 2 >= phase.pixels[1]) {
    const bool widens = tile.runs * tile.run < phase.pixels[2];
    if (!widens && tile.threads() / 2 < least_threads) break;
    tile.p /= 2;
    if (widens) tile.runs *= 2;
  }
  tile.pack = pack_of(problem, gather);
  const std::int64_t lowest = phase.origin[2] - (gather.step[2] < 0 ? reach(gather, 2, 1) - 1 : 0);
  tile.shift = (lowest % tile.pack + tile.pack) % tile.pack;
  tile.stages = std::min<std::int64_t>(gather.channels, 3);
  return tile;
}

// Elements of 16 bytes that a row's side by side leave in, or one at a time.
std::int64_t out_vector(const ConvolutionProblem& problem, const Gather& gather) {
  const auto vector = quad_bytes / static_cast<std::int64_t>(size_of(problem.type()));
  const Gather::Phase& phase = gather.phases.front();
  const auto whole = [&](const Dims& strides, std::int64_t first) {
    return strides[4] == 1 && first % vector == 0 && strides[0] % vector == 0 &&
           strides[1] % vector == 0 && strides[3] % vector == 0;
  };
  const bool fits = problem.alignment >= quad_bytes && whole(gather.out_strides, phase.out_first) &&
                    (!problem.epilogue.residual || gather.z_strides == gather.out_strides);
  return fits ? vector : 1;
}

std::int64_t blocks_of(const ConvolutionProblem& problem, const Gather::Phase& phase,
                       const Tile& tile) {
  return problem.batch * problem.groups * ceil_div(phase.pixels[1], tile.p) *
         ceil_div(phase.pixels[2], tile.runs * tile.run);
}

// What a thread holds of a row, in whole quads, and what a block has of it.
std::int64_t thread_row(const ConvolutionProblem& problem, const Gather& gather, const Tile& tile) {
  const auto quad = quad_bytes / static_cast<std::int64_t>(size_of(compute_type(problem.type())));
  return round_up(tile.shift + reach(gather, 2, tile.run), quad);
}
std::int64_t patch_width(const ConvolutionProblem& problem, const Gather& gather,
                         const Tile& tile) {
  return (tile.runs - 1) * tile.run * gather.stride[2] + thread_row(problem, gather, tile);
}

std::int64_t stage_elements(const ConvolutionProblem& problem, const Gather& gather,
                            const Tile& tile, std::int64_t padded_rows) {
  return reach(gather, 1, tile.p) * patch_width(problem, gather, tile) +
         round_up(gather.phases.front().tap_count() * padded_rows, 4);
}

std::optional<Refusal> refusal(const ConvolutionProblem& problem, const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  if (auto refused = plane_refusal(gather)) return refused;
  if (gather.rows > most_rows)
    return Refusal{cat(gather.rows, " output channels a group; expected at most ", most_rows)};
  if (phase.taps[2] < 2 || phase.taps[2] > most_taps)
    return Refusal{cat(phase.taps[2], " taps in a row of the filter; expected 2 to ", most_taps)};
  const Tile tile = choose_tile(problem, gather);
  const auto element = static_cast<std::int64_t>(size_of(compute_type(problem.type())));
  if (const std::int64_t row = thread_row(problem, gather, tile); row * element > most_row_bytes)
    return Refusal{cat(tile.run, " pixels reach over ", row, " places of a row; expected at most ",
                       most_row_bytes / element)};
  if (phase.pixels[1] > limit32 / 2 || phase.pixels[2] > limit32 / 2)
    return Refusal{cat("an output of ", phase.pixels[1], "x", phase.pixels[2],
                       "; expected at most ", limit32 / 2, " each")};
  return std::nullopt;
}

}  // namespace

bool DepthwiseFmaEngine::is_for(const Problem& problem) const { return is_gather(problem); }

std::variant<Proposal, Refusal> DepthwiseFmaEngine::propose(const Problem& any,
                                                            const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (auto refused = refusal(problem, gather)) return *std::move(refused);
  const Tile tile = choose_tile(problem, gather);
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t padded_rows = gather.rows == 3 ? 4 : gather.rows;
  const std::size_t element = size_of(compute_type(problem.type()));

  KernelSpec spec;
  spec.engine = "depthwise_fma";
  spec.file = "conv/direct/depthwise_fma.cu";
  spec.entry = "depthwise_fma";
  spec.tile = cat(tile.p, "x", tile.runs * tile.run, " pixels, ", tile.run, " a thread, ",
                  tile.threads(), " threads, ", tile.stages, " stages");
  const std::int64_t vector = out_vector(problem, gather);
  spec.alignment = size_of(problem.type()) * static_cast<std::size_t>(std::max(tile.pack, vector));
  const std::int64_t bytes = tile.stages * stage_elements(problem, gather, tile, padded_rows) *
                             static_cast<std::int64_t>(element);
  if (bytes > device.shared_memory_per_block)
    return Refusal{cat("the patches need ", bytes, " bytes of shared memory; a block has at most ",
                       device.shared_memory_per_block)};
  spec.shared_memory = static_cast<std::uint32_t>(bytes);
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  add("TILE_P", tile.p, "rows of pixels");
  add("RUNS", tile.runs, "in a row of the tile");
  add("RUN", tile.run, "pixels of a thread");
  add("PADDED_ROWS", padded_rows);
  add("STAGES", tile.stages);
  add("MIN_BLOCKS", 512 / tile.threads());
  add("PACK", tile.pack, "elements of the source that are copied at once");
  add("SHIFT", tile.shift, "those of a row's first copy that no pixel meets");
  add("THREAD_ROW", thread_row(problem, gather, tile), "what a thread holds of a row");
  add("OUT_VECTOR", vector, "elements that leave at once");
  add("ASYNC", problem.type() == compute_type(problem.type()), "element_t is compute_t");
  const auto divisor = [&](const char* name, std::int64_t value) {
    add(name, make_magic(static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(limit32)));
  };
  const std::int64_t tiles_p = ceil_div(phase.pixels[1], tile.p);
  const std::int64_t tiles_q = ceil_div(phase.pixels[2], tile.runs * tile.run);
  divisor("DIV_TILES_P", tiles_p);
  divisor("DIV_TILES_Q", tiles_q);
  divisor("DIV_GROUPS", problem.groups);
  const std::int64_t blocks = blocks_of(problem, phase, tile);
  if (blocks > limit32)
    return Refusal{cat(blocks, " thread blocks; a launch has at most ", limit32)};
  Proposal out{{std::move(spec), {}}};
  out.launch = gather_launch(problem, blocks, blocks, static_cast<std::uint32_t>(tile.threads()),
                             out.kernel.shared_memory);
  return out;
}

double DepthwiseFmaEngine::seconds(const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  const Tile tile = choose_tile(problem, gather);
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t products = tile.run * gather.rows * gather.channels * phase.tap_count();
  return depthwise_fma_seconds(
      {problem.type(), static_cast<double>(blocks_of(problem, phase, tile)),
       static_cast<double>(tile.threads()), static_cast<double>(products),
       static_cast<double>(gather.channels), gather.source_strides[4] != 1,
       work_of(problem, false).bytes},
      device);
}

}  // namespace kiln
