#include "engines/halo_gemm.hpp"

#include "core/text.hpp"
#include "engines/gemm_tile.hpp"

namespace kiln {
namespace {

constexpr std::int64_t vector_bytes = 16;

// Accumulators are 32 bits whatever the operands: sums of one product a lane's registers bear twice
// as many of as of three, which are promoted. The wider a step, the more products for each of its
// barriers and copies; the narrower, the more of the image has room.
constexpr HaloShape whole_shapes[] = {
    {128, 256, 8, 16, 4, 3, 1}, {128, 256, 8, 16, 2, 4, 1}, {128, 224, 8, 14, 4, 3, 1},
    {128, 192, 8, 12, 4, 3, 1}, {128, 192, 8, 12, 2, 4, 1}, {128, 128, 8, 8, 4, 2, 2},
    {128, 128, 8, 8, 2, 3, 2},  {96, 256, 6, 16, 4, 3, 1},  {96, 256, 6, 16, 2, 4, 1},
    {64, 256, 8, 8, 4, 3, 1},   {64, 256, 8, 8, 2, 4, 1},   {32, 256, 4, 8, 2, 4, 1},
    {128, 64, 8, 8, 2, 4, 2},   {64, 64, 4, 8, 2, 4, 2},
};
constexpr HaloShape split_shapes[] = {
    {128, 128, 8, 8, 4, 3, 1}, {128, 128, 8, 8, 2, 4, 1}, {96, 128, 6, 8, 4, 3, 1},
    {96, 128, 6, 8, 2, 4, 1},  {64, 128, 4, 8, 4, 3, 1},  {64, 128, 4, 8, 2, 4, 1},
    {32, 128, 4, 4, 2, 4, 1},  {128, 64, 8, 8, 4, 3, 2},  {128, 64, 8, 8, 2, 4, 2},
    {64, 64, 4, 8, 4, 3, 2},   {64, 64, 4, 8, 2, 4, 2},
};

}  // namespace

std::string HaloGemmEngine::refusal(const ConvolutionProblem& problem, const Gather& gather) const {
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

std::vector<HaloEngine::Shapes> HaloGemmEngine::shapes(const ConvolutionProblem& problem,
                                                       const Gather& /*gather*/) const {
  if (is_split(problem)) return {{split_shapes, 1}};
  return {{whole_shapes, 1}};
}

std::size_t HaloGemmEngine::alignment(const ConvolutionProblem& /*problem*/) const {
  return vector_bytes;
}

}  // namespace kiln
