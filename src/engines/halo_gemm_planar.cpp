#include "engines/halo_gemm_planar.hpp"

#include "core/text.hpp"
#include "engines/halo_proposal.hpp"

namespace kiln {
namespace {

// A step of 32 bytes of channels, for a stage holds the taps of a whole group. Elements of the
// filter are gathered once for a tile's pixels, those of the source once for all taps: tiles are
// wide.
constexpr HaloShape shapes[] = {
    {64, 512, 8, 16, 1, 2, 1, true},  {128, 256, 8, 16, 1, 2, 1, true},
    {128, 192, 8, 12, 1, 2, 1, true}, {96, 256, 6, 16, 1, 2, 1, true},
    {64, 256, 8, 8, 1, 2, 1, true},   {32, 256, 4, 8, 1, 2, 1, true},
};
constexpr HaloShape split_shapes[] = {
    {64, 256, 8, 8, 1, 2, 1, true}, {128, 128, 8, 8, 1, 2, 1, true}, {64, 128, 4, 8, 1, 2, 1, true},
    {32, 256, 4, 8, 1, 2, 1, true}, {32, 128, 4, 4, 1, 2, 1, true},
};

std::string refusal(const ConvolutionProblem& problem, const Gather& gather) {
  const Gather::Phase& phase = gather.phases.front();
  if (phase.tap_count() == 1) return "a filter of one tap, of which nothing is read twice";
  if (gather.source_strides[4] != 1) return "the pixels of a row do not lie side by side";
  const std::int64_t chunk = 32 / static_cast<std::int64_t>(size_of(problem.type));
  if (const std::int64_t idle = (chunk - gather.channels % chunk) % chunk;
      idle * 3 > gather.channels)
    return cat(gather.channels, " channels a group; they are multiplied ", chunk, " at a time");
  if (tap_groups(gather).empty()) return "few taps lie side by side in the filter";
  return "";
}

}  // namespace

std::span<const HaloShape> planar_halo_shapes(const ConvolutionProblem& problem) {
  if (halo_splits(problem)) return split_shapes;
  return shapes;
}

std::vector<int> tap_groups(const Gather& gather) {
  const Spatial& taps = gather.phases.front().taps;
  std::vector<int> groups;
  constexpr std::int64_t most = 16;
  const bool rows_follow = gather.w_tap[1] == taps[2] || taps[1] == 1;
  if (taps[1] * taps[2] <= most && rows_follow && (gather.w_tap[2] == 1 || taps[2] == 1))
    groups.push_back(static_cast<int>(taps[1] * taps[2]));
  if (taps[2] > 1 && taps[2] <= most && taps[1] > 1 && gather.w_tap[2] == 1)
    groups.push_back(static_cast<int>(taps[2]));
  return groups;
}

bool HaloGemmPlanarEngine::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return convolution != nullptr && convolution->pass != ConvolutionPass::wgrad;
}

std::vector<HaloTile> planar_halo_tiles(const ConvolutionProblem& problem, const Gather& gather,
                                        const DeviceDescription& device) {
  std::vector<HaloTile> tiles;
  for (const int group : tap_groups(gather))
    add_halo_tiles(tiles, planar_halo_shapes(problem), group, problem, gather, device);
  return tiles;
}

std::variant<std::vector<Candidate>, Refusal> HaloGemmPlanarEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (std::string reason = halo_refusal(problem, gather, device); !reason.empty())
    return Refusal{std::move(reason)};
  if (std::string reason = refusal(problem, gather); !reason.empty())
    return Refusal{std::move(reason)};
  return halo_candidates(planar_halo_tiles(problem, gather, device), problem, gather, device);
}

Proposal HaloGemmPlanarEngine::make(const Problem& any, const DeviceDescription& device,
                                    Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  const std::vector<HaloTile> tiles = planar_halo_tiles(problem, gather, device);
  return propose_halo(name(), size_of(problem.type),
                      tiles.at(static_cast<std::size_t>(candidate.kernel)), problem, gather,
                      candidate.parts);
}

}  // namespace kiln
