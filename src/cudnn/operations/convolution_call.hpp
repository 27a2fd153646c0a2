// One convolution, in any pass: what a program's call says, and how Kiln makes and runs it.
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
  cudnnTensorDescriptor_t x_desc;  // of x or dx
  cudnnFilterDescriptor_t w_desc;  // of w or dw
  cudnnConvolutionDescriptor_t convolution_desc;
  cudnnTensorDescriptor_t y_desc;                       // of y or dy
  const void *x = nullptr, *w = nullptr, *y = nullptr;  // the output is one of them
  const void *alpha = nullptr, *beta = nullptr;
  // Of a fused one alone; z and bias may be null.
  cudnnTensorDescriptor_t z_desc = nullptr, bias_desc = nullptr;
  cudnnActivationDescriptor_t activation_desc = nullptr;
  const void *z = nullptr, *bias = nullptr;
};

// The names by which messages know the descriptors, in a pass.
struct DescriptorNames {
  const char *x, *w, *y;
};
DescriptorNames names_of(Pass pass);

// Runs it by one of Kiln's immediate calls: a new problem waits for its kernel. Throws.
void run_at_once(const ConvolutionCall& call);

// Runs it as the policy says. Throws.
void run(const ConvolutionCall& call);

// A plan, not yet finalized, for operands that are aligned as those of the call are. Throws what
// does not fit.
kilnPlan_t create_plan(const ConvolutionCall& call);
void execute_plan(kilnPlan_t plan, const ConvolutionCall& call);

// Everything that decides which kernel serves the call, as bytes.
std::string key_of(const ConvolutionCall& call);

}  // namespace kiln::cudnn
