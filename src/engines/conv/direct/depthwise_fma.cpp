#include "engines/conv/direct/depthwise_fma.hpp"

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"
#include "engines/cost/cost_model.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_rows = 4, most_taps = 16;  // what unrolled loops and registers bear
constexpr int stages = 3;

struct Tile {
  std::int64_t p, runs, run;  // rows of pixels; runs of pixels in a row, one a thread
  std::int64_t threads() const { return p * runs; }
};

// 256 threads: runs enough for a row of the output, the rest of the threads in height.
Tile choose_tile(const Gather& gather) {
  const std::int64_t width = gather.phases.front().pixels[2];
  Tile tile{16, 16, 8};
  while (tile.runs > 2 && tile.runs / 2 * tile.run >= width) {
    tile.runs /= 2;
    tile.p *= 2;
  }
  return tile;
}

std::int64_t blocks_of(const ConvolutionProblem& problem, const Gather::Phase& phase,
                       const Tile& tile) {
  return problem.batch * problem.groups * ceil_div(phase.pixels[1], tile.p) *
         ceil_div(phase.pixels[2], tile.runs * tile.run);
}

std::int64_t stage_elements(const Gather& gather, const Tile& tile, std::int64_t padded_rows) {
  const Spatial& taps = gather.phases.front().taps;
  const std::int64_t patch_w = ceil_div(tile.runs * tile.run + taps[2] - 1, 4) * 4;
  return (tile.p + taps[1] - 1) * patch_w + ceil_div(taps[1] * taps[2] * padded_rows, 4) * 4;
}

std::optional<Refusal> refusal(const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  if (auto refused = plane_refusal(gather)) return refused;
  if (gather.rows > most_rows)
    return Refusal{cat(gather.rows, " output channels a group; expected at most ", most_rows)};
  for (int i = 1; i < 3; ++i) {
    if (gather.stride[i] != 1)
      return Refusal{cat("a stride is ", gather.stride[i], "; expected 1")};
    if (gather.step[i] != 1 && gather.step[i] != -1)
      return Refusal{"the filter is dilated; expected dilation 1"};
  }
  if (phase.taps[2] < 2 || phase.taps[2] > most_taps)
    return Refusal{cat(phase.taps[2], " taps in a row of the filter; expected 2 to ", most_taps)};
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
  if (auto refused = refusal(gather)) return *std::move(refused);
  const Tile tile = choose_tile(gather);
  const Gather::Phase& phase = gather.phases.front();
  const std::int64_t padded_rows = gather.rows == 3 ? 4 : gather.rows;
  const std::size_t element = size_of(compute_type(problem.type()));

  KernelSpec spec;
  spec.engine = "depthwise_fma";
  spec.file = "conv/direct/depthwise_fma.cu";
  spec.entry = "depthwise_fma";
  spec.tile = cat(tile.p, "x", tile.runs * tile.run, " pixels, ", tile.run, " a thread, ",
                  tile.threads(), " threads, ", stages, " stages");
  spec.alignment = size_of(problem.type());
  const std::int64_t bytes =
      stages * stage_elements(gather, tile, padded_rows) * static_cast<std::int64_t>(element);
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
  add("STAGES", std::int64_t{stages});
  add("MIN_BLOCKS", std::int64_t{2});
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
  const Tile tile = choose_tile(gather);
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
