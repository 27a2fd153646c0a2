// Tensors and their copies in the workspace with channels last, which may have more channels: the
// steps that bring images from the one to the other.
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

// A tensor of the caller's and its copy, [image][pixel][channel] without gaps. Of a filter images
// are the filters and pixels the taps.
struct RelaidTensor {
  // What it is to the convolution.
  enum class Role { source, constant, residual, result };
  // What lies side by side: the pixels of a channel, or all channels of all pixels.
  enum class Order { planes, rows };
  // Which pixels the copy has: all of the plane; or those that a stride leaves, of a tensor that is
  // read or of a result, whose others are what beta makes of them.
  enum class Pixels { all, picked, spread };

  std::uint8_t operand = 0;  // number among the problem's
  DataType type = KILN_DATA_FLOAT;
  Role role = Role::source;
  Order order = Order::planes;
  std::int64_t images = 0, channels = 0;
  std::int64_t copied_images = 0, copied_channels = 0;  // of the copy, which has zeros for the rest
  std::int64_t image_stride = 0, channel_stride = 0;    // of the caller's, elements
  std::int64_t span = 0;                                // elements of the caller's
  Pixels pixels = Pixels::all;
  Spatial plane{1, 1, 1};   // {D, H, W} of the caller's
  Spatial copied{1, 1, 1};  // of the copy
  Spatial stride{1, 1, 1};  // from one pixel of the copy to the next, in the plane
  std::size_t first = 0;    // byte of the workspace where the copy begins

  std::size_t image_bytes() const;  // of the copy
  std::size_t bytes() const { return image_bytes() * static_cast<std::size_t>(copied_images); }
};

// What one launch does with a tensor: images of the copy go out to the caller's, then others come
// in to the copy, all of them or, with beta_only, if beta is not 0.
struct RelaidMove {
  const RelaidTensor* tensor;
  std::int64_t out_first = 0, out_images = 0;
  std::int64_t in_first = 0, in_images = 0;
  bool beta_only = false;
};

inline constexpr std::size_t most_relaid_moves = 4;
// At most so many moves, of tensors of one type. `tile`: what the step is for, as people read it.
Step copies_step(std::span<const RelaidMove> moves, const std::string& engine,
                 const std::string& tile);
// Estimated, where beta is 0.
double copies_seconds(std::span<const RelaidMove> moves, const DeviceDescription& device);

// Why the pixels of a channel are not side by side; "" if they are.
std::string plane_refusal(const char* tensor, const Dims& strides, const Spatial& pixels);

// A proposal of an engine for the problem of the copies, as steps of one for the caller's.
struct RelaidPlaces {
  struct Place {
    bool in_workspace = false;
    std::int64_t first = 0;  // byte of the workspace, or of the caller's tensor
  };
  std::vector<Place> operands;
  std::int64_t workspace = 0;  // where the proposal's own begins
};
void append_relaid(std::vector<Step>& steps, Proposal proposal, const RelaidPlaces& places);
// What it scales with, instead of what an execution says.
void set_scalar(std::span<Step> steps, LaunchSpec::Hole hole, double value);

// At least one step, with so many bytes of workspace.
Proposal proposal_of(std::vector<Step> steps, std::size_t workspace);

}  // namespace kiln
