#include "engines/conv/halo/nhwc_wgmma.hpp"

#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/vector_copies.hpp"

namespace kiln {
namespace {

// The more places, the more products for each element of the filter; a number of them between suits
// the multiprocessors, or images, better. The wider a step, the more products for each of its
// barriers and copies; the narrower, the longer the lines whose halo has room, and the fewer
// channels that are none.
constexpr LineShape line_shapes[] = {
    {128, 256, 4, 4, 1},    {128, 224, 4, 4, 1},    {128, 208, 4, 6, 1},    {128, 192, 4, 6, 1},
    {128, 176, 4, 6, 1},    {128, 168, 4, 6, 1},    {128, 160, 4, 6, 1},    {128, 128, 4, 6, 1},
    {64, 256, 4, 4, 1},     {64, 128, 4, 4, 2},     {128, 256, 2, 6, 1},    {128, 192, 2, 6, 1},
    {64, 256, 2, 4, 2},     {128, 256, 4, 4, 1, 1}, {128, 224, 4, 4, 1, 1}, {128, 192, 4, 4, 1, 1},
    {128, 256, 2, 6, 1, 1}, {128, 224, 2, 6, 1, 1}, {128, 192, 2, 6, 1, 1}, {64, 192, 4, 4, 1, 1},
};

}  // namespace

std::optional<Refusal> HaloWgmmaEngine::layout_refusal(const ConvolutionProblem& problem,
                                                       const Gather& gather) const {
  if (is_split(problem))
    return Refusal{"f32 in default math; this engine takes f16, bf16 and tf32 math"};
  return channels_last_refusal(problem, gather);
}

std::vector<LineEngine::Shapes> HaloWgmmaEngine::shapes(const ConvolutionProblem& /*problem*/,
                                                        const Gather& /*gather*/) const {
  return {{line_shapes, 1}};
}

std::size_t HaloWgmmaEngine::alignment(const ConvolutionProblem& /*problem*/) const {
  return copied_bytes;
}

}  // namespace kiln
