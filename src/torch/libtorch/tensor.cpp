#include "torch/libtorch/tensor.hpp"

#include <memory>

namespace kiln::torch {

void Tensor::read() {
  const LibTorch& torch = libtorch();
  torch.aoti_torch_is_defined(handle_, &defined_);
  if (!defined_) return;
  std::int64_t rank = 0;
  std::int64_t *sizes = nullptr, *strides = nullptr;
  check(torch.aoti_torch_get_dim(handle_, &rank), "aoti_torch_get_dim");
  check(torch.aoti_torch_get_sizes(handle_, &sizes), "aoti_torch_get_sizes");
  check(torch.aoti_torch_get_strides(handle_, &strides), "aoti_torch_get_strides");
  check(torch.aoti_torch_get_dtype(handle_, &type_), "aoti_torch_get_dtype");
  check(torch.aoti_torch_get_device_type(handle_, &device_type_), "aoti_torch_get_device_type");
  check(torch.aoti_torch_get_device_index(handle_, &device_index_), "aoti_torch_get_device_index");
  rank_ = static_cast<int>(rank);
  sizes_ = sizes;
  strides_ = strides;
}

void Tensor::swap(Tensor& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(defined_, other.defined_);
  std::swap(rank_, other.rank_);
  std::swap(sizes_, other.sizes_);
  std::swap(strides_, other.strides_);
  std::swap(type_, other.type_);
  std::swap(device_type_, other.device_type_);
  std::swap(device_index_, other.device_index_);
}

Tensor Tensor::empty(const Tensor& like, std::int32_t type, int rank, const Extents& sizes,
                     const Extents& strides) {
  TensorHandle handle = nullptr;
  check(libtorch().aoti_torch_empty_strided(rank, sizes.data(), strides.data(), type,
                                            like.device_type_, like.device_index_, &handle),
        "aoti_torch_empty_strided (out of memory?)");
  return Tensor(handle);
}

std::int64_t Tensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes()) count *= size;
  return count;
}

const void* Tensor::data() const {
  const void* pointer = nullptr;
  check(libtorch().torch_get_const_data_ptr(handle_, &pointer), "torch_get_const_data_ptr");
  return pointer;
}

void* Tensor::mutable_data() const {
  void* pointer = nullptr;
  check(libtorch().torch_get_mutable_data_ptr(handle_, &pointer), "torch_get_mutable_data_ptr");
  return pointer;
}

Tensor take_tensor(Value value) { return Tensor(reinterpret_cast<TensorHandle>(value)); }

Tensor take_optional_tensor(Value value) {
  const std::unique_ptr<Value> held(reinterpret_cast<Value*>(value));
  return held ? take_tensor(*held) : Tensor();
}

namespace {

// Calls each(index, item) for every item of the list, then deletes the list. Returns its length.
template <class Each>
std::size_t take_list(Value value, const Each& each) {
  const LibTorch& torch = libtorch();
  const auto list = reinterpret_cast<ListHandle>(value);
  std::size_t count = 0;
  check(torch.torch_list_size(list, &count), "torch_list_size");
  for (std::size_t i = 0; i < count; ++i) {
    Value item = 0;
    check(torch.torch_list_get_item(list, i, &item), "torch_list_get_item");
    each(i, item);
  }
  check(torch.torch_delete_list(list), "torch_delete_list");
  return count;
}

template <class Range>
Value give_list(const Range& values) {
  const LibTorch& torch = libtorch();
  ListHandle list = nullptr;
  check(torch.torch_new_list_reserve_size(values.size(), &list), "torch_new_list_reserve_size");
  for (const auto value : values)
    check(torch.torch_list_push_back(list, static_cast<Value>(value)), "torch_list_push_back");
  return reinterpret_cast<Value>(list);
}

}  // namespace

Integers take_integers(Value value) {
  Integers out;
  out.count = take_list(value, [&](std::size_t i, Value item) {
    if (i < out.values.size()) out.values[i] = static_cast<std::int64_t>(item);
  });
  return out;
}

std::array<bool, 3> take_mask(Value value) {
  std::array<bool, 3> out{};
  take_list(value, [&](std::size_t i, Value item) {
    if (i < out.size()) out[i] = (item & 0xff) != 0;
  });
  return out;
}

Value give_tensor(Tensor tensor) {
  if (tensor.handle() != nullptr) return reinterpret_cast<Value>(tensor.release());
  TensorHandle handle = nullptr;
  check(libtorch().aoti_torch_new_uninitialized_tensor(&handle),
        "aoti_torch_new_uninitialized_tensor");
  return reinterpret_cast<Value>(handle);
}

Value share_tensor(const Tensor& tensor) {
  TensorHandle handle = nullptr;
  check(libtorch().aoti_torch_new_tensor_handle(tensor.handle(), &handle),
        "aoti_torch_new_tensor_handle");
  return reinterpret_cast<Value>(handle);
}

Value share_optional_tensor(const Tensor& tensor) {
  if (!tensor.defined()) return 0;
  return reinterpret_cast<Value>(new Value(share_tensor(tensor)));
}

Value give_integers(std::span<const std::int64_t> values) { return give_list(values); }

Value give_mask(const std::array<bool, 3>& mask) { return give_list(mask); }

}  // namespace kiln::torch
