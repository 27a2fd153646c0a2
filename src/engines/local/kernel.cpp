#include "engines/local/kernel.hpp"

#include <cstddef>
#include <vector>

#include "core/text.hpp"
#include "engines/cost/chips.hpp"
#include "local/local_params.h"

namespace kiln {

KernelSpec local_kernel(const std::string& name, const LocalProblem& problem) {
  const ConvolutionProblem& conv = problem.conv;
  KernelSpec spec;
  spec.engine = name;
  spec.file = cat("local/", name, ".cu");
  spec.entry = name;
  spec.alignment = size_of(conv.type());
  const auto add = [&](const char* constant, auto value) {
    spec.constants.push_back({constant, value, ""});
  };
  const auto add_list = [&](const char* constant, const auto& values) {
    add(constant, std::vector<std::int64_t>(values.begin(), values.end()));
  };
  add("element_t", kernel_type(conv.type()));
  add("compute_t", kernel_type(compute_type(conv.type())));
  add("output_t", kernel_type(conv.result_type()));
  add("GROUPS", conv.groups);
  add("CHANNELS", conv.group_in());
  add("ROWS", conv.group_out());
  add_list("IN", conv.in);
  add_list("OUT", conv.out);
  add_list("FILTER", conv.filter);
  add_list("PAD", conv.pad);
  add_list("STRIDE", conv.stride);
  add_list("DILATION", conv.dilation);
  add("FLIPPED", conv.mode == KILN_CONVOLUTION);
  add("BIAS", problem.bias);
  add_list("X_STRIDE", conv.x_strides);
  add_list("Y_STRIDE", conv.y_strides);
  add_list("OUTER_STRIDE", problem.outer_strides);
  add_list("W_STRIDE", conv.w_strides);
  Dims bias{};
  for (int i = 0; i < operand_rank; ++i) bias[i] = problem.bias_stride(i);
  add_list("BIAS_STRIDE", bias);
  return spec;
}

LaunchSpec local_launch(const LocalProblem& problem, std::int64_t blocks, std::int64_t threads,
                        std::uint32_t shared_memory) {
  LaunchSpec launch;
  launch.empty = blocks == 0;
  launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(threads), 1, 1};
  launch.shape.shared_memory = shared_memory;
  LocalParams params{};
  params.images = problem.conv.batch;
  launch.set_parameters(params);
  const std::vector<Operand> operands = operands_of(problem);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string_view name = operands[i].name;
    const std::size_t offset = operands[i].written ? offsetof(LocalParams, out)
                               : name == "x"       ? offsetof(LocalParams, x)
                               : name == "w"       ? offsetof(LocalParams, w)
                               : name == "dy"      ? offsetof(LocalParams, dy)
                                                   : offsetof(LocalParams, bias);
    launch.patches.push_back({LaunchSpec::Hole::operand, static_cast<std::uint8_t>(i),
                              static_cast<std::uint16_t>(offset)});
  }
  launch.patches.push_back({LaunchSpec::Hole::alpha, 0, offsetof(LocalParams, alpha)});
  launch.patches.push_back({LaunchSpec::Hole::beta, 0, offsetof(LocalParams, beta)});
  return launch;
}

double local_seconds(const Problem& problem, double instructions, double waste,
                     const DeviceDescription& device) {
  constexpr double launch_clocks = 1000;
  // A multiprocessor takes 3.5 clocks for as many instructions as it could issue in one: with that,
  // 12 forward layers take 0.8 to 1.7 times their estimate, data gradients up to 3.3 times (H200).
  constexpr double clocks_of_issue = 3.5;
  const double clocks = launch_clocks + clocks_of_issue * instructions /
                                            (warp * issue_width * device.multiprocessors);
  return clocks_to_seconds(clocks, work_of(problem, false).bytes * waste, device);
}

std::int64_t images_at_once(const LocalProblem& problem, std::int64_t most) {
  std::int64_t images = 1;
  while (!problem.per_image() && images < most && images < problem.conv.batch) images *= 2;
  return images;
}

}  // namespace kiln
