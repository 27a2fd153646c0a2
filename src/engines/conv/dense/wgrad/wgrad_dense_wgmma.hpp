// Filter gradient on Hopper, with operands copied by TMA and multiplied by wgmma. Takes
// channels-last tensors of 16 bits or f32 (TF32, 3xTF32), and channels-first tensors of 16 bits or
// f32 in TF32 with a filter of one tap.
#pragma once

#include "engines/conv/dense/wgrad/wgrad_dense_tile.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

// `parts` blocks add up a tile's sums through shared memory; `groups` such clusters leave theirs in
// the workspace. Both are 1 for a persistent tile.
extern const Recipe<WgradDenseTile> wgrad_dense_nhwc_wgmma, wgrad_dense_nchw_wgmma;

// Whether the tile can serve the problem's layouts of dy and dw.
bool takes(const WgradDenseTile& tile, const ConvolutionProblem& problem, const Gather& gather);

}  // namespace kiln
