#include "torch/convolution/native.hpp"

#include <atomic>
#include <stdexcept>

namespace kiln::torch {
namespace {

std::atomic<Flags> current_flags{Flags{true, false, false, true}};
thread_local std::string native_error;

void give(const Arguments& arguments, Value* from_stride) {
  const auto list = [](const Integers& values) {
    return give_integers(
        std::span(values.values).first(std::min(values.count, values.values.size())));
  };
  from_stride[0] = list(arguments.stride);
  from_stride[1] = list(arguments.padding);
  from_stride[2] = list(arguments.dilation);
  from_stride[3] = arguments.transposed ? 1 : 0;
  from_stride[4] = list(arguments.output_padding);
  from_stride[5] = static_cast<Value>(arguments.groups);
}

const NativeKernels& kernels_of(const Tensor& x) {
  const LibTorch& torch = libtorch();
  return x.device_type() == torch.cuda ? torch.native_cuda : torch.native_cpu;
}

std::int64_t length_of(const Integers& list) {
  return static_cast<std::int64_t>(std::min(list.count, list.values.size()));
}

}  // namespace

Flags flags() { return current_flags.load(std::memory_order_relaxed); }
void set_flags(const Flags& flags) { current_flags.store(flags, std::memory_order_relaxed); }
void set_native_error(const char* text) { native_error = text; }

// When PyTorch raises, the Python operators return placeholders and store the message here.
void call_python(const char* name, Value* stack, int results) {
  native_error.clear();
  const int status = libtorch().torch_call_dispatcher(name, "", stack, abi_version);
  check(status, name);
  if (native_error.empty()) return;
  for (int i = 0; i < results; ++i) take_tensor(stack[i]);
  throw std::runtime_error(std::exchange(native_error, {}));
}

Tensor native_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                      const Arguments& arguments, bool sound) {
  const auto& [stride, padding, dilation, output_padding, transposed, groups, by_side] = arguments;
  const auto forward = kernels_of(x).forward;
  if (sound && forward != nullptr) {
    TensorHandle bias_handle = bias.handle(), y = nullptr;
    if (forward(x.handle(), w.handle(), bias.defined() ? &bias_handle : nullptr,
                stride.values.data(), length_of(stride), padding.values.data(), length_of(padding),
                dilation.values.data(), length_of(dilation), transposed ? 1 : 0,
                output_padding.values.data(), length_of(output_padding), groups, &y) == 0)
      return Tensor(y);
  }
  Value stack[9];
  stack[0] = share_tensor(x);
  stack[1] = share_tensor(w);
  stack[2] = share_optional_tensor(bias);
  give(arguments, stack + 3);
  call_python("kiln_torch::native_convolution", stack, 1);
  return take_tensor(stack[0]);
}

Tensor native_fused(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual,
                    const Arguments& arguments, Value activation, Value coefficient) {
  Value stack[12];
  stack[0] = share_tensor(x);
  stack[1] = share_tensor(w);
  stack[2] = share_optional_tensor(bias);
  stack[3] = share_optional_tensor(residual);
  give(arguments, stack + 4);
  stack[10] = activation;
  stack[11] = coefficient;
  call_python("kiln_torch::native_convolution_bias_activation", stack, 1);
  return take_tensor(stack[0]);
}

bool native_is_channels_last(const Tensor& x, const Tensor& w, const Arguments& arguments) {
  Value stack[8];
  stack[0] = share_tensor(x);
  stack[1] = share_tensor(w);
  give(arguments, stack + 2);
  const char* const name = "kiln_torch::is_channels_last";
  check(libtorch().torch_call_dispatcher(name, "", stack, abi_version), name);
  return (stack[0] & 0xff) != 0;
}

Gradients native_backward(const Tensor& dy, const Tensor& x, const Tensor& w,
                          const std::optional<Integers>& bias_sizes, const Arguments& arguments,
                          const std::array<bool, 3>& mask, bool sound) {
  const auto backward = kernels_of(x).backward;
  if (sound && backward != nullptr && !arguments.has_sides(x.rank() - 2)) {
    const std::int64_t* sizes = bias_sizes ? bias_sizes->values.data() : nullptr;
    const std::int32_t wanted[] = {mask[0], mask[1], mask[2]};
    TensorHandle dx = nullptr, dw = nullptr, db = nullptr;
    const auto& [stride, padding, dilation, output_padding, transposed, groups, by_side] =
        arguments;
    if (backward(dy.handle(), x.handle(), w.handle(), bias_sizes ? &sizes : nullptr,
                 bias_sizes ? length_of(*bias_sizes) : 0, stride.values.data(), length_of(stride),
                 padding.values.data(), length_of(padding), dilation.values.data(),
                 length_of(dilation), transposed ? 1 : 0, output_padding.values.data(),
                 length_of(output_padding), groups, wanted, 3, &dx, &dw, &db) == 0)
      return {Tensor(dx), Tensor(dw), Tensor(db)};
  }
  Value stack[11];
  stack[0] = share_tensor(dy);
  stack[1] = share_tensor(x);
  stack[2] = share_tensor(w);
  stack[3] = 0;
  if (bias_sizes) {
    const auto sizes =
        std::span(bias_sizes->values).first(static_cast<std::size_t>(length_of(*bias_sizes)));
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
