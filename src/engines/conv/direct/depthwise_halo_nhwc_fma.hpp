// Depthwise forward propagation and data gradient of stride 1, channels-last. TMA copies halos to
// shared memory; threads walk down their rows and keep the sums in registers.
#pragma once

#include <cstdint>

#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

// Rows and columns of pixels of a thread, and the most pairs of channels of a block.
struct DepthwiseHaloShape {
  std::int64_t p = 0, q = 0, lanes = 0;
};

// A shape laid on a problem.
struct DepthwiseHaloTile {
  DepthwiseHaloShape shape;
  std::int64_t lanes = 0, columns = 0, strips = 0;  // threads of a block
  std::int64_t tiles_p = 0, tiles_q = 0;            // of an image
  std::int64_t channel_tiles = 0;
  bool weights_kept = false;  // in registers
  std::int64_t registers = 0, shared_memory = 0, resident = 0;

  std::int64_t image_tiles() const { return tiles_p * tiles_q; }
  std::int64_t threads() const { return lanes * columns * strips; }
};

extern const Recipe<DepthwiseHaloTile> depthwise_halo_nhwc_fma;

}  // namespace kiln
