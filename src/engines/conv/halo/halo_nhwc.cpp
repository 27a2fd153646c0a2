#include "engines/conv/halo/halo_nhwc.hpp"

#include "engines/conv/halo/refusal.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/vector_copies.hpp"

namespace kiln {
namespace {

// Tiles of which two blocks share a multiprocessor.
constexpr HaloMmaShape two_blocks(HaloMmaShape shape) {
  shape.min_blocks = 2;
  return shape;
}

// Accumulators are 32 bits whatever the operands. 3xTF32 also keeps totals in registers, so its
// tiles are half as large. A wider step has more products for each barrier and copy; a narrower one
// leaves room for more of the image.
constexpr HaloMmaShape whole_shapes[] = {
    {.m = 128, .n = 256, .thread_m = 8, .thread_n = 16, .chunk_steps = 4, .stages = 3},
    {.m = 128, .n = 256, .thread_m = 8, .thread_n = 16, .chunk_steps = 2, .stages = 4},
    {.m = 128, .n = 224, .thread_m = 8, .thread_n = 14, .chunk_steps = 4, .stages = 3},
    {.m = 128, .n = 192, .thread_m = 8, .thread_n = 12, .chunk_steps = 4, .stages = 3},
    {.m = 128, .n = 192, .thread_m = 8, .thread_n = 12, .chunk_steps = 2, .stages = 4},
    two_blocks({.m = 128, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 4}),
    two_blocks({.m = 128, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 2, .stages = 3}),
    {.m = 96, .n = 256, .thread_m = 6, .thread_n = 16, .chunk_steps = 4, .stages = 3},
    {.m = 96, .n = 256, .thread_m = 6, .thread_n = 16, .chunk_steps = 2, .stages = 4},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 8, .chunk_steps = 4, .stages = 3},
    {.m = 64, .n = 256, .thread_m = 8, .thread_n = 8, .chunk_steps = 2, .stages = 4},
    {.m = 32, .n = 256, .thread_m = 4, .thread_n = 8, .chunk_steps = 2, .stages = 4},
    two_blocks({.m = 128, .n = 64, .thread_m = 8, .thread_n = 8, .chunk_steps = 2, .stages = 4}),
    two_blocks({.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .chunk_steps = 2, .stages = 4}),
};
constexpr HaloMmaShape split_shapes[] = {
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 4, .stages = 3},
    {.m = 128, .n = 128, .thread_m = 8, .thread_n = 8, .chunk_steps = 2, .stages = 4},
    {.m = 96, .n = 128, .thread_m = 6, .thread_n = 8, .chunk_steps = 4, .stages = 3},
    {.m = 96, .n = 128, .thread_m = 6, .thread_n = 8, .chunk_steps = 2, .stages = 4},
    {.m = 64, .n = 128, .thread_m = 4, .thread_n = 8, .chunk_steps = 4, .stages = 3},
    {.m = 64, .n = 128, .thread_m = 4, .thread_n = 8, .chunk_steps = 2, .stages = 4},
    {.m = 32, .n = 128, .thread_m = 4, .thread_n = 4, .chunk_steps = 2, .stages = 4},
    two_blocks({.m = 128, .n = 64, .thread_m = 8, .thread_n = 8, .chunk_steps = 4, .stages = 3}),
    two_blocks({.m = 128, .n = 64, .thread_m = 8, .thread_n = 8, .chunk_steps = 2, .stages = 4}),
    two_blocks({.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .chunk_steps = 4, .stages = 3}),
    two_blocks({.m = 64, .n = 64, .thread_m = 4, .thread_n = 8, .chunk_steps = 2, .stages = 4}),
};

// A warpgroup computes all rows for 64 or 128 pixels.
constexpr HaloMmaShape warpgroup_shapes[] = {
    split_warpgroup_shape({.m = 64, .n = 256, .thread_n = 4, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 64, .n = 256, .thread_n = 4, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 48, .n = 384, .thread_n = 4, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 48, .n = 384, .thread_n = 4, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 48, .n = 256, .thread_n = 4, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 48, .n = 256, .thread_n = 4, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 64, .n = 192, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 64, .n = 192, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 128, .n = 128, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 128, .n = 128, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 96, .n = 128, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 96, .n = 128, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 64, .n = 128, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 64, .n = 128, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 48, .n = 128, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 48, .n = 128, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
    split_warpgroup_shape({.m = 32, .n = 128, .thread_n = 2, .chunk_steps = 4, .stages = 4}),
    split_warpgroup_shape({.m = 32, .n = 128, .thread_n = 2, .chunk_steps = 2, .stages = 5}),
};

}  // namespace

Refusal HaloNhwcMmaEngine::layout_refusal(const ConvolutionProblem& problem,
                                          const Gather& gather) const {
  if (auto refused = matrices_refusal(problem)) return refused;
  return channels_last_refusal(problem, gather);
}

std::vector<HaloMmaEngine::Shapes> HaloNhwcMmaEngine::shapes(const ConvolutionProblem& problem,
                                                             const Gather& /*gather*/) const {
  if (is_split(problem)) return {{split_shapes, 1}};
  return {{whole_shapes, 1}};
}

std::size_t HaloNhwcMmaEngine::alignment(const ConvolutionProblem& /*problem*/) const {
  return copied_bytes;
}

Refusal HaloNhwcWgmmaSwapEngine::layout_refusal(const ConvolutionProblem& problem,
                                                const Gather& gather) const {
  if (!is_split(problem))
    return Refusal{"not f32 in default math, which alone is split into three products"};
  return channels_last_refusal(problem, gather);
}

Refusal HaloNhwcWgmmaSwapEngine::products_refusal(const DeviceDescription& device) const {
  return warpgroup_refusal(device);
}

std::vector<HaloMmaEngine::Shapes> HaloNhwcWgmmaSwapEngine::shapes(
    const ConvolutionProblem& /*problem*/, const Gather& /*gather*/) const {
  return {{warpgroup_shapes, 1}};
}

std::size_t HaloNhwcWgmmaSwapEngine::alignment(const ConvolutionProblem& /*problem*/) const {
  return copied_bytes;
}

}  // namespace kiln
