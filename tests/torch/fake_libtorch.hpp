// A stand-in for PyTorch: tensors in plain memory, lists, and a dispatcher that knows the kernels
// registered with it. It counts what is alive, so that a test sees what was never given back.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "torch/libtorch/libtorch.hpp"

namespace fake {

struct Tensor {
  bool defined = true;
  std::vector<std::int64_t> sizes, strides;
  std::int32_t type = 6;  // f32, as PyTorch numbers its types; 7: f64, 5: f16, 15: bf16
  std::int32_t device = 0, index = 0;            // 0: CPU
  std::shared_ptr<std::vector<double>> storage;  // room for any type
  std::int64_t offset = 0;                       // bytes

  template <class T>
  T* data() const {
    return reinterpret_cast<T*>(reinterpret_cast<char*>(storage->data()) + offset);
  }
};

Tensor make(std::vector<std::int64_t> sizes, bool channels_last = false, std::int32_t type = 6);

struct Torch {
  std::map<std::string, kiln::torch::Kernel> kernels;  // "aten::convolution CPU"
  // What operators called through the dispatcher do; the name with its namespace.
  std::map<std::string, std::function<int(kiln::torch::Value*)>> operators;
  std::map<std::string, int> calls;       // of them
  std::atomic<int> tensors{0}, lists{0};  // alive
  bool out_of_memory = false;
};
Torch& torch();

kiln::torch::Value give(const Tensor& tensor);
kiln::torch::Value give_optional(const Tensor* tensor);
kiln::torch::Value give_list(const std::vector<std::int64_t>& list);
Tensor take(kiln::torch::Value value);

}  // namespace fake
