#include "engines/stand_in/stand_in_dense.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <vector>

#include "conv/dense/params.h"
#include "core/text.hpp"
#include "engines/conv/dense/promotion.hpp"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

// Tiles of which at least one is nearly as good as the best of all tiles, by the estimates for some
// 200 layers. The first tiles_of_volumes of each list serve convolutions of volumes.
constexpr DenseTile tiles[] = {
    {.pixels_left = true, .consumers = 3, .left = 1, .right = 64},
    {.pixels_left = true, .consumers = 3, .left = 1, .right = 128},
    {.consumers = 2, .left = 1, .right = 96},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 64},
    {.consumers = 2, .left = 1, .right = 160},
    {.pixels_left = true, .consumers = 2, .left = 1, .right = 128},
    {.consumers = 2, .left = 1, .right = 32},
};
struct WgradTile {
  int consumers, right, step_bytes;  // step_bytes: pixels of a step x bytes of an element
};
constexpr WgradTile wgrad_tiles[] = {
    {1, 128, 256}, {2, 192, 128}, {1, 64, 256}, {2, 128, 256}, {2, 256, 128},
};
constexpr std::size_t tiles_of_volumes = 3;

// The tiles of such a list that serve the problem.
template <class Tile, std::size_t Count>
std::span<const Tile> some_of(const Tile (&all)[Count], const ConvolutionProblem& problem) {
  const bool volume = dense_space(make_gather(problem)) == 3;
  return std::span<const Tile>(all).first(volume ? tiles_of_volumes : Count);
}

template <std::size_t Count>
bool is_among(std::string_view name, const char* const (&names)[Count]) {
  return std::ranges::any_of(names, [&](const char* each) { return name == each; });
}

Treatment treat_gather(std::string_view name) {
  constexpr const char* late[] = {
      "CHANNELS", "ROWS",    "CHANNEL_STEPS", "OUT_IN_LINE", "Z_IN_LINE", "OUT_O",
      "OUT_P",    "OUT_Q",   "FILTER_T",      "FILTER_R",    "FILTER_S",  "LOWER_D",
      "LOWER_H",  "LOWER_W", "STRIDE_D",      "STRIDE_H",    "STRIDE_W",  "STEP_D",
      "STEP_H",   "STEP_W",  "APART_D",       "APART_H",     "APART_W",   "BIAS_STRIDE"};
  if (is_among(name, late)) return Treatment::late;
  if (name == "ROW_TILES") return Treatment::divisor;
  if (name == "SOURCE_STRIDE_C") return Treatment::keep;             // 1: channels are contiguous
  if (name.ends_with("_STRIDE_GROUP")) return Treatment::leave_out;  // groups follow each other
  if (name == "OUT_STRIDE_ROW" || name == "Z_STRIDE_ROW") return Treatment::late;
  if (name.starts_with("OUT_STRIDE_") || name.starts_with("Z_STRIDE_") || name == "OUT_FIRST" ||
      name == "Z_FIRST")
    return Treatment::wide;
  // The tensor maps contain these, so the kernel does not read them.
  const bool in_maps = name.starts_with("SOURCE_") || name.starts_with("PADDED_") ||
                       name.starts_with("ORIGIN_") || name.starts_with("W_");
  return in_maps ? Treatment::leave_out : Treatment::keep;
}

Treatment treat_wgrad(std::string_view name) {
  constexpr const char* divisors[] = {"BAND_ROWS", "BAND_TILES",     "GROUP_TILES", "TILES",
                                      "TAPS",      "CHANNEL_BLOCKS", "TAPS_RS",     "TAPS_S"};
  constexpr const char* late[] = {
      "CHANNELS",   "ROWS",          "TAPS_T",      "TAPS_R",      "COLUMN_BLOCKS", "STRIDE_D",
      "STRIDE_H",   "STRIDE_W",      "STEP_D",      "STEP_H",      "STEP_W",        "APART_D",
      "APART_H",    "APART_W",       "OUT_O",       "OUT_P",       "OUT_Q",         "LOWER_D",
      "LOWER_H",    "LOWER_W",       "ADVANCE_Q",   "ADVANCE_P",   "ADVANCE_O",     "ADVANCE_N",
      "DW_FIRST",   "DW_STRIDE_ROW", "DW_STRIDE_T", "DW_STRIDE_R", "DW_STRIDE_S",   "PLANE",
      "DY_IN_LINE", "PLANE_STEPS",   "DIV_OPQ",     "DIV_PQ",      "DIV_Q",         "SOURCE_D",
      "SOURCE_H",   "SOURCE_W",      "ORIGIN_D",    "ORIGIN_H",    "ORIGIN_W"};
  if (is_among(name, divisors)) return Treatment::divisor;
  if (is_among(name, late)) return Treatment::late;
  const bool strides = name.starts_with("SOURCE_STRIDE_") || name.starts_with("OUT_STRIDE_");
  return strides ? Treatment::wide : Treatment::keep;
}

