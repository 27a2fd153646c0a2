#include "engines/halo_gemm_planar.hpp"

#include "engines/gemm_tile.hpp"
#include "engines/halo_refusal.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_taps = 16;  // in a stage

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

}  // namespace

std::string HaloGemmPlanarEngine::layout_refusal(const ConvolutionProblem& problem,
                                                 const Gather& gather) const {
  return planar_refusal(problem, gather, most_taps);
}

std::vector<HaloEngine::Shapes> HaloGemmPlanarEngine::shapes(const ConvolutionProblem& problem,
                                                             const Gather& gather) const {
  std::vector<Shapes> all;
  for (const int group : tap_groups(gather, most_taps))
    all.push_back(
        {is_split(problem) ? std::span<const HaloShape>(split_shapes) : whole_shapes, group});
  return all;
}

std::size_t HaloGemmPlanarEngine::alignment(const ConvolutionProblem& problem) const {
  return size_of(problem.type);
}

}  // namespace kiln
