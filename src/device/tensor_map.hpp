// A tensor map as a plain value; a device encodes it into the 128 bytes that its copy engine (TMA)
// reads (kernel_sources/cuda/bulk_copy.cuh).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kiln/kiln.h"

namespace kiln {

inline constexpr std::size_t tensor_map_bytes = 128, tensor_map_alignment = 64;

// Dimensions are innermost first; the innermost one's elements are contiguous. A copy moves a box
// of elements, and reads zeros outside the tensor. Limits are those of cuTensorMapEncodeTiled and
// cuTensorMapEncodeIm2col.
struct TensorMapSpec {
  enum class Mode : std::uint8_t { tiled, im2col };

  Mode mode = Mode::tiled;
  kilnDataType_t type = KILN_DATA_HALF;
  int rank = 0;                           // 2 to 5; im2col: 4 or 5, {C, W, H, N} or {C, W, H, D, N}
  std::array<std::int64_t, 5> sizes{};    // elements
  std::array<std::int64_t, 4> strides{};  // bytes, of all but the innermost; multiples of 16
  std::array<std::int64_t, 5> box{};      // tiled: elements. im2col: {channels, pixels}
  std::array<std::int64_t, 3> lower{}, upper{};  // im2col, {W, H, D}: of the first and last pixel's
                                                 // place, from the first and last place there is
  std::array<std::int64_t, 3> steps{1, 1, 1};    // im2col, {W, H, D}: places from pixel to pixel
  bool swizzled = true;  // rows of the box, of 128, 64 or 32 bytes, have their places permuted

  // The dimensions of space of an im2col map, and the limits of its corners and of a copy's
  // offsets: the range of the copy engine's bits for each of them.
  int space() const { return rank - 2; }
  static constexpr std::int64_t most_offset(int space) { return space == 3 ? 31 : 255; }
  static constexpr std::int64_t most_corner(int space) { return most_offset(space) / 2; }

  // The elements that one copy transfers.
  std::int64_t box_elements() const {
    std::int64_t elements = 1;
    for (int i = 0; i < (mode == Mode::im2col ? 2 : rank); ++i) elements *= box[i];
    return elements;
  }
  friend bool operator==(const TensorMapSpec&, const TensorMapSpec&) = default;
};

}  // namespace kiln
