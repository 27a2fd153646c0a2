// What a tensor map says of one tensor, as a plain value: a device encodes it into the 128 bytes
// that its copy engine reads (kernel_sources/cuda/bulk_copy.cuh).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kiln/kiln.h"

namespace kiln {

inline constexpr std::size_t tensor_map_bytes = 128, tensor_map_alignment = 64;

// Dimensions are innermost first; the innermost one's elements lie side by side. A copy moves a box
// of them, and reads zeros outside the tensor. Terms are those of cuTensorMapEncodeTiled and
// cuTensorMapEncodeIm2col.
struct TensorMapSpec {
  enum class Mode : std::uint8_t { tiled, im2col };

  Mode mode = Mode::tiled;
  kilnDataType_t type = KILN_DATA_HALF;
  int rank = 0;                                  // 2 to 5; im2col: 4, {C, W, H, N}
  std::array<std::int64_t, 5> sizes{};           // elements
  std::array<std::int64_t, 4> strides{};         // bytes, of all but the innermost; multiples of 16
  std::array<std::int64_t, 5> box{};             // tiled: elements. im2col: {channels, pixels}
  std::array<std::int64_t, 2> lower{}, upper{};  // im2col, {W, H}: of the first and last pixel's
                                                 // place, from the first and last place there is
  std::array<std::int64_t, 2> steps{1, 1};       // im2col, {W, H}: places from pixel to pixel
  bool swizzled = true;  // rows of the box have 128 bytes, whose 16-byte places are permuted

  // What one copy lands.
  std::int64_t box_elements() const {
    std::int64_t elements = 1;
    for (int i = 0; i < (mode == Mode::im2col ? 2 : rank); ++i) elements *= box[i];
    return elements;
  }
};

}  // namespace kiln
