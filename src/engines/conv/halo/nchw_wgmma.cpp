#include "engines/conv/halo/nchw_wgmma.hpp"

#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

constexpr std::int64_t most_taps = 16;  // in a stage

// Elements of the filter are gathered once for a tile's pixels, so tiles are wide, and warpgroups
// share 64 rows; the more of them, the more threads gather.
constexpr LineShape whole_shapes[] = {
    {64, 576, 2, 2, 1, 0, 3},  {64, 576, 1, 2, 1, 0, 3}, {64, 512, 2, 2, 1, 0, 4},
    {64, 512, 2, 2, 1, 0, 2},  {64, 512, 1, 2, 1, 0, 2}, {128, 256, 2, 2, 1, 0, 2},
    {128, 256, 1, 2, 1, 0, 2}, {64, 384, 2, 2, 1, 0, 4}, {64, 384, 2, 2, 1, 0, 2},
    {64, 256, 2, 2, 1, 0, 2},  {64, 256, 1, 2, 2},       {64, 448, 2, 2, 1, 1, 4},
    {64, 448, 2, 2, 1, 1, 2},  {64, 512, 2, 2, 1, 2, 2}, {64, 576, 2, 2, 1, 3, 3},
};
// Sums are held twice, in registers: fewer columns a warpgroup.
constexpr LineShape split_shapes[] = {
    {64, 384, 1, 2, 1, 0, 2, true}, {64, 320, 2, 2, 1, 0, 2, true},
    {64, 320, 1, 2, 1, 0, 2, true}, {64, 256, 2, 2, 1, 0, 2, true},
    {64, 256, 1, 2, 1, 0, 2, true}, {128, 192, 1, 2, 1, 0, 1, true},
    {64, 288, 2, 2, 1, 0, 3, true}, {64, 288, 1, 2, 1, 0, 3, true},
    {64, 128, 1, 2, 2, 0, 1, true}, {128, 192, 1, 2, 1, 1, 1, true},
    {64, 224, 1, 2, 1, 1, 2, true}, {64, 384, 1, 2, 1, 2, 2, true},
    {64, 288, 1, 2, 1, 3, 3, true},
};

}  // namespace

std::optional<Refusal> HaloWgmmaPlanarEngine::layout_refusal(const ConvolutionProblem& problem,
                                                             const Gather& gather) const {
  return planar_refusal(problem, gather, most_taps);
}

std::vector<LineEngine::Shapes> HaloWgmmaPlanarEngine::shapes(const ConvolutionProblem& problem,
                                                              const Gather& gather) const {
  std::vector<Shapes> all;
  for (const int group : tap_groups(gather, most_taps))
    all.push_back(
        {is_split(problem) ? std::span<const LineShape>(split_shapes) : whole_shapes, group});
  return all;
}

std::size_t HaloWgmmaPlanarEngine::alignment(const ConvolutionProblem& problem) const {
  return size_of(problem.type);
}

}  // namespace kiln
