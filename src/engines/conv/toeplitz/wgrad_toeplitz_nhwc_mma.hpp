// Filter gradient of depthwise convolutions with stride 1 and long filters, channels-last, 16 bits:
// the tensor cores multiply Toeplitz matrices made of rows of dy.
#pragma once

#include "engines/conv/filter_gradient/filter_gradient.hpp"

namespace kiln {

class WgradToeplitzNhwcMmaEngine final : public FilterGradientEngine {
 public:
  WgradToeplitzNhwcMmaEngine();
};

}  // namespace kiln
