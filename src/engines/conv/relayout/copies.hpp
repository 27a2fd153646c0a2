// Copies of tensors in the workspace, with channels last and possibly padded, and the steps that
// copy images from the caller's tensors to them and back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// A caller's tensor and its copy, which is [image][pixel][channel] without gaps. A filter's images
// are its output channels, its pixels the taps.
struct RelayoutTensor {
  // What the convolution uses it for: x or dy, a filter or bias, z, or the result.
  enum class Role { source, constant, residual, result };
  // What is contiguous in the caller's tensor: the pixels of a channel, or all channels of all
  // pixels.
  enum class Order { planes, rows };
  // Which pixels are copied: all of them, or those that a stride reaches. These are picked from a
  // tensor that is read, or spread over a result, whose other pixels become beta times their
  // previous values.
  enum class Pixels { all, picked, spread };

  std::uint8_t operand = 0;  // index into operands_of(problem)
  DataType type = KILN_DATA_FLOAT;
  Role role = Role::source;
  Order order = Order::planes;
  std::int64_t images = 0, channels = 0;
  std::int64_t copied_images = 0, copied_channels = 0;  // of the copy, with zeros as padding
  std::int64_t image_stride = 0, channel_stride = 0;    // of the caller's tensor, in elements
  Spatial row_strides{};                                // of D, H, W of the same, in elements
  std::int64_t span = 0;                                // of the caller's tensor, in elements
  Pixels pixels = Pixels::all;
  Spatial plane{1, 1, 1};   // {D, H, W} of the caller's tensor
  Spatial copied{1, 1, 1};  // {D, H, W} of the copy
  Spatial stride{1, 1, 1};  // pixels of the plane from one pixel of the copy to the next
  std::size_t cut = 0;      // dimension along which an image may be cut into rows
  std::size_t first = 0;    // byte of the workspace at which the copy begins
  bool already_copied = false;

  std::size_t row_bytes() const;  // of one row of an image of the copy
  std::size_t image_bytes() const { return row_bytes() * static_cast<std::size_t>(copied[cut]); }
  std::size_t bytes() const { return image_bytes() * static_cast<std::size_t>(copied_images); }
};

// Images of a tensor, or rows of one image.
struct RelayoutRange {
  std::int64_t first = 0, images = 0;
  // Rows of the copy along RelayoutTensor::cut: all of them, or of one image a range that may begin
  // before row 0 and end after the last row. Rows that the tensor lacks are zeros in the copy.
  std::int64_t row = 0, rows = 0;
  // Of part of an image: the planes outside of the cut, of each of which the range has these rows.
  std::int64_t planes = 1;

  std::size_t bytes(const RelayoutTensor& tensor) const {  // of the copy
    return tensor.row_bytes() * static_cast<std::size_t>(images * rows);
  }
};
// Whole images of a tensor, or of its copy, which may have more.
inline RelayoutRange whole_images(const RelayoutTensor& tensor, std::int64_t images) {
  return {.images = images, .rows = tensor.copied[tensor.cut]};
}

// What one launch does with a tensor: it copies a range of the copy out to the caller's tensor,
// then another one from there into the copy. With beta_only it copies it in only if beta is not 0.
struct RelayoutMove {
  const RelayoutTensor* tensor;
  RelayoutRange out{}, in{};
  bool beta_only = false;
};

inline constexpr std::size_t most_relayout_moves = 4;
// A launch with 1 to most_relayout_moves moves of tensors of one type. engine, tile: names of the
// kernel for people.
Step copies_step(std::span<const RelayoutMove> moves, const std::string& engine,
                 const std::string& tile);
// The estimated time of such a launch with beta 0.
double copies_seconds(std::span<const RelayoutMove> moves, const DeviceDescription& device);

// Where the operands of the copies' problem are when the caller's problem is executed.
struct RelayoutPlaces {
  struct Place {
    bool in_workspace = false;
    std::int64_t first = 0;  // byte of the workspace, or of the caller's tensor
  };
  std::vector<Place> operands;
  std::int64_t workspace = 0;  // byte at which the inner proposal's own workspace begins
};
// Appends the steps of a proposal for the copies' problem, with addresses changed to these places.
void append_relayout(StepList& list, const StepList& proposal, const RelayoutPlaces& places);
// A proposal that begins with a copy of one tensor into the workspace's first bytes, from which
// `second` reads it. operands: those of the whole.
Proposal behind_copy(const RelayoutTensor& tensor, const Proposal& second, std::size_t operands);
// Replaces alpha or beta of an execution by a fixed value.
void set_scalar(std::span<Step> steps, LaunchSpec::Hole hole, double value);

}  // namespace kiln
