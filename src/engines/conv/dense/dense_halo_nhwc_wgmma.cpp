#include "engines/conv/dense/dense_halo_nhwc_wgmma.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "conv/dense/params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/dense/constants.hpp"
#include "engines/conv/dense/launch_maps.hpp"
#include "engines/conv/dense/promotion.hpp"
#include "engines/conv/dense/refusal.hpp"
#include "engines/conv/dense/turned_filter.hpp"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/cost/dense_cost.hpp"

namespace kiln {
namespace {

constexpr DensePatch all_patches[] = {{28}, {32}, {24}, {16}};

constexpr std::int64_t line_bytes = 128, filter_bytes = 64 * line_bytes;
constexpr std::int64_t halo_slots = 2, most_filter_slots = 8, least_filter_slots = 4;
constexpr std::int64_t most_shared_memory = 227 * 1024;
constexpr int threads = 384;
// Longer sums need promotion (add_dense_promotion), which this engine does not do.
constexpr std::int64_t most_products = 16384;

// A patch laid on a problem: its halo and its shared memory, in bytes.
struct Layout {
  std::int64_t columns, rows;  // columns and rows of the halo
  std::int64_t filter_slots, barriers_at, shared_memory;
};

std::int64_t whole_swizzles(std::int64_t bytes) { return round_up(bytes, 1024); }

Layout lay(const DensePatch& patch, const Gather& gather) {
  const auto element = static_cast<std::int64_t>(size_of(gather.type));
  const Spatial& taps = gather.phases.front().taps;
  Layout out{};
  out.columns = 8 + (taps[2] - 1) * std::abs(gather.step[2]);
  out.rows = patch.rows + (taps[1] - 1) * std::abs(gather.step[1]);
  const std::int64_t halos = halo_slots * whole_swizzles(out.columns * out.rows * line_bytes);
  const std::int64_t slabs = 2 * whole_swizzles(patch.pixels() * 64 * element);
  const auto barriers = [](std::int64_t filters) { return 8 * (2 * filters + 2 * halo_slots + 4); };
  const std::int64_t left = most_shared_memory - halos - slabs - barriers(most_filter_slots);
  out.filter_slots = std::min(left / filter_bytes, most_filter_slots);
  out.barriers_at = out.filter_slots * filter_bytes + halos + slabs;
  out.shared_memory = out.barriers_at + barriers(out.filter_slots);
  return out;
}

bool fits(const Layout& layout) {
  constexpr std::int64_t most_box = 256;
  return layout.filter_slots >= least_filter_slots && layout.columns <= most_box &&
         layout.rows <= most_box;
}

std::int64_t tiles_of(const DensePatch& patch, const ConvolutionProblem& problem,
                      const Gather& gather) {
  const Spatial& pixels = gather.phases.front().pixels;
  return problem.batch * pixels[0] * ceil_div(pixels[1], patch.rows) * ceil_div(pixels[2], 8) *
         gather.groups * ceil_div(gather.rows, 64);
}
std::int64_t line_channels(const Gather& gather) {
  return line_bytes / static_cast<std::int64_t>(size_of(gather.type));
}
std::int64_t steps_of(const Gather& gather) {
  return gather.most_taps() * ceil_div(gather.channels, line_channels(gather));
}

double seconds(const DensePatch& patch, const ConvolutionProblem& problem, const Gather& gather,
               const DeviceDescription& device) {
  DenseHaloWork work;
  work.pixels = patch.pixels();
  work.line_bytes = static_cast<int>(dense_lines(problem, gather, 0).channels *
                                     static_cast<std::int64_t>(size_of(problem.type())));
  work.tiles = tiles_of(patch, problem, gather);
  work.steps = steps_of(gather);
  work.bytes = work_of(problem, false).bytes;
  return dense_halo_seconds(work, device);
}

std::string describe(const DensePatch& patch, const Layout& layout) {
  return cat("64x", patch.pixels(), ", patches of 8x", patch.rows, ", ", threads, " threads, ",
             layout.filter_slots, " stages of the filter");
}

Refusal halo_refusal(const ConvolutionProblem& problem, const Gather& gather,
                     const DeviceDescription& device) {
  if (auto refused = dense_refusal(problem, gather, device)) return refused;
  if (auto refused = dense_results_refusal(problem, gather)) return refused;
  if (gather.phases.size() > 1)
    return Refusal{"a data gradient with a stride; this engine takes stride 1"};
  for (const std::int64_t stride : gather.stride)
    if (stride != 1) return Refusal{cat("a stride is ", stride, "; expected 1")};
  if (const Spatial& taps = gather.phases.front().taps; taps[1] * taps[2] == 1)
    return Refusal{"the filter has one tap of a plane, so no input would be reused"};
  if (const std::int64_t products = steps_of(gather) * line_channels(gather);
      products > most_products)
    return Refusal{cat("each output is a sum of ", products, " products; expected at most ",
                       most_products, ", because the tensor cores round sums toward zero")};
  for (const auto& [count, tile, what] :
       {std::tuple(gather.channels, line_channels(gather), "input"),
        {gather.rows, std::int64_t{64}, "output"}})
    if (gather.groups > 1 && count % tile != 0)
      return Refusal{cat(count, " ", what, " channels a group; expected a multiple of ", tile,
                         ", so that a tile ends with a group")};
  return {};
}

}  // namespace

std::span<const DensePatch> DenseHaloNhwcWgmmaEngine::patches() { return all_patches; }

std::variant<std::vector<Candidate>, Refusal> DenseHaloNhwcWgmmaEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& asked = std::get<ConvolutionProblem>(any);
  const ConvolutionProblem problem = with_turned_filter(asked);
  const Gather gather = make_gather(problem);
  if (auto refused = halo_refusal(problem, gather, device)) return refused;
  if (turns_filter(asked))
    if (auto refused = turned_filter_refusal(asked)) return refused;
  std::vector<Candidate> candidates;
  for (std::size_t i = 0; i < std::size(all_patches); ++i)
    if (fits(lay(all_patches[i], gather)) &&
        tiles_of(all_patches[i], problem, gather) <= limit32 / 2)
      candidates.push_back(
          {static_cast<int>(i), 1, seconds(all_patches[i], problem, gather, device)});
  for (Candidate& candidate : candidates) {
    candidate.seconds += turned_filter_seconds(asked, device);
    candidate.workspace = turned_filter_bytes(asked);
  }
  if (candidates.empty()) return Refusal{"the halo of no patch fits into shared memory"};
  return candidates;
}

