// PyTorch's own convolutions, for what Kiln does not serve or what is faster there.
#pragma once

#include <optional>
#include <string>

#include "torch/convolution/convolution.hpp"

namespace kiln::torch {

// PyTorch's flags for convolutions on CUDA. There is no C function that tells them, so the Python
// side pushes them whenever they change.
struct Flags {
  bool cudnn_enabled, benchmark, deterministic, allow_tf32;
};
Flags flags();
void set_flags(const Flags& flags);

// aten::convolution as PyTorch computes it. `sound` says that check_call accepted the arguments:
// then PyTorch's kernel is called directly. Others, and what fails there, go by way of Python,
// which keeps PyTorch's words for what is wrong. Throws std::runtime_error with those words.
Tensor native_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Arguments& arguments, bool sound);

// act(convolution + bias + residual), composed of PyTorch's own functions by Python. The last two
// arguments are Values as kiln::convolution_bias_activation has them.
Tensor native_fused(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual,
                    const Arguments& arguments, Value activation, Value coefficient);

struct Gradients {
  Tensor dx, dw, db;  // those not asked for are not defined
};
// aten::convolution_backward likewise.
Gradients native_backward(const Tensor& dy, const Tensor& x, const Tensor& w,
                          const std::optional<Integers>& bias_sizes, const Arguments& arguments,
                          const std::array<bool, 3>& mask, bool sound);

// What a native call that failed said, from the Python operator on the same thread.
void set_native_error(const char* text);

}  // namespace kiln::torch
