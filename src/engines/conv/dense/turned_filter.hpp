// Data gradients in TF32, whose filter has to be turned: tensor cores take f32 with the reduction's
// elements side by side alone, and in a filter as it lies those of a data gradient, the filters,
// are far apart. A first step turns it into the workspace.
#pragma once

#include <cstddef>
#include <string>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "problem/convolution.hpp"

namespace kiln {

bool turns_filter(const ConvolutionProblem& problem);

// Why that cannot be done; "" if it can. Of one that turns_filter().
std::string turned_filter_refusal(const ConvolutionProblem& problem);
// Of the workspace, bytes; 0 of one that does not.
std::size_t turned_filter_bytes(const ConvolutionProblem& problem);
// What the first step takes; 0 of one that does not.
double turned_filter_seconds(const ConvolutionProblem& problem, const DeviceDescription& device);

// The problem as the second step sees it, with the filter's strides there; itself if it does not.
ConvolutionProblem with_turned_filter(const ConvolutionProblem& problem);

// What the second step proposes, behind the first one; itself if there is none.
Proposal behind_turned_filter(Proposal second, const ConvolutionProblem& problem);

}  // namespace kiln
