#include "engines/stand_in/stand_in_gemm.hpp"

#include <vector>

namespace kiln {
namespace {

Treatment treat(std::string_view name) {
  for (const char* const late : {"CHANNELS", "ROWS", "REDUCTION", "TAPS_T", "TAPS_R", "TAPS_S",
                                 "FILTER_T", "FILTER_R", "FILTER_S", "FILTER_K_STEP", "BIAS",
                                 "BIAS_STRIDE", "BIAS_STRIDE_GROUP", "OUT_O", "OUT_P", "OUT_Q"})
    if (name == late) return Treatment::late;
  if (name == "W_FIRST" || name == "OUT_FIRST" || name == "Z_FIRST") return Treatment::wide;
  for (const char* const late : {"SOURCE_", "STRIDE_", "STEP_", "ORIGIN_", "W_STRIDE_",
                                 "OUT_STRIDE_", "Z_STRIDE_", "DIV_", "BLOCK_DIV_"})
    if (name.starts_with(late)) return Treatment::late;
  return Treatment::keep;
}

// One tile serves all problems. It is small, so that small problems too have enough tiles to fill
// the chip.
void select_small(std::vector<Candidate>& all, const std::vector<GemmTile>& tiles) {
  std::erase_if(all, [&](const Candidate& candidate) {
    const GemmTile& tile = tiles.at(static_cast<std::size_t>(candidate.kernel));
    return tile.m != 64 || tile.n != 64;
  });
}

// Makes the kernel check every dimension for taps outside the source.
void pad_everywhere(KernelSpec& kernel) {
  for (const char* const name : {"PADDED_D", "PADDED_H", "PADDED_W", "TAPS_IN_DEPTH"})
    set_constant(kernel, name, true);
}

}  // namespace

Refusal StandInGemmEngine::refusal(const ConvolutionProblem& problem) const {
  return phase_refusal(problem);
}

void StandInGemmEngine::select(std::vector<Candidate>& all, const ConvolutionProblem& problem,
                               const DeviceDescription& device) const {
  select_small(all, gemm_.tiles(problem, device));
}

// The kernel treats every shape like one with several phases: it takes pixels image by image, and
// visits the taps that are inside the source for some pixel of the tile.
bool StandInGemmEngine::generalize(Proposal& proposal, const DeviceDescription& device) const {
  KernelSpec& kernel = proposal.first().kernel;
  pad_phases(kernel);
  pad_everywhere(kernel);
  kernel.clustered = device.largest_cluster > 1;
  for (const char* const name : {"FIXED", "WHOLE_K_TILES", "IMAGES_INNER", "FILTER_K_LINEAR"})
    set_constant(kernel, name, false);
  if (!constant<bool>(kernel, "LINES_ALONG_M")) set_constant(kernel, "OUTPUT_VECTOR", false);
  set_constant(kernel, "PHASE_TILES", std::int64_t{0});
  set_constant(kernel, "COLUMNS_TOGETHER", std::int64_t{1});
  set_constant(kernel, "PIXEL_LANES_ON_K", constant<bool>(kernel, "CHANNELS_INNER"));
  const bool wide = constant<TypeName>(kernel, "offset_t") != TypeName{"int"};
  set_constant(kernel, "pixel_offset_t", TypeName{wide ? "long long" : "unsigned"});
  set_constant(kernel, "out_offset_t", TypeName{"long long"});
  return make_late(proposal.first(), treat);
}

Refusal StandInWgradGemmEngine::refusal(const ConvolutionProblem&) const { return {}; }

void StandInWgradGemmEngine::select(std::vector<Candidate>& all, const ConvolutionProblem& problem,
                                    const DeviceDescription& device) const {
  select_small(all, gemm_.tiles(problem, device));
}

bool StandInWgradGemmEngine::generalize(Proposal& proposal, const DeviceDescription& device) const {
  pad_everywhere(proposal.first().kernel);
  proposal.first().kernel.clustered = device.largest_cluster > 1;
  // Masks of taps would cost a division by the dilation for each pixel.
  set_constant(proposal.first().kernel, "TAP_MASK", false);
  return make_late(proposal.first(), treat);
}

}  // namespace kiln
