#include "engines/conv/dense/picked_pixels.hpp"

#include <algorithm>
#include <utility>

#include "core/text.hpp"
#include "engines/choice.hpp"
#include "engines/conv/dense/staged_operand.hpp"
#include "engines/cost/chips.hpp"

namespace kiln {
namespace {

// {N, C, D, H, W} of the pixels that are met.
Tensor pixels_of(const ConvolutionProblem& problem, const Dims& strides) {
  Tensor tensor;
  tensor.type = problem.type();
  tensor.rank = 5;
  tensor.dims = {problem.batch, problem.in_channels, problem.out[0], problem.out[1],
                 problem.out[2]};
  std::copy(strides.begin(), strides.end(), tensor.strides.begin());
  return tensor;
}

StagedOperand staged(const ConvolutionProblem& problem) {
  Dims strides = problem.x_strides;
  for (int i = 0; i < 3; ++i) strides[2 + i] *= problem.stride[i];
  return {"x", pixels_of(problem, strides),
          pixels_of(problem, with_picked_pixels(problem).x_strides)};
}

}  // namespace

bool picks_pixels(const ConvolutionProblem& problem) {
  if (problem.pass == ConvolutionPass::dgrad || problem.taps() != 1) return false;
  bool strided = false;
  for (int i = 0; i < 3; ++i) {
    strided = strided || problem.stride[i] > 1;
    if (problem.pad[i] != 0 || (problem.out[i] - 1) * problem.stride[i] >= problem.in[i])
      return false;
  }
  return strided;
}

std::string picked_pixels_refusal(const ConvolutionProblem& problem) {
  if (const std::size_t bytes = picked_pixels_bytes(problem); bytes > most_workspace)
    return cat("the pixels that a stride leaves have ", bytes,
               " bytes; expected at most the largest workspace, ", most_workspace);
  return "";
}

std::size_t picked_pixels_bytes(const ConvolutionProblem& problem) {
  return picks_pixels(problem) ? staged(problem).bytes() : 0;
}

double picked_pixels_seconds(const ConvolutionProblem& problem, const DeviceDescription& device) {
  if (!picks_pixels(problem)) return 0;
  // What is read are whole rows; element by element, at half of the memory's rate.
  constexpr double slower = 2;
  const double bytes = static_cast<double>(picked_pixels_bytes(problem)) *
                       static_cast<double>(1 + problem.stride[2]);
  return clocks_to_seconds(0, slower * bytes, device);
}

ConvolutionProblem with_picked_pixels(const ConvolutionProblem& problem) {
  if (!picks_pixels(problem)) return problem;
  ConvolutionProblem picked = problem;
  picked.in = problem.out;
  picked.stride = {1, 1, 1};
  const std::int64_t row = problem.out[2], plane = row * problem.out[1],
                     volume = plane * problem.out[0];
  picked.x_strides = {problem.in_channels * volume, volume, plane, row, 1};
  return picked;
}

Proposal behind_picked_pixels(Proposal second, const ConvolutionProblem& problem,
                              const DeviceDescription& device) {
  if (!picks_pixels(problem) || second.launch.empty) return second;
  return behind_staging(std::move(second), problem, staged(problem), device);
}

}  // namespace kiln
