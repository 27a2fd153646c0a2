// Forward propagation and data gradient of stride 1 on Hopper: channels-last tensors of 16 bits or
// f32 in TF32. All taps of the filter read one halo in shared memory.
#pragma once

#include <cstdint>

#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

// A tile of 64 rows (filters) by a patch of pixels, 8 columns wide, laid on a problem.
struct DensePatch {
  std::int64_t rows = 0;                             // of pixels
  std::int64_t halo_columns = 0, halo_rows = 0;      // of source pixels
  std::int64_t filter_slots = 0, shared_memory = 0;  // bytes

  int pixels() const { return static_cast<int>(rows) * 8; }
};

extern const Recipe<DensePatch> dense_halo_nhwc_wgmma;

}  // namespace kiln
