#include "torch/policy/rotation.hpp"

#include <algorithm>

namespace kiln::torch {

std::size_t span_bytes(const Tensor& tensor) {
  const LibTorch& torch = libtorch();
  std::int64_t span = 1;
  for (int i = 0; i < tensor.rank(); ++i) {
    if (tensor.strides()[i] < 0 || tensor.size(i) == 0) return 0;
    span += (tensor.size(i) - 1) * tensor.strides()[i];
  }
  const bool half = tensor.type() == torch.float16 || tensor.type() == torch.bfloat16;
  const std::int64_t element = half ? 2 : tensor.type() == torch.float64 ? 8 : 4;
  return static_cast<std::size_t>(span * element);
}

int Rotation::sets_of(std::size_t cache_bytes, int least, int most) const {
  std::size_t bytes = 1;
  for (const Tensor* const operand : operands_) bytes += span_bytes(*operand);
  const std::size_t beyond = 2 * cache_bytes / bytes + 1;
  return static_cast<int>(
      std::clamp(beyond, static_cast<std::size_t>(least), static_cast<std::size_t>(most)));
}

Tensor Rotation::alike(const Tensor& tensor) {
  Extents sizes{}, strides{};
  std::ranges::copy(tensor.sizes(), sizes.begin());
  std::ranges::copy(tensor.strides(), strides.begin());
  return Tensor::empty(tensor, tensor.rank(), sizes, strides);
}

void Rotation::use(int set) {
  const auto exchange = [&](int with) {
    if (with == 0) return;
    std::vector<Tensor>& copies = copies_[static_cast<std::size_t>(with) - 1];
    for (std::size_t i = 0; i < operands_.size(); ++i) std::swap(*operands_[i], copies[i]);
  };
  exchange(used_);  // gives back the call's own
  exchange(set);
  used_ = set;
}

}  // namespace kiln::torch
