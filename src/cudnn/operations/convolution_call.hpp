// One convolution call in any pass: its arguments, and its execution by Kiln.
#pragma once

#include <string>

#include "cudnn/descriptors/convolution.hpp"
#include "cudnn/descriptors/layers.hpp"
#include "cudnn/library/handle.hpp"

namespace kiln::cudnn {

enum class Pass : std::int32_t { forward, fused_forward, backward_data, backward_filter };

// The addresses of a call.
struct Operands {
  const void *x = nullptr, *w = nullptr, *y = nullptr;  // the output is one of them
  const void *alpha = nullptr, *beta = nullptr;
};

struct ConvolutionCall : Operands {
  Pass pass = Pass::forward;
  cudnnHandle_t handle = nullptr;
  cudnnTensorDescriptor_t x_desc = nullptr;  // x or dx
  cudnnFilterDescriptor_t w_desc = nullptr;  // w or dw
  cudnnConvolutionDescriptor_t convolution_desc = nullptr;
  cudnnTensorDescriptor_t y_desc = nullptr;  // y or dy
  // Only for a fused convolution; z and bias may be null.
  cudnnTensorDescriptor_t z_desc = nullptr, bias_desc = nullptr;
  cudnnActivationDescriptor_t activation_desc = nullptr;
  const void *z = nullptr, *bias = nullptr;

  ConvolutionCall with(const Operands& operands) const {
    ConvolutionCall call = *this;
    static_cast<Operands&>(call) = operands;
    return call;
  }
};

// The call of a pass, without addresses. The kinds of the descriptors, in the order of the API's
// arguments, say which pass it is.
ConvolutionCall call_of(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                        cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y);
ConvolutionCall call_of(cudnnHandle_t handle, cudnnFilterDescriptor_t w, cudnnTensorDescriptor_t dy,
                        cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t dx);
ConvolutionCall call_of(cudnnHandle_t handle, cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dy,
                        cudnnConvolutionDescriptor_t convolution, cudnnFilterDescriptor_t dw);

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
