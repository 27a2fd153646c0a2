#include "engines/halo_gemm_planar.hpp"

#include "core/text.hpp"
#include "engines/gemm_tile.hpp"

namespace kiln {
namespace {

// Steps of 32 or 64 bytes of channels, for a stage holds the taps of a whole group. Elements of the
// filter are gathered once for a tile's pixels, those of the source once for all taps: tiles are
// wide.
constexpr HaloShape whole_shapes[] = {
    {64, 512, 8, 16, 2, 2, 1},  {64, 512, 8, 16, 1, 2, 1},  {128, 256, 8, 16, 2, 2, 1},
    {128, 256, 8, 16, 1, 2, 1}, {128, 192, 8, 12, 2, 2, 1}, {128, 192, 8, 12, 1, 2, 1},
    {96, 256, 6, 16, 2, 2, 1},  {96, 256, 6, 16, 1, 2, 1},  {64, 256, 8, 8, 2, 2, 1},
    {64, 256, 8, 8, 1, 2, 1},   {32, 256, 4, 8, 2, 2, 1},   {32, 256, 4, 8, 1, 2, 1},
};
constexpr HaloShape split_shapes[] = {
    {64, 256, 8, 8, 2, 2, 1},  {64, 256, 8, 8, 1, 2, 1}, {128, 128, 8, 8, 2, 2, 1},
    {128, 128, 8, 8, 1, 2, 1}, {96, 128, 6, 8, 2, 2, 1}, {96, 128, 6, 8, 1, 2, 1},
    {64, 128, 4, 8, 2, 2, 1},  {64, 128, 4, 8, 1, 2, 1}, {32, 256, 4, 8, 2, 2, 1},
    {32, 256, 4, 8, 1, 2, 1},  {32, 128, 4, 4, 2, 2, 1}, {32, 128, 4, 4, 1, 2, 1},
};

// How many taps a stage of the filter may hold: of one channel they lie side by side, all or those
// of a row. None if the filter lies otherwise.
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

}  // namespace

std::string HaloGemmPlanarEngine::refusal(const ConvolutionProblem& problem,
                                          const Gather& gather) const {
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

std::vector<HaloEngine::Shapes> HaloGemmPlanarEngine::shapes(const ConvolutionProblem& problem,
                                                             const Gather& gather) const {
  std::vector<Shapes> all;
  for (const int group : tap_groups(gather))
    all.push_back(
        {is_split(problem) ? std::span<const HaloShape>(split_shapes) : whole_shapes, group});
  return all;
}

std::size_t HaloGemmPlanarEngine::alignment(const ConvolutionProblem& problem) const {
  return size_of(problem.type);
}

}  // namespace kiln
