// Calls of the extension's operators as PyTorch's dispatcher makes them, and their operands.
#pragma once

#include <bit>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "fake_libtorch.hpp"
#include "torch/control.h"

namespace test {

// With channels last.
inline fake::Tensor random(std::vector<std::int64_t> sizes, float offset = 0) {
  static std::mt19937 generator(std::random_device{}());
  std::normal_distribution<float> normal(offset);
  fake::Tensor out = fake::make(std::move(sizes), true);
  for (std::size_t i = 0; i < out.storage->size() * 2; ++i)
    out.data<float>()[i] = normal(generator);
  return out;
}

inline kiln::torch::Value number(double value) { return std::bit_cast<kiln::torch::Value>(value); }

inline void call(const char* name, std::vector<kiln::torch::Value>& stack, std::uint64_t results) {
  BOOST_REQUIRE_EQUAL(kilnTorchRegisterFused("CPU"), "");
  fake::torch().kernels.at(std::string("kiln::") + name + " CPU")(stack.data(), stack.size(),
                                                                  results);
}

}  // namespace test
