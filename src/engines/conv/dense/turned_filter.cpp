#include "engines/conv/dense/turned_filter.hpp"

#include <algorithm>
#include <utility>

#include "core/text.hpp"
#include "engines/choice.hpp"
#include "engines/conv/dense/staged_operand.hpp"
#include "engines/cost/chips.hpp"

namespace kiln {
namespace {

// From tap to tap, where all are equally far apart; 0 where they are not.
std::int64_t tap_stride(const ConvolutionProblem& problem) {
  std::int64_t first = 0, next = 0;
  for (const int i : {2, 1, 0}) {
    const std::int64_t stride = problem.w_strides[2 + i];
    if (problem.filter[i] == 1) continue;
    if (first == 0) first = next = stride;
    if (stride != next) return 0;
    next = stride * problem.filter[i];
  }
  return std::max<std::int64_t>(first, 1);  // of one tap
}

// {1, filters, taps, channels of a group} in the type of w.
Tensor filter_tensor(const ConvolutionProblem& problem, std::int64_t filter, std::int64_t tap,
                     std::int64_t channel) {
  Tensor tensor;
  tensor.type = problem.type();
  tensor.rank = 4;
  tensor.dims = {1, problem.out_channels, problem.taps(), problem.group_in()};
  tensor.strides = {1, filter, tap, channel};
  tensor.strides[0] = 1;
  for (int i = 1; i < 4; ++i) tensor.strides[0] += (tensor.dims[i] - 1) * tensor.strides[i];
  return tensor;
}

}  // namespace

bool turns_filter(const ConvolutionProblem& problem) {
  return problem.type() == KILN_DATA_FLOAT && problem.pass == ConvolutionPass::dgrad &&
         problem.w_strides[0] != 1;
}

std::string turned_filter_refusal(const ConvolutionProblem& problem) {
  if (problem.w_strides[1] != 1 || tap_stride(problem) == 0)
    return "in w neither channels nor filters are contiguous, with taps equally far apart";
  if (const std::size_t bytes = turned_filter_bytes(problem); bytes > most_workspace)
    return cat("the turned filter has ", bytes, " bytes; expected at most the largest workspace, ",
               most_workspace);
  return "";
}

std::size_t turned_filter_bytes(const ConvolutionProblem& problem) {
  if (!turns_filter(problem)) return 0;
  return static_cast<std::size_t>(problem.out_channels * problem.group_in() * problem.taps()) *
         size_of(problem.type());
}

double turned_filter_seconds(const ConvolutionProblem& problem, const DeviceDescription& device) {
  if (!turns_filter(problem)) return 0;
  return clocks_to_seconds(0, 2 * static_cast<double>(turned_filter_bytes(problem)), device);
}

ConvolutionProblem with_turned_filter(const ConvolutionProblem& problem) {
  if (!turns_filter(problem)) return problem;
  ConvolutionProblem turned = problem;
  std::int64_t next = problem.out_channels;
  turned.w_strides[0] = 1;
  for (const int i : {2, 1, 0}) {
    turned.w_strides[2 + i] = problem.filter[i] == 1 ? 0 : next;
    next *= problem.filter[i];
  }
  turned.w_strides[1] = next;
  return turned;
}

Proposal behind_turned_filter(Proposal second, const ConvolutionProblem& problem,
                              const DeviceDescription& device) {
  if (!turns_filter(problem)) return second;
  const ConvolutionProblem turned = with_turned_filter(problem);
  return behind_staging(std::move(second), problem,
                        {"w", filter_tensor(problem, problem.w_strides[0], tap_stride(problem), 1),
                         filter_tensor(problem, 1, problem.out_channels, turned.w_strides[1])},
                        device);
}

}  // namespace kiln
