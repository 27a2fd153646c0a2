// Filter gradient of channels-last tensors of 16 bits with 1, 2, 4 or 8 channels a group. Warps
// walk down the rows of x and multiply on the tensor cores, with pixels as the reduction.
#pragma once

#include "engines/conv/filter_gradient/filter_gradient.hpp"

namespace kiln {

class WgradDepthwiseNhwcMmaEngine final : public FilterGradientEngine {
 public:
  WgradDepthwiseNhwcMmaEngine();
};

}  // namespace kiln
