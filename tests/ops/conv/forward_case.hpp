// Forward convolutions on small integers, whose results are compared for equality.
#pragma once

#include <cmath>
#include <limits>

#include "engines/conv/implicit_gemm/implicit_gemm.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "engines/conv/wgrad/wgrad_implicit_gemm.hpp"
#include "ops/operation_case.hpp"
#include "problem/line/problem_line.hpp"

namespace test {

inline ConvolutionProblem problem_of(const std::string& line, DataType type = KILN_DATA_FLOAT,
                                     kilnTensorFormat_t layout = KILN_TENSOR_NCHW,
                                     kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return make_convolution(parse_convolution_line(line), type, layout, mode);
}

struct ForwardCase : OperationCase {
  explicit ForwardCase(const ConvolutionProblem& p, unsigned seed = 1) : OperationCase(p) {
    (*this)["x"].fill_integers(seed, 3);
    (*this)["w"].fill_integers(seed + 1, 2);
  }
};

// Replaces the zeros of both operands by ones, so that a NaN or infinity in one of them shows in
// every sum that has a product of it.
inline void replace_zeros(OperationCase& item) {
  for (std::size_t i = 0; i < 2; ++i)
    for (double& value : item.tensors[i].values) value = value == 0 ? 1 : value;
}

// Puts NaN and infinities into x (16 channels of 8 x 8, two images) and w (20 filters of 3 x 3),
// and replaces zeros.
inline void put_nan_and_infinities(OperationCase& item) {
  item["x"].at(20) = std::nan("");
  item["x"].at(300) = std::numeric_limits<double>::infinity();
  item["x"].at(1100) = -std::numeric_limits<double>::infinity();
  item["w"].at(777) = std::numeric_limits<double>::infinity();
  replace_zeros(item);
}

// The tiles of the FMA engine, and of the tensor cores' engine for short and long sums.
inline std::vector<GemmTile> all_tiles(ConvolutionProblem problem) {
  std::vector<GemmTile> tiles = fma_tiles(problem.type());
  for (kilnMathMode_t math : {KILN_MATH_DEFAULT, KILN_MATH_TF32})
    for (std::int64_t reduction : {1000, 10000}) {
      if (problem.type() != KILN_DATA_FLOAT && math == KILN_MATH_TF32) continue;
      problem.math = math;
      for (const GemmTile& tile : mma_tiles(problem, reduction)) tiles.push_back(tile);
    }
  return tiles;
}

// The proposal of the implicit matrix product that has such a tile, at a split count of `parts`.
inline Proposal propose_gemm(const ConvolutionProblem& problem, const GemmTile& tile,
                             const DeviceDescription& device, int parts) {
  const bool wgrad = problem.pass == ConvolutionPass::wgrad;
  const Recipe<GemmTile>& mma = wgrad ? wgrad_implicit_gemm_mma : implicit_gemm_mma;
  const Recipe<GemmTile>& fma = wgrad ? wgrad_implicit_gemm_fma : implicit_gemm_fma;
  return RecipeEngine(tile.mma() ? mma : fma).propose(tile, problem, device, {parts});
}

}  // namespace test
