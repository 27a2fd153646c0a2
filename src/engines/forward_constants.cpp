#include "engines/forward_constants.hpp"

#include <cstddef>

#include "conv/forward_params.h"
#include "core/text.hpp"

namespace kiln {
namespace {

constexpr const char* axis[] = {"D", "H", "W"};
constexpr const char* tap_axis[] = {"T", "R", "S"};

struct TapWalk {
  std::int64_t origin, step;
};

TapWalk tap_walk(const ConvolutionProblem& problem, int i) {
  const std::int64_t step = problem.dilation[i];
  if (problem.mode == KILN_CROSS_CORRELATION) return {-problem.pad[i], step};
  return {(problem.filter[i] - 1) * step - problem.pad[i], -step};
}

}  // namespace

std::vector<Constant> forward_constants(const ConvolutionProblem& problem) {
  std::vector<Constant> out;
  out.reserve(64);
  const auto add = [&](std::string name, auto value, const char* comment = "") {
    out.push_back({std::move(name), value, comment});
  };
  add("element_t", kernel_type(problem.type));
  add("compute_t", kernel_type(compute_type(problem.type)));
  add("CHANNELS", problem.group_in(), "of one group");
  add("FILTERS", problem.group_out(), "of one group");
  for (int i = 0; i < 3; ++i) {
    const TapWalk walk = tap_walk(problem, i);
    add(cat("IN_", axis[i]), problem.in[i]);
    add(cat("FILTER_", tap_axis[i]), problem.filter[i]);
    add(cat("STRIDE_", axis[i]), problem.stride[i]);
    add(cat("ORIGIN_", axis[i]), walk.origin);
    add(cat("STEP_", axis[i]), walk.step);
  }
  add("OUT_O", problem.out[0]);
  const auto add_strides = [&](const char* tensor, const char* const(&names)[5],
                               const std::array<std::int64_t, 5>& strides) {
    for (int i = 0; i < 5; ++i) add(cat(tensor, "_STRIDE_", names[i]), strides[i]);
  };
  add_strides("X", {"N", "C", "D", "H", "W"}, problem.x_strides);
  add_strides("W", {"K", "C", "T", "R", "S"}, problem.w_strides);
  add_strides("Y", {"N", "K", "O", "P", "Q"}, problem.y_strides);
  return out;
}

LaunchSpec forward_launch(const ConvolutionProblem& problem, std::int64_t blocks,
                          std::uint32_t threads, std::uint32_t shared_memory) {
  LaunchSpec launch;
  launch.empty = problem.batch == 0;
  launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.shape.block = {threads, 1, 1};
  launch.shape.shared_memory = shared_memory;
  ForwardParams params{};
  params.images = problem.batch;
  params.pixels = problem.batch * problem.out_pixels();
  launch.set_parameters(params);
  using Hole = LaunchSpec::Hole;
  launch.patches = {{Hole::operand, 0, offsetof(ForwardParams, x)},
                    {Hole::operand, 1, offsetof(ForwardParams, w)},
                    {Hole::operand, 2, offsetof(ForwardParams, y)},
                    {Hole::alpha, 0, offsetof(ForwardParams, alpha)},
                    {Hole::beta, 0, offsetof(ForwardParams, beta)}};
  return launch;
}

std::int64_t image_span(const std::array<std::int64_t, 5>& strides, std::int64_t channels,
                        const Spatial& sizes) {
  std::int64_t span = 1 + (channels - 1) * strides[1];
  for (int i = 0; i < 3; ++i) span += (sizes[i] - 1) * strides[2 + i];
  return span;
}

bool leaves_input(const ConvolutionProblem& problem, int i) {
  const std::int64_t last =
      (problem.out[i] - 1) * problem.stride[i] + (problem.filter[i] - 1) * problem.dilation[i];
  return problem.pad[i] > 0 || last - problem.pad[i] >= problem.in[i];
}

}  // namespace kiln
