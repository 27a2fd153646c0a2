// Forward propagation and data gradient on Hopper, with operands copied by TMA and multiplied by
// wgmma. Takes tensors of 16 bits, and of f32 in TF32, channels last or, with a filter of one tap,
// channels first. With channels last, forward the moments of the result too
// (conv/dense/epilogue/moments.hpp), and a normalization's gradient
// (conv/dense/epilogue/gradient.hpp).
#pragma once

#include "engines/conv/dense/dense_tile.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

extern const Recipe<DenseTile> dense_nhwc_wgmma, dense_nchw_wgmma;

}  // namespace kiln
