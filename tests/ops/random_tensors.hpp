// Random small tensors, dense in either layout, permuted, or with gaps, for tests of many problems
// of an operation.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "operation_case.hpp"

namespace test {

class RandomProblems {
 public:
  explicit RandomProblems(unsigned seed) : random_(seed) {}

  std::int64_t among(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool coin() { return among(0, 1) == 1; }
  DataType type() { return all_types[among(0, 3)]; }
  unsigned seed() { return static_cast<unsigned>(among(0, 1 << 30)); }

  // Sizes of `rank` dimensions, {N, C, space...}.
  TensorDims sizes(int rank, std::int64_t most = 9) {
    TensorDims dims{};
    for (int i = 0; i < rank; ++i) dims[i] = among(1, i == 1 ? 2 * most : most);
    if (coin()) dims[1] = 8 * among(1, 4);         // whole vectors of channels
    if (coin()) dims[rank - 1] = 4 * among(1, 4);  // whole vectors of a row
    dims[0] = among(1, 3);
    return dims;
  }

  // A tensor in dense NCHW or NHWC in most cases, otherwise with any order of dimensions, with or
  // without gaps.
  Tensor tensor(DataType type, int rank, const TensorDims& dims) {
    Tensor out;
    out.type = type;
    out.rank = rank;
    out.dims = dims;
    const std::int64_t kind = among(0, 4);
    if (kind < 2) out.strides = dense_strides(KILN_TENSOR_NCHW, rank, dims);
    if (kind == 2 || kind == 3) out.strides = dense_strides(KILN_TENSOR_NHWC, rank, dims);
    if (kind < 4) return out;
    std::vector<int> order(static_cast<std::size_t>(rank));
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    const std::int64_t gap = coin() ? 0 : among(1, 5);
    std::int64_t next = 1;
    for (const int i : order) {
      out.strides[i] = next;
      next = (next * dims[i]) + gap;
    }
    return out;
  }

  // Scalars; in half of the cases beta is 0.
  Scalars scalars() {
    Scalars out;
    out.alpha = coin() ? 1 : -0.75;
    out.beta = coin() ? 0 : 0.5;
    out.alpha2 = coin() ? 1 : 1.25;
    return out;
  }

 private:
  std::mt19937 random_;
};

}  // namespace test
