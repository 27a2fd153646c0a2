// One convolution call in any pass: its arguments, and its execution by Kiln.
#pragma once

#include <string>

#include "cudnn/descriptors/convolution.hpp"
#include "cudnn/descriptors/layers.hpp"
#include "cudnn/library/handle.hpp"

namespace kiln::cudnn {

enum class Pass : std::int32_t { forward, fused_forward, backward_data, backward_filter };

struct ConvolutionCall {
  Pass pass;
  cudnnHandle_t handle;
  cudnnTensorDescriptor_t x_desc;  // x or dx
  cudnnFilterDescriptor_t w_desc;  // w or dw
  cudnnConvolutionDescriptor_t convolution_desc;
  cudnnTensorDescriptor_t y_desc;                       // y or dy
  const void *x = nullptr, *w = nullptr, *y = nullptr;  // the output is one of them
  const void *alpha = nullptr, *beta = nullptr;
  // Only for a fused convolution; z and bias may be null.
  cudnnTensorDescriptor_t z_desc = nullptr, bias_desc = nullptr;
  cudnnActivationDescriptor_t activation_desc = nullptr;
  const void *z = nullptr, *bias = nullptr;
};

// The names of a pass's descriptors in messages.
struct DescriptorNames {
  const char *x, *w, *y;
};
DescriptorNames names_of(Pass pass);

// Runs the call by one of Kiln's immediate functions, so a new problem waits for its kernel. Throws
// on failure.
void run_at_once(const ConvolutionCall& call);

// Runs the call under the policy of the settings. Throws on failure.
void run(const ConvolutionCall& call);

// Makes a plan for operands with the alignment of the call's, and does not finalize it. Throws if
// arguments do not fit together.
kilnPlan_t create_plan(const ConvolutionCall& call);
void execute_plan(kilnPlan_t plan, const ConvolutionCall& call);

// A key of everything that decides which kernel serves the call.
std::string key_of(const ConvolutionCall& call);

}  // namespace kiln::cudnn
