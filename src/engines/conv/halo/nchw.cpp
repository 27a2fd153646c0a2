#include "engines/conv/halo/nchw.hpp"

#include "core/text.hpp"
#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

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

// An element takes twice the room, and a sum two registers: several blocks of four warps share a
// multiprocessor, or one of eight has its room.
constexpr HaloShape double_shapes[] = {
    {128, 128, 8, 8, 1, 2, 1}, {64, 256, 8, 8, 1, 2, 1}, {64, 128, 8, 8, 1, 2, 2},
    {64, 128, 8, 8, 2, 2, 1},  {48, 128, 6, 8, 1, 2, 2}, {64, 64, 4, 8, 1, 2, 3},
    {32, 256, 4, 8, 1, 2, 2},  {32, 128, 4, 8, 1, 2, 3},
};

std::span<const HaloShape> shapes_of(const ConvolutionProblem& problem) {
  if (problem.type == KILN_DATA_DOUBLE) return double_shapes;
  return is_split(problem) ? std::span<const HaloShape>(split_shapes) : whole_shapes;
}

// A warpgroup has all rows of 64 or 128 pixels.
constexpr HaloShape whole_warpgroup_shapes[] = {
    {128, 256, 32, 4, 1, 2, 1, true}, {128, 128, 32, 2, 1, 2, 1, true},
    {96, 256, 24, 4, 1, 2, 1, true},  {64, 384, 16, 4, 1, 2, 1, true},
    {64, 256, 16, 4, 1, 2, 1, true},  {64, 256, 16, 4, 2, 2, 1, true},
    {48, 128, 12, 2, 2, 2, 1, true},
};
constexpr HaloShape split_warpgroup_shapes[] = {
    {64, 256, 16, 4, 1, 2, 1, true, true},  {64, 256, 16, 4, 2, 2, 1, true, true},
    {48, 384, 12, 4, 1, 2, 1, true, true},  {64, 128, 16, 2, 1, 2, 1, true, true},
    {64, 128, 16, 2, 2, 2, 1, true, true},  {96, 128, 24, 2, 1, 2, 1, true, true},
    {48, 128, 12, 2, 1, 2, 1, true, true},  {48, 128, 12, 2, 2, 2, 1, true, true},
    {128, 128, 32, 2, 1, 2, 1, true, true}, {32, 128, 8, 2, 2, 2, 1, true, true},
    {48, 256, 12, 4, 1, 2, 1, true, true},  {48, 256, 12, 4, 2, 2, 1, true, true},
    {64, 192, 16, 2, 1, 2, 1, true, true},  {64, 192, 16, 2, 2, 2, 1, true, true},
};

}  // namespace

std::optional<Refusal> HaloGemmPlanarEngine::layout_refusal(const ConvolutionProblem& problem,
                                                            const Gather& gather) const {
  return planar_refusal(problem, gather, most_taps);
}

std::vector<HaloEngine::Shapes> HaloGemmPlanarEngine::shapes(const ConvolutionProblem& problem,
                                                             const Gather& gather) const {
  std::vector<Shapes> all;
  for (const int group : tap_groups(gather, most_taps)) all.push_back({shapes_of(problem), group});
  return all;
}

std::size_t HaloGemmPlanarEngine::alignment(const ConvolutionProblem& problem) const {
  return size_of(problem.type);
}

std::optional<Refusal> HaloGemmPlanarWgmmaEngine::layout_refusal(const ConvolutionProblem& problem,
                                                                 const Gather& gather) const {
  if (size_of(problem.type) != 4)
    return Refusal{cat("the data type is ", name_of(problem.type), "; expected f32")};
  return planar_refusal(problem, gather, most_taps);
}

std::optional<Refusal> HaloGemmPlanarWgmmaEngine::products_refusal(
    const DeviceDescription& device) const {
  return warpgroup_refusal(device);
}

std::vector<HaloEngine::Shapes> HaloGemmPlanarWgmmaEngine::shapes(const ConvolutionProblem& problem,
                                                                  const Gather& gather) const {
  std::vector<Shapes> all;
  for (const int group : tap_groups(gather, most_taps))
    all.push_back({is_split(problem) ? std::span<const HaloShape>(split_warpgroup_shapes)
                                     : whole_warpgroup_shapes,
                   group});
  return all;
}

std::size_t HaloGemmPlanarWgmmaEngine::alignment(const ConvolutionProblem& problem) const {
  return size_of(problem.type);
}

}  // namespace kiln
