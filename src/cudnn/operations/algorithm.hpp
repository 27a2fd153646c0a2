// The number of algorithms of each pass, and the one that Kiln reports.
#pragma once

#include <cudnn.h>

#include "core/error.hpp"

namespace kiln::cudnn {

template <class Algorithm>
struct AlgorithmFacts;

// Kiln reports the algorithms that are deterministic in cuDNN, so that programs that require
// determinism accept them.
template <>
struct AlgorithmFacts<cudnnConvolutionFwdAlgo_t> {
  static constexpr auto reported = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
  static constexpr int count = CUDNN_CONVOLUTION_FWD_ALGO_COUNT;
};
template <>
struct AlgorithmFacts<cudnnConvolutionBwdDataAlgo_t> {
  static constexpr auto reported = CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
  static constexpr int count = CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT;
};
template <>
struct AlgorithmFacts<cudnnConvolutionBwdFilterAlgo_t> {
  static constexpr auto reported = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
  static constexpr int count = CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT;
};

// Throws BAD_PARAM for a number that no algorithm has.
template <class Algorithm>
void check_algorithm(Algorithm algorithm) {
  constexpr int count = AlgorithmFacts<Algorithm>::count;
  const int number = static_cast<int>(algorithm);
  if (number < 0 || number >= count)
    fail(KILN_STATUS_BAD_PARAM, "algo is ", number, "; expected 0 to ", count - 1);
}

}  // namespace kiln::cudnn
