// Calls PyTorch's own convolutions, for calls that Kiln does not serve or that are faster there.
#pragma once

#include <optional>
#include <string>

#include "torch/convolution/convolution.hpp"

namespace kiln::torch {

// PyTorch's flags for convolutions on CUDA. No C function returns them, so the Python side sets
// them here whenever they change.
struct Flags {
  bool cudnn_enabled, benchmark, deterministic, allow_tf32;
};
Flags flags();
void set_flags(const Flags& flags);

// aten::convolution as PyTorch computes it. `sound`: check_call accepted the arguments, so
// PyTorch's kernel is called directly. Other calls, and direct calls that fail, go through Python,
// which provides PyTorch's error message. Throws std::runtime_error with that message.
Tensor native_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Arguments& arguments, bool sound);

// act(convolution + bias + residual), composed of PyTorch's functions in Python. The last two
// arguments are the Values that kiln::convolution_bias_activation received.
Tensor native_fused(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual,
                    const Arguments& arguments, Value activation, Value coefficient);

// Whether PyTorch's result of the call is channels last, as PyTorch itself says. For the CPU.
bool native_is_channels_last(const Tensor& x, const Tensor& w, const Arguments& arguments);

struct Gradients {
  Tensor dx, dw, db;  // undefined where not requested
};
// aten::convolution_backward, in the same way as native_forward().
Gradients native_backward(const Tensor& dy, const Tensor& x, const Tensor& w,
                          const std::optional<Integers>& bias_sizes, const Arguments& arguments,
                          const std::array<bool, 3>& mask, bool sound);

// Calls an operator that Python defines (kiln/torch/_native.py) with the arguments on the stack,
// where it leaves its results. Throws std::runtime_error with PyTorch's message if it raises.
void call_python(const char* name, Value* stack, int results);

// Stores the message of a failed native call; the Python operator calls it on the same thread.
void set_native_error(const char* text);

}  // namespace kiln::torch
