#include "torch/native.hpp"

#include <atomic>
#include <stdexcept>

namespace kiln::torch {
namespace {

std::atomic<Flags> current_flags{Flags{true, false, false, true}};
thread_local std::string native_error;

void give(const Arguments& arguments, Value* from_stride) {
  const auto list = [](const Integers& values) {
    return give_integers(std::span(values.values).first(std::min(values.count, std::size_t{5})));
  };
  from_stride[0] = list(arguments.stride);
  from_stride[1] = list(arguments.padding);
  from_stride[2] = list(arguments.dilation);
  from_stride[3] = arguments.transposed ? 1 : 0;
  from_stride[4] = list(arguments.output_padding);
  from_stride[5] = static_cast<Value>(arguments.groups);
}

// The Python operators return placeholders where PyTorch raised, and leave its words here.
void call_python(const char* name, Value* stack, int results) {
  native_error.clear();
  const int status = libtorch().torch_call_dispatcher(name, "", stack, abi_version);
  check(status, name);
  if (native_error.empty()) return;
  for (int i = 0; i < results; ++i) take_tensor(stack[i]);
  throw std::runtime_error(std::exchange(native_error, {}));
}

}  // namespace

Flags flags() { return current_flags.load(std::memory_order_relaxed); }
void set_flags(const Flags& flags) { current_flags.store(flags, std::memory_order_relaxed); }
void set_native_error(const char* text) { native_error = text; }

Tensor native_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Arguments& arguments, bool sound) {
  const auto fill = [&](Value* stack) {
    stack[0] = share_tensor(x);
    stack[1] = share_tensor(w);
    stack[2] = share_optional_tensor(bias);
    give(arguments, stack + 3);
  };
  if (sound) {
    const Flags now = flags();
    Value stack[13];
    fill(stack);
    stack[9] = now.benchmark;
    stack[10] = now.deterministic;
    stack[11] = now.cudnn_enabled;
    stack[12] = now.allow_tf32;
    if (libtorch().torch_call_dispatcher("aten::_convolution", "", stack, abi_version) == 0)
      return take_tensor(stack[0]);
  }
  Value stack[9];
  fill(stack);
  call_python("kiln_torch::native_convolution", stack, 1);
  return take_tensor(stack[0]);
}

Gradients native_backward(const Tensor& dy, const Tensor& x, const Tensor& w,
                          const std::optional<Integers>& bias_sizes, const Arguments& arguments,
                          const std::array<bool, 3>& mask) {
  Value stack[11];
  stack[0] = share_tensor(dy);
  stack[1] = share_tensor(x);
  stack[2] = share_tensor(w);
  stack[3] = 0;
  if (bias_sizes) {
    const auto sizes =
        std::span(bias_sizes->values).first(std::min(bias_sizes->count, std::size_t{5}));
    stack[3] = reinterpret_cast<Value>(new Value(give_integers(sizes)));
  }
  give(arguments, stack + 4);
  stack[10] = give_mask(mask);
  call_python("kiln_torch::native_convolution_backward", stack, 3);
  Gradients out{take_tensor(stack[0]), take_tensor(stack[1]), take_tensor(stack[2])};
  if (!mask[0]) out.dx = Tensor();
  if (!mask[1]) out.dw = Tensor();
  if (!mask[2]) out.db = Tensor();
  return out;
}

}  // namespace kiln::torch
