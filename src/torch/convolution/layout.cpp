#include "torch/convolution/layout.hpp"

#include <algorithm>

namespace kiln::torch {
namespace {

// The dimensions of a format from the innermost to the outermost.
Extents order_of(Format format, int rank) {
  Extents order{};
  int next = 0;
  if (format == Format::channels_last) order[next++] = 1;
  for (int i = rank - 1; i >= 0; --i)
    if (i != 1 || format == Format::contiguous) order[next++] = i;
  return order;
}

}  // namespace

bool lies_in_order(const Tensor& tensor, Format format) {
  const Extents order = order_of(format, tensor.rank());
  std::int64_t extent = 1;  // elements that the dimensions inside the current one span
  for (int i = 0; i < tensor.rank(); ++i) {
    const std::int64_t size = tensor.size(static_cast<int>(order[i]));
    const std::int64_t stride = tensor.strides()[order[i]];
    if (size == 1) continue;
    if (extent == 1 ? stride != 1 : stride < extent) return false;
    extent = (size - 1) * stride + extent;
  }
  return true;
}

bool suggests_channels_last(int rank, const std::int64_t* sizes, const std::int64_t* strides) {
  if (rank < 4 || strides[1] == 0) return false;
  const Extents order = order_of(Format::channels_last, rank);
  std::int64_t least = 0;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t d = order[i];
    if (sizes[d] == 0 || strides[d] < least) return false;
    // With one pixel per image, N and C have equal strides, which does not tell the formats apart.
    if (d == 0 && least == strides[1]) return false;
    least = strides[d] * std::max<std::int64_t>(sizes[d], 1);
  }
  return true;
}

Format result_format(const Tensor& x, const Tensor& w) {
  const LibTorch& torch = libtorch();
  const bool on_cpu = x.device_type() == torch.cpu;
  if (x.type() == torch.float64 && (!on_cpu || x.rank() == 5)) return Format::contiguous;
  bool last = false;
  if (x.rank() == 3) {
    const std::int64_t sizes[] = {w.size(0), w.size(1), 1, w.size(2)};
    const std::int64_t strides[] = {w.strides()[0], w.strides()[1], w.size(2) * w.strides()[2],
                                    w.strides()[2]};
    last = suggests_channels_last(4, sizes, strides);
  } else {
    last = suggests_channels_last(x.rank(), x.sizes().data(), x.strides().data()) ||
           suggests_channels_last(w.rank(), w.sizes().data(), w.strides().data());
  }
  return last ? Format::channels_last : Format::contiguous;
}

Extents dense_strides(Format format, int rank, const Extents& sizes) {
  const Extents order = order_of(format, rank);
  Extents strides{};
  std::int64_t next = 1;
  for (int i = 0; i < rank; ++i) {
    strides[order[i]] = next;
    next *= std::max<std::int64_t>(sizes[order[i]], 1);
  }
  return strides;
}

const Tensor& in_format(const Tensor& tensor, Format format, Tensor& copy) {
  if (lies_in_order(tensor, format)) return tensor;
  Extents sizes{};
  std::ranges::copy(tensor.sizes(), sizes.begin());
  copy = Tensor::empty(tensor, tensor.rank(), sizes, dense_strides(format, tensor.rank(), sizes));
  check(libtorch().aoti_torch_copy_(copy.handle(), tensor.handle(), 0), "aoti_torch_copy_");
  return copy;
}

}  // namespace kiln::torch
