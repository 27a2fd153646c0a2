// Few images of one pixel by a filter of one tap, channels contiguous: few rows times the weights
// of a linear layer, which are read once.
#pragma once

#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

struct FewRowsTile {
  int rows = 8;  // the most that the kernel takes
  int left = 1;  // 16 filters each, of a block
};

extern const Recipe<FewRowsTile> few_rows_mma, few_rows_fma;

}  // namespace kiln
