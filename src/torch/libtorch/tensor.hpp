// A PyTorch tensor, owned through its handle, and conversions of operators' arguments and results.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "torch/libtorch/libtorch.hpp"

namespace kiln::torch {

inline constexpr int max_rank = 5;  // batch, channels and three dimensions of space
using Extents = std::array<std::int64_t, max_rank>;

class Tensor {
 public:
  Tensor() = default;  // undefined
  explicit Tensor(TensorHandle owned) : handle_(owned) { read(); }
  Tensor(Tensor&& other) noexcept { swap(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    swap(other);
    return *this;
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor() {
    if (handle_ != nullptr) libtorch().aoti_torch_delete_tensor_object(handle_);
  }

  // A new tensor with these sizes and strides, of the type and on the device of `like`.
  static Tensor empty(const Tensor& like, int rank, const Extents& sizes, const Extents& strides) {
    return empty(like, like.type_, rank, sizes, strides);
  }
  // The same of another type.
  static Tensor empty(const Tensor& like, std::int32_t type, int rank, const Extents& sizes,
                      const Extents& strides);

  bool defined() const { return handle_ != nullptr && defined_; }
  TensorHandle handle() const { return handle_; }
  TensorHandle release() { return std::exchange(handle_, nullptr); }
  int rank() const { return rank_; }
  std::int64_t size(int i) const { return sizes_[i]; }
  std::span<const std::int64_t> sizes() const { return {sizes_, std::size_t(rank_)}; }
  std::span<const std::int64_t> strides() const { return {strides_, std::size_t(rank_)}; }
  std::int32_t type() const { return type_; }
  std::int32_t device_type() const { return device_type_; }
  std::int32_t device_index() const { return device_index_; }
  bool on_device_of(const Tensor& other) const {
    return device_type_ == other.device_type_ && device_index_ == other.device_index_;
  }
  std::int64_t elements() const;
  const void* data() const;    // address of the first element
  void* mutable_data() const;  // the same, for writing

 private:
  void read();
  void swap(Tensor& other) noexcept;

  TensorHandle handle_ = nullptr;
  bool defined_ = false;
  int rank_ = 0;
  const std::int64_t *sizes_ = nullptr, *strides_ = nullptr;
  std::int32_t type_ = 0, device_type_ = 0, device_index_ = 0;
};

// A short list of integers. Of a list longer than any convolution has, only the length is kept.
struct Integers {
  std::size_t count = 0;
  std::array<std::int64_t, 6> values{};  // as many as sides of three dimensions of space
};

// Conversions of arguments; each takes ownership of what the Value owns.
Tensor take_tensor(Value value);
Tensor take_optional_tensor(Value value);
Integers take_integers(Value value);
std::array<bool, 3> take_mask(Value value);

// Conversions to Values that the receiver owns. An undefined Tensor becomes PyTorch's undefined
// tensor, or None where the parameter is optional.
Value give_tensor(Tensor tensor);
Value share_tensor(const Tensor& tensor);
Value share_optional_tensor(const Tensor& tensor);
Value give_integers(std::span<const std::int64_t> values);
Value give_mask(const std::array<bool, 3>& mask);

}  // namespace kiln::torch
