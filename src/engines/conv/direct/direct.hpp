// One output a thread: the last engine for forward propagation and data gradient, which takes every
// legal problem.
#pragma once

#include <cstdint>

#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

struct DirectTile {
  std::int64_t image_outputs = 0;
};

extern const Recipe<DirectTile> direct_gather;

}  // namespace kiln
