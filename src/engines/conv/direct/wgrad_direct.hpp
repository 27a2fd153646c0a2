// A thread block for each element of dw: the last engine for filter gradients, which takes every
// legal problem.
#pragma once

#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

struct WgradDirectTile {};  // an element of dw

extern const Recipe<WgradDirectTile> wgrad_direct;

}  // namespace kiln
