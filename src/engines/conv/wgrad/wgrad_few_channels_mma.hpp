// Filter gradient of layers that read or make an image: x or dy has few channels, of 16 bits or
// f32. The tensor cores' reduction runs over pixels. Tensors are NHWC or NCHW; an NCHW dy with few
// channels needs stride 1, because it is exchanged with x (exchanged_roles.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "engines/conv/filter_gradient/filter_gradient.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

// A block's share of a problem (kernel_sources/conv/wgrad/wgrad_few_channels_mma.cu).
struct FewChannelsGradientTile {
  FilterGradientTiles dw{};
  bool few_of_x = true;          // x has few channels; else dy has
  bool planar = false;           // NCHW
  std::int64_t element = 2;      // bytes of an element
  bool split = false;            // 3xTF32
  std::int64_t few = 0;          // channels of the operand with few
  std::int64_t many = 0;         // channels of the other operand, of a block
  std::int64_t filter_rows = 0;  // rows of the filter of a block
  std::int64_t p = 0, q = 0;     // rows and columns of pixels of dy in a stage
  int warps_m = 1, warps_n = 1, slices = 1;
  std::int64_t products_m = 0, products_n = 0;  // products of a warp in a step
  std::int64_t right_accesses = 1;              // wavefronts of a read of operand B
  std::int64_t copy_bytes = 0, many_copy = 16;  // bytes of a copy: few channels, many channels
  std::int64_t few_pitch = 0;                   // bytes of a row of the operand with few channels
  std::int64_t stage_bytes = 0, shared_memory = 0;

  std::int64_t step_pixels() const { return 32 / element; }
  int warps() const { return warps_m * warps_n * slices; }
};

extern const Recipe<FewChannelsGradientTile> wgrad_few_channels_mma;

std::string describe(const FewChannelsGradientTile& tile);

}  // namespace kiln
