// Filter gradient of channels-last tensors with few channels a group. A thread keeps the sums of
// all taps of a few rows of the filter in registers; with workspace, all blocks of the chip share
// the pixels.
#pragma once

#include "engines/conv/filter_gradient/filter_gradient.hpp"

namespace kiln {

class WgradDepthwiseNhwcFmaEngine final : public FilterGradientEngine {
 public:
  WgradDepthwiseNhwcFmaEngine();
};

}  // namespace kiln
