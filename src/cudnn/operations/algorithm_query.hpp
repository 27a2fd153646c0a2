// Shared by the queries of algorithms. Kiln reports one algorithm, which needs no workspace.
#pragma once

#include <type_traits>

#include "api/checks.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/operations/algorithm.hpp"
#include "cudnn/operations/convolution_call.hpp"

namespace kiln::cudnn {

// Throws the reason if Kiln does not support the problem.
void check_problem(const ConvolutionCall& call);

// Measures the call, in milliseconds. Operands that are null are allocated for it. Throws on
// failure.
float measure(ConvolutionCall call);

// Throws BAD_PARAM if the operand is null.
template <class Pointer>
Pointer given(Pointer operand, const char* name) {
  api::check_pointer(operand, name, "the address of a tensor");
  return operand;
}

constexpr float not_measured = -1;

// Writes the one result.
template <class Performance>
void report(const ConvolutionCall& call, float milliseconds, int* returned, Performance* results) {
  Performance& result = *results;
  result = {};
  result.algo = AlgorithmFacts<decltype(result.algo)>::reported;
  result.status = CUDNN_STATUS_SUCCESS;
  result.time = milliseconds;
  result.memory = 0;
  result.determinism = CUDNN_DETERMINISTIC;
  result.mathType = call.convolution_desc->fields.math;
  *returned = 1;
}

template <class Performance>
void check_room(int requested, const int* returned, const Performance* results) {
  api::check_at_least(1, requested, "requestedAlgoCount");
  api::check_pointer(returned, "returnedAlgoCount", "where to store how many results there are");
  api::check_pointer(results, "perfResults", "an array of requestedAlgoCount results");
}

// cudnnGet...Algorithm_v7, which executes nothing.
inline constexpr auto get_algorithms = [](const ConvolutionCall& call, int requested, int* returned,
                                          auto* results) {
  check_room(requested, returned, results);
  check_problem(call);
  report(call, not_measured, returned, results);
};

// cudnnFind...Algorithm and ...Ex.
inline constexpr auto find_algorithms = [](const ConvolutionCall& call, int requested,
                                           int* returned, auto* results) {
  check_room(requested, returned, results);
  report(call, measure(call), returned, results);
};

// The query with a preference for little workspace. Kiln needs none, so every preference is met.
inline constexpr auto get_preferred = [](const ConvolutionCall& call, auto preference,
                                         std::size_t /*memory_limit*/, auto* algorithm) {
  constexpr int last = 2;
  if (static_cast<int>(preference) < 0 || static_cast<int>(preference) > last)
    fail(KILN_STATUS_BAD_PARAM, "preference is ", static_cast<int>(preference), "; expected 0 to ",
         last);
  api::check_pointer(algorithm, "algo", "where to store the algorithm");
  check_problem(call);
  *algorithm = AlgorithmFacts<std::remove_pointer_t<decltype(algorithm)>>::reported;
};

inline constexpr auto get_workspace = [](const ConvolutionCall& call, auto algorithm,
                                         std::size_t* bytes) {
  check_algorithm(algorithm);
  api::check_pointer(bytes, "sizeInBytes", "where to store the bytes");
  check_problem(call);
  *bytes = 0;
};

// The body of a query: `work` gets the call that the descriptors make, and what comes after them.
template <class... Parameters, class Work, class First, class Second, class Result, class... Rest>
cudnnStatus_t query(Function<Parameters...> function, Work work, cudnnHandle_t handle, First first,
                    Second second, cudnnConvolutionDescriptor_t convolution, Result result,
                    Rest... rest) noexcept {
  return serve(
      function, [&] { work(call_of(handle, first, second, convolution, result), rest...); }, handle,
      first, second, convolution, result, rest...);
}

inline void get_count(cudnnHandle_t handle, int* count) {
  context_of(handle);
  api::check_pointer(count, "count", "where to store the number");
  *count = 1;
}

}  // namespace kiln::cudnn
