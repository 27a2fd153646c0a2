// Depthwise forward propagation and data gradient of stride 1 of channels-last tensors of 16 bits,
// by long filters: products of Toeplitz matrices on the tensor cores.
#pragma once

#include <cstdint>

#include "engines/conv/gather.hpp"
#include "engines/conv/recipe/recipe.hpp"
#include "engines/engine.hpp"

namespace kiln {

// The reason, a clause, why a depthwise convolution (any pass) cannot be computed by Toeplitz
// products; "" if it can.
Refusal toeplitz_refusal(const ConvolutionProblem& problem, const Gather& gather,
                         const DeviceDescription& device);

// A block's tile of pixels, in units of 8 rows and of 16 columns.
struct ToeplitzShape {
  std::int64_t rows = 0, columns = 0;
};

// A shape laid on a problem.
struct ToeplitzTile {
  ToeplitzShape shape;
  std::int64_t halo_columns = 0, halo_rows = 0, boxes = 0;
  std::int64_t weight_tiles = 0;  // tiles of 16 source columns that a row of the filter reads
  std::int64_t tiles_p = 0, tiles_q = 0;  // of an image
  std::int64_t shared_memory = 0;

  std::int64_t image_tiles() const { return tiles_p * tiles_q; }
};

extern const Recipe<ToeplitzTile> toeplitz_nhwc_mma;

}  // namespace kiln
