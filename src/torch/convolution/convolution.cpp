#include "torch/convolution/convolution.hpp"

#include <algorithm>
#include <limits>

namespace kiln::torch {
namespace {

// Sets one value for each dimension of space; PyTorch allows a single value for all of them.
bool expand(const Integers& given, int spatial, std::int64_t least,
            std::array<std::int64_t, 3>& out) {
  if (given.count != 1 && given.count != static_cast<std::size_t>(spatial)) return false;
  for (int i = 0; i < spatial; ++i) {
    out[i] = given.values[given.count == 1 ? 0 : i];
    if (out[i] < least || out[i] > std::numeric_limits<std::int32_t>::max()) return false;
  }
  return true;
}

// Sets the padding, which is the same before and after unless the arguments have both.
bool expand_padding(const Arguments& arguments, Geometry& g) {
  Integers before = arguments.padding, after = arguments.padding;
  if (arguments.has_sides(g.spatial)) {
    before.count = after.count = static_cast<std::size_t>(g.spatial);
    std::shift_left(after.values.begin(), after.values.end(), g.spatial);
  }
  return expand(before, g.spatial, 0, g.padding) && expand(after, g.spatial, 0, g.padding_after);
}

bool has_short_span(int rank, const std::int64_t* sizes, const std::int64_t* strides) {
  std::int64_t span = 0;
  for (int i = 0; i < rank; ++i) {
    std::int64_t along;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &along) ||
        __builtin_add_overflow(span, along, &span))
      return false;
  }
  return span <= std::numeric_limits<std::int32_t>::max();
}

std::int64_t result_size(const Geometry& g, int i, std::int64_t in, std::int64_t filter) {
  const std::int64_t extent = (filter - 1) * g.dilation[i] + 1;
  if (g.transposed) return (in - 1) * g.stride[i] + extent - 2 * g.padding[i] + g.output_padding[i];
  const std::int64_t room = in + g.padding[i] + g.padding_after[i] - extent;
  return room < 0 ? 0 : room / g.stride[i] + 1;
}

}  // namespace

bool is_served(std::int32_t type) {
  const LibTorch& torch = libtorch();
  return type == torch.float32 || type == torch.float64 || type == torch.float16 ||
         type == torch.bfloat16;
}

bool has_short_span(const Tensor& tensor) {
  return has_short_span(tensor.rank(), tensor.sizes().data(), tensor.strides().data());
}

Arguments Arguments::take(const Value* from_stride) {
  Arguments out;
  out.stride = take_integers(from_stride[0]);
  out.padding = take_integers(from_stride[1]);
  out.dilation = take_integers(from_stride[2]);
  out.transposed = (from_stride[3] & 0xff) != 0;
  out.output_padding = take_integers(from_stride[4]);
  out.groups = static_cast<std::int64_t>(from_stride[5]);
  return out;
}

Refusal check_call(const Tensor& x, const Tensor& w, const Arguments& arguments, Geometry& geometry,
                   Extents& y_sizes) {
  if (!x.defined() || !w.defined()) return "input or weight is missing";
  if (x.rank() < 3 || x.rank() > max_rank || w.rank() != x.rank())
    return "not a batch with one, two or three dimensions of space";
  if (!is_served(x.type())) return "the type is not f32, f64, f16 or bf16";
  if (w.type() != x.type()) return "input and weight differ in type";
  if (!w.on_device_of(x)) return "input and weight are on different devices";
  const auto is_empty = [](std::int64_t size) { return size == 0; };
  if (std::ranges::any_of(x.sizes(), is_empty) || std::ranges::any_of(w.sizes(), is_empty))
    return "an empty batch or tensor";
  Geometry& g = geometry;
  g.spatial = x.rank() - 2;
  g.transposed = arguments.transposed;
  g.groups = arguments.groups;
  if (!expand(arguments.stride, g.spatial, 1, g.stride) || !expand_padding(arguments, g) ||
      !expand(arguments.dilation, g.spatial, 1, g.dilation))
    return "a stride, padding or dilation is out of range";
  if (g.transposed && !expand(arguments.output_padding, g.spatial, 0, g.output_padding))
    return "an output padding is out of range";
  if (g.transposed && arguments.has_sides(g.spatial))
    return "a transposed convolution whose padding differs before and after";
  if (g.groups < 1 || w.size(0) % g.groups != 0) return "the groups do not divide the channels";
  if (g.transposed ? x.size(1) != w.size(0) : x.size(1) != w.size(1) * g.groups)
    return "input and weight differ in their channels";
  y_sizes = {x.size(0), g.transposed ? w.size(1) * g.groups : w.size(0)};
  std::int64_t elements = y_sizes[0] * y_sizes[1];
  for (int i = 0; i < g.spatial; ++i) {
    if (g.transposed && g.output_padding[i] >= std::max(g.stride[i], g.dilation[i]))
      return "an output padding is below neither its stride nor its dilation";
    y_sizes[i + 2] = result_size(g, i, x.size(i + 2), w.size(i + 2));
    if (y_sizes[i + 2] < 1) return "the filter is larger than the padded input";
    if (__builtin_mul_overflow(elements, y_sizes[i + 2], &elements))
      return "the result has 2^63 elements or more";
  }
  return nullptr;
}

Refusal check_bias(const Tensor& x, const Tensor& bias, std::int64_t channels) {
  if (!bias.defined()) return nullptr;
  if (bias.type() != x.type()) return "input and bias differ in type";
  if (!bias.on_device_of(x)) return "input and bias are on different devices";
  if (bias.rank() != 1 || bias.size(0) != channels) return "the bias has not one element a channel";
  if (bias.strides()[0] < 0) return "the bias has a negative stride";
  return nullptr;
}

Refusal check_like(const Tensor& x, const Tensor& dy, const Extents& y_sizes) {
  if (!dy.defined()) return "the gradient is missing";
  if (dy.type() != x.type()) return "input and gradient differ in type";
  if (!dy.on_device_of(x)) return "input and gradient are on different devices";
  if (!std::ranges::equal(dy.sizes(), std::span(y_sizes).first(x.rank())))
    return "the gradient has not the sizes of the result";
  return nullptr;
}

Refusal check_gradient(const Tensor& x, const Tensor& dy, const Extents& y_sizes) {
  if (const Refusal refusal = check_like(x, dy, y_sizes)) return refusal;
  if (!has_short_span(dy)) return "a tensor spans 2^31 elements or more";
  return nullptr;
}

}  // namespace kiln::torch
