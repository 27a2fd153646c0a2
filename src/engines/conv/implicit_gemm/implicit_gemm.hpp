// Forward propagation and data gradient as an implicit matrix product, on the tensor cores and on
// the FMA units.
#pragma once

#include "engines/conv/recipe/recipe.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {

extern const Recipe<GemmTile> implicit_gemm_mma, implicit_gemm_fma;

}  // namespace kiln
