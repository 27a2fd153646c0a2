// Filter gradient of depthwise convolutions with stride 1 and long filters, channels-last, 16 bits:
// the tensor cores multiply Toeplitz matrices made of rows of dy.
#pragma once

#include <cstdint>

#include "engines/conv/filter_gradient/filter_gradient.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

struct WgradToeplitzNhwcMmaTile {
  FilterGradientTiles dw{};
  std::int64_t p = 0, columns = 0;  // rows of dy, and columns of dy in units of 16
  std::int64_t shared_memory = 0;
};

extern const Recipe<WgradToeplitzNhwcMmaTile> wgrad_toeplitz_nhwc_mma;

}  // namespace kiln