Proposal DenseHaloNhwcWgmmaEngine::make(const Problem& any, const DeviceDescription& device,
                                        Candidate candidate) const {
  return propose(all_patches[candidate.kernel], std::get<ConvolutionProblem>(any), device);
}

Proposal DenseHaloNhwcWgmmaEngine::propose(const DensePatch& patch, const ConvolutionProblem& asked,
                                           const DeviceDescription& device) const {
  const ConvolutionProblem problem = with_turned_filter(asked);
  const Gather gather = make_gather(problem);
  const Layout layout = lay(patch, gather);
  const DenseLines lines = dense_lines(problem, gather, 0);
  Proposal out;
  KernelSpec& spec = out.first().kernel;
  spec.engine = name();
  spec.file = cat("conv/dense/", name(), ".cu");
  spec.entry = name();
  spec.tile = describe(patch, layout);
  spec.shared_memory = static_cast<std::uint32_t>(layout.shared_memory);
  spec.alignment = 16;
  spec.constants = gather_constants(problem, gather);
  const auto add = [&](const char* name, auto value, const char* comment = "") {
    spec.constants.push_back({name, value, comment});
  };
  const DensePhase places = dense_phase(gather, gather.phases.front());
  add("LOWER_W", std::vector<std::int64_t>{places.lower[0]});
  add("LOWER_H", std::vector<std::int64_t>{places.lower[1]});
  add("LOWER_D", std::vector<std::int64_t>{places.lower[2]});
  add_dense_space(spec.constants, gather);
  add_dense_lines(spec.constants, lines, problem);
  add("MAY_LACK_TAPS", false);
  add("BLOCK_RIGHT", std::int64_t{patch.pixels()}, "pixels of a patch: columns of operand B");
  add("FILTER_SLOTS", layout.filter_slots);
  add("HALO_SLOTS", halo_slots);
  add("SHARED_BYTES", layout.shared_memory);
  add("FILTER_BY_CHANNELS", filter_by_channels(gather),
      "the rows of w are contiguous, not its channels");
  add("MAPS", dense_map_count(problem, gather));
  add_dense_promotion(spec.constants, steps_of(gather), lines.channels);
  add_sum_registers(spec.constants, 1, patch.pixels() / 8, false, "f32");
  add_warpgroup_instruction(spec.constants, patch.pixels());

  LaunchSpec& launch = out.first().launch;
  launch.empty = problem.batch == 0;
  DenseParams params{};
  params.coef[0] = problem.epilogue.activation.coefficient;
  params.coef[1] = problem.epilogue.activation.coefficient2;
  const std::int64_t tiles = tiles_of(patch, problem, gather);
  params.tiles[0] = static_cast<unsigned>(tiles);
  launch.shape.grid = {
      static_cast<std::uint32_t>(std::clamp<std::int64_t>(tiles, 1, device.multiprocessors)), 1, 1};
  launch.shape.block = {threads, 1, 1};
  launch.shape.shared_memory = spec.shared_memory;
  launch.maps = dense_patch_maps(problem, gather, {lines, layout.columns, layout.rows, patch.rows});
  launch.parameters.resize(sizeof params + launch.maps.size() * sizeof(TensorMap));
  std::memcpy(launch.parameters.data(), &params, sizeof params);
  add_dense_patches(launch, problem);
  return behind_turned_filter(std::move(out), asked);
}

}  // namespace kiln
