// Filter gradient of channels-first tensors with few channels a group. A thread keeps the sums of
// all taps of a few rows of the filter in registers.
#pragma once

#include <cstdint>

#include "engines/conv/filter_gradient/filter_gradient.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

struct WgradDepthwiseFmaTile {
  FilterGradientTiles dw;
  std::int64_t run = 8;                   // contiguous pixels of a thread
  std::int64_t filter_rows = 0;           // rows of the filter of a block
  std::int64_t runs = 0, p = 0;           // runs in a tile's row, and rows of a tile
  std::int64_t units = 1;                 // tiles that a block computes at a time
  std::int64_t tiles_p = 0, tiles_q = 0;  // tiles in an image
  // Elements of an access: of a copy of x, a read of dy, and a read of shared memory.
  std::int64_t pack = 1, dy_pack = 1, read = 1;
  // Elements of x in a unit of shared memory, units from a thread's run to the next one's, elements
  // from a row to its neighbour, and from the units that threads read first to the next ones.
  std::int64_t unit = 1, lane_units = 1, pitch = 0, plane = 0;
  std::int64_t shift = 0;        // elements at the start of a row's first copy that no pixel needs
  std::int64_t row = 0;          // elements of a row of x that a thread holds
  std::int64_t patch_width = 0;  // elements of a row of x that a tile needs
  std::int64_t shared_memory = 0;
};

extern const Recipe<WgradDepthwiseFmaTile> wgrad_depthwise_fma;

}  // namespace kiln
