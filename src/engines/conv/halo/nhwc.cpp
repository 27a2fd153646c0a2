#include "engines/conv/halo/nhwc.hpp"

#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/vector_copies.hpp"

namespace kiln {
namespace {

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

// A warpgroup has all rows of 64 or 128 pixels.
constexpr HaloShape warpgroup_shapes[] = {
    {64, 256, 16, 4, 4, 4, 1, true, true},  {64, 256, 16, 4, 2, 5, 1, true, true},
    {48, 384, 12, 4, 4, 4, 1, true, true},  {48, 384, 12, 4, 2, 5, 1, true, true},
    {48, 256, 12, 4, 4, 4, 1, true, true},  {48, 256, 12, 4, 2, 5, 1, true, true},
    {64, 192, 16, 2, 4, 4, 1, true, true},  {64, 192, 16, 2, 2, 5, 1, true, true},
    {128, 128, 32, 2, 4, 4, 1, true, true}, {128, 128, 32, 2, 2, 5, 1, true, true},
    {96, 128, 24, 2, 4, 4, 1, true, true},  {96, 128, 24, 2, 2, 5, 1, true, true},
    {64, 128, 16, 2, 4, 4, 1, true, true},  {64, 128, 16, 2, 2, 5, 1, true, true},
    {48, 128, 12, 2, 4, 4, 1, true, true},  {48, 128, 12, 2, 2, 5, 1, true, true},
    {32, 128, 8, 2, 4, 4, 1, true, true},   {32, 128, 8, 2, 2, 5, 1, true, true},
};

}  // namespace

std::optional<Refusal> HaloGemmEngine::layout_refusal(const ConvolutionProblem& problem,
                                                      const Gather& gather) const {
  if (auto refused = matrices_refusal(problem)) return refused;
  return channels_last_refusal(problem, gather);
}

std::vector<HaloEngine::Shapes> HaloGemmEngine::shapes(const ConvolutionProblem& problem,
                                                       const Gather& /*gather*/) const {
  if (is_split(problem)) return {{split_shapes, 1}};
  return {{whole_shapes, 1}};
}

std::size_t HaloGemmEngine::alignment(const ConvolutionProblem& /*problem*/) const {
  return copied_bytes;
}

std::optional<Refusal> HaloGemmWgmmaEngine::layout_refusal(const ConvolutionProblem& problem,
                                                           const Gather& gather) const {
  if (!is_split(problem))
    return Refusal{"not f32 in default math, which alone is split into three products"};
  return channels_last_refusal(problem, gather);
}

std::optional<Refusal> HaloGemmWgmmaEngine::products_refusal(
    const DeviceDescription& device) const {
  return warpgroup_refusal(device);
}

std::vector<HaloEngine::Shapes> HaloGemmWgmmaEngine::shapes(const ConvolutionProblem& /*problem*/,
                                                            const Gather& /*gather*/) const {
  return {{warpgroup_shapes, 1}};
}

std::size_t HaloGemmWgmmaEngine::alignment(const ConvolutionProblem& /*problem*/) const {
  return copied_bytes;
}

}  // namespace kiln
