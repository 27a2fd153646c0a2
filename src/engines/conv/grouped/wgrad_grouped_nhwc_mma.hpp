// Filter gradient of channels-last tensors of 16 bits with at most 16 channels of x and of dy a
// group. The tensor cores multiply 8 channels of x by 8 of dy, with pixels as the reduction; only
// the products within a group are kept.
#pragma once

#include <cstdint>

#include "engines/conv/filter_gradient/filter_gradient.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

struct WgradGroupedNhwcMmaTile {
  FilterGradientTiles dw{};
  std::int64_t p = 0, q = 0;     // rows and columns of pixels of dy
  std::int64_t octets = 0;       // octets of channels of x
  std::int64_t dy_octets = 0;    // octets of channels of dy, of the same groups
  std::int64_t filter_rows = 0;  // rows of the filter
  std::int64_t pairs = 0;        // pairs of taps
  std::int64_t met = 0;          // octets of dy that share a group with an octet of x
  std::int64_t shared_memory = 0;
};

extern const Recipe<WgradGroupedNhwcMmaTile> wgrad_grouped_nhwc_mma;

}  // namespace kiln
