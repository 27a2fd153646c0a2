#include "engines/halo_gemm.hpp"

#include "core/text.hpp"
#include "engines/halo_proposal.hpp"

namespace kiln {
namespace {

constexpr std::int64_t vector_bytes = 16;

// Accumulators are 32 bits whatever the operands: sums of one product a lane's registers bear twice
// as many of as of three, which are promoted.
constexpr HaloShape shapes[] = {
    {128, 256, 8, 16, 2, 4, 1, true}, {128, 192, 8, 12, 2, 4, 1, true},
    {128, 128, 8, 8, 2, 3, 2, true},  {96, 256, 6, 16, 2, 4, 1, true},
    {64, 256, 8, 8, 2, 4, 1, true},   {32, 256, 4, 8, 2, 4, 1, true},
    {128, 64, 8, 8, 2, 4, 2, true},   {64, 64, 4, 8, 2, 4, 2, true},
};
constexpr HaloShape split_shapes[] = {
    {128, 128, 8, 8, 2, 4, 1, true}, {96, 128, 6, 8, 2, 4, 1, true}, {64, 128, 4, 8, 2, 4, 1, true},
    {32, 128, 4, 4, 2, 4, 1, true},  {128, 64, 8, 8, 2, 4, 2, true}, {64, 64, 4, 8, 2, 4, 2, true},
};

std::string refusal(const ConvolutionProblem& problem, const Gather& gather) {
  if (problem.alignment < vector_bytes)
    return cat("operands aligned to ", problem.alignment, " bytes; ", vector_bytes,
               " are copied at a time");
  const std::int64_t vector = vector_bytes / static_cast<std::int64_t>(size_of(problem.type));
  const auto whole = [&](std::int64_t stride) { return stride % vector == 0; };
  if (gather.channels % vector != 0)
    return cat(gather.channels, " channels a group; multiples of ", vector, " are copied");
  const Dims& source = gather.source_strides;
  if (source[1] != 1) return "the channels of a pixel do not lie side by side";
  if (!whole(source[0]) || !whole(source[3]) || !whole(source[4]))
    return cat("pixels do not begin at multiples of ", vector_bytes, " bytes");
  const bool taps_whole = whole(gather.w_tap[1]) && whole(gather.w_tap[2]) &&
                          whole(gather.w_group) && whole(gather.phases.front().w_first);
  const bool channels_inner = gather.w_channel == 1 && whole(gather.w_row) && taps_whole;
  const bool rows_inner =
      gather.w_row == 1 && whole(gather.w_channel) && taps_whole && whole(gather.rows);
  if (!channels_inner && !rows_inner)
    return cat("neither channels nor filters lie side by side, in multiples of ", vector_bytes,
               " bytes, in the filter");
  return "";
}

}  // namespace

std::span<const HaloShape> halo_shapes(const ConvolutionProblem& problem) {
  if (halo_splits(problem)) return split_shapes;
  return shapes;
}

bool HaloGemmEngine::is_for(const Problem& problem) const {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  return convolution != nullptr && convolution->pass != ConvolutionPass::wgrad;
}

std::vector<HaloTile> channels_last_halo_tiles(const ConvolutionProblem& problem,
                                               const Gather& gather,
                                               const DeviceDescription& device) {
  std::vector<HaloTile> tiles;
  add_halo_tiles(tiles, halo_shapes(problem), 1, problem, gather, device);
  return tiles;
}

std::variant<std::vector<Candidate>, Refusal> HaloGemmEngine::candidates(
    const Problem& any, const DeviceDescription& device) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  if (std::string reason = halo_refusal(problem, gather, device); !reason.empty())
    return Refusal{std::move(reason)};
  if (std::string reason = refusal(problem, gather); !reason.empty())
    return Refusal{std::move(reason)};
  return halo_candidates(channels_last_halo_tiles(problem, gather, device), problem, gather,
                         device);
}

Proposal HaloGemmEngine::make(const Problem& any, const DeviceDescription& device,
                              Candidate candidate) const {
  const auto& problem = std::get<ConvolutionProblem>(any);
  const Gather gather = make_gather(problem);
  const std::vector<HaloTile> tiles = channels_last_halo_tiles(problem, gather, device);
  return propose_halo(name(), vector_bytes, tiles.at(static_cast<std::size_t>(candidate.kernel)),
                      problem, gather, candidate.parts);
}

}  // namespace kiln
