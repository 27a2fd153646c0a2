// Copies of a call's operands that timed calls take turns with, so that a call finds no more of
// them in the L2 cache than it would in a step of a network.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "torch/libtorch/tensor.hpp"

namespace kiln::torch {

// Bytes from the tensor's first element to its last; 0 if a stride is negative.
std::size_t span_bytes(const Tensor& tensor);

class Rotation {
 public:
  // The operands are the call's own, and are it again when the object is gone; undefined ones take
  // no part. There are as many copies as exceed `cache_bytes` twice, up to `most`, and `least` at
  // least, the call's own operands counted. copy(to, from, bytes) enqueues a copy. Throws what
  // Tensor::empty() throws, where memory is short.
  template <class Copy>
  Rotation(std::span<Tensor* const> operands, std::size_t cache_bytes, int least, int most,
           const Copy& copy) {
    for (Tensor* const operand : operands)
      if (operand->defined()) operands_.push_back(operand);
    const int sets = sets_of(cache_bytes, least, most);
    for (int set = 1; set < sets; ++set) {
      std::vector<Tensor>& copies = copies_.emplace_back();
      for (const Tensor* const operand : operands_) {
        copies.push_back(alike(*operand));
        copy(copies.back().mutable_data(), operand->data(), span_bytes(*operand));
      }
    }
  }
  Rotation(const Rotation&) = delete;
  Rotation& operator=(const Rotation&) = delete;
  ~Rotation() { use(0); }

  int sets() const { return static_cast<int>(copies_.size()) + 1; }
  // Lets the call compute with the next set.
  void turn() { use((used_ + 1) % sets()); }

 private:
  int sets_of(std::size_t cache_bytes, int least, int most) const;
  static Tensor alike(const Tensor& tensor);
  void use(int set);

  std::vector<Tensor*> operands_;
  // Of each set but the call's own: what the call does not use now.
  std::vector<std::vector<Tensor>> copies_;
  int used_ = 0;
};

}  // namespace kiln::torch
