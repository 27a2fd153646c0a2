// Layers of one tap with strides in channels-first tensors: the pixels of x that they meet are
// first copied to the workspace, where they lie as without a stride.
#pragma once

#include <cstddef>
#include <string>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Of a forward pass or a filter gradient.
bool picks_pixels(const ConvolutionProblem& problem);

// Why that cannot be done; "" if it can. Of one that picks_pixels().
std::string picked_pixels_refusal(const ConvolutionProblem& problem);
// Of the workspace, bytes; 0 of one that does not.
std::size_t picked_pixels_bytes(const ConvolutionProblem& problem);
// What the first step takes; 0 of one that does not.
double picked_pixels_seconds(const ConvolutionProblem& problem, const DeviceDescription& device);

// The problem as the second step sees it; itself if it does not.
ConvolutionProblem with_picked_pixels(const ConvolutionProblem& problem);

// What the second step proposes, behind the first one; itself if there is none.
Proposal behind_picked_pixels(Proposal second, const ConvolutionProblem& problem,
                              const DeviceDescription& device);

}  // namespace kiln
