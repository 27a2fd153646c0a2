// Filter gradient of channels-last tensors of 16 bits with at most 16 channels of x and of dy a
// group. The tensor cores multiply 8 channels of x by 8 of dy, with pixels as the reduction; only
// the products within a group are kept.
#pragma once

#include "engines/conv/filter_gradient/filter_gradient.hpp"

namespace kiln {

class WgradGroupedNhwcMmaEngine final : public FilterGradientEngine {
 public:
  WgradGroupedNhwcMmaEngine();
};

}  // namespace kiln
