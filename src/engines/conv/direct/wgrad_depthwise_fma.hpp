// Filter gradient of channels-first tensors with few channels a group. A thread keeps the sums of
// all taps of a few rows of the filter in registers.
#pragma once

#include "engines/conv/filter_gradient/filter_gradient.hpp"

namespace kiln {

class WgradDepthwiseFmaEngine final : public FilterGradientEngine {
 public:
  WgradDepthwiseFmaEngine();
};

}  // namespace kiln