Refusal group_refusal(const ConvolutionProblem& problem) {
  if (problem.groups == 1) return {};
  return cat(problem.groups, " groups of channels; expected 1");
}

// Pads the phases, which have any numbers of tiles, to one of a few numbers. Added phases have no
// tiles, and the last phase's maps.
void pad_dense_phases(Step& step) {
  constexpr std::int64_t counts[] = {1, 4, std::size(DenseParams{}.tiles)};
  LaunchSpec& launch = step.launch;
  set_constant(step.kernel, "PHASES_TOGETHER", false);
  const std::int64_t phases = constant<std::int64_t>(step.kernel, "PHASES"),
                     padded = *std::ranges::lower_bound(counts, phases);
  if (padded == phases) return;
  pad_phases(step.kernel, padded);
  const std::size_t maps = launch.maps.size() / static_cast<std::size_t>(phases);
  set_constant(step.kernel, "MAPS", static_cast<std::int64_t>(maps) * padded);
  DenseParams params;
  std::memcpy(&params, launch.parameters.data(), sizeof params);
  for (auto i = static_cast<std::size_t>(phases); i < static_cast<std::size_t>(padded); ++i) {
    params.tiles[i] = params.tiles[i - 1];
    for (std::size_t map = 0; map < maps; ++map) {
      launch.maps.push_back(launch.maps[launch.maps.size() - maps]);
      launch.maps.back().offset =
          static_cast<std::uint16_t>(launch.maps.back().offset + maps * tensor_map_bytes);
    }
  }
  launch.parameters.resize(sizeof params + launch.maps.size() * tensor_map_bytes);
  std::memcpy(launch.parameters.data(), &params, sizeof params);
}

}  // namespace

Refusal StandInDenseEngine::refusal(const ConvolutionProblem& problem) const {
  return group_refusal(problem);
}

void StandInDenseEngine::select(std::vector<Candidate>& all, const ConvolutionProblem& problem,
                                const DeviceDescription& device) const {
  const std::vector<DenseTile> laid = dense_.tiles(problem, device);
  const std::span<const DenseTile> some = some_of(tiles, problem);
  std::erase_if(all, [&](const Candidate& candidate) {
    const DenseTile& tile = laid.at(static_cast<std::size_t>(candidate.kernel));
    return std::ranges::none_of(some, [&](const DenseTile& each) {
      return !tile.joined && each.pixels_left == tile.pixels_left &&
             each.consumers == tile.consumers && each.left == tile.left && each.right == tile.right;
    });
  });
}

bool StandInDenseEngine::generalize(Proposal& proposal, const DeviceDescription&) const {
  // A first step may transpose the filter; its kernel serves every shape already.
  Step& step = proposal.steps.back();
  pad_dense_phases(step);
  KernelSpec& kernel = step.kernel;
  if (constant<std::int64_t>(kernel, "PHASES") > 1) set_constant(kernel, "MAY_LACK_TAPS", true);
  // Every sum is promoted like a long one, which is never less accurate.
  set_constant(kernel, "PROMOTE", dense_promotion(constant<std::int64_t>(kernel, "STEP_CHANNELS")));
  set_constant(kernel, "PROMOTE_LOCAL", true);
  return make_late(step, treat_gather);
}

Refusal StandInWgradDenseEngine::refusal(const ConvolutionProblem& problem) const {
  if (is_split(problem))
    return "the data type is f32 and the math mode DEFAULT; this engine takes f16, bf16 and TF32";
  return group_refusal(problem);
}

void StandInWgradDenseEngine::select(std::vector<Candidate>& all, const ConvolutionProblem& problem,
                                     const DeviceDescription& device) const {
  const std::vector<WgradDenseTile> laid = dense_.tiles(problem, device);
  const std::span<const WgradTile> some = some_of(wgrad_tiles, problem);
  std::erase_if(all, [&](const Candidate& candidate) {
    const WgradDenseTile& tile = laid.at(static_cast<std::size_t>(candidate.kernel));
    return candidate.groups > 1 || tile.persistent() ||
           std::ranges::none_of(some, [&](const WgradTile& each) {
             return each.consumers == tile.consumers && tile.left == 1 &&
                    each.right == tile.right && each.step_bytes == tile.step_pixels * tile.element;
           });
  });
}

bool StandInWgradDenseEngine::generalize(Proposal& proposal,
                                         const DeviceDescription& device) const {
  proposal.first().kernel.clustered = device.largest_cluster > 1;
  return make_late(proposal.first(), treat_wgrad);
}

}  // namespace kiln
