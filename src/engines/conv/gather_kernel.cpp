// The constants, launch and parameters that a gathering kernel gets from its gather.
#include <cstddef>
#include <utility>

#include "conv/geometry/gather_params.h"
#include "conv/geometry/wgrad_params.h"
#include "core/text.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {
namespace {

constexpr const char* axis[] = {"D", "H", "W"};
constexpr const char* out_axis[] = {"O", "P", "Q"};
constexpr const char* tap_axis[] = {"T", "R", "S"};

}  // namespace

std::vector<Constant> gather_constants(const ConvolutionProblem& problem, const Gather& gather) {
  std::vector<Constant> out;
  out.reserve(96);
  const auto add = [&](std::string name, auto value, const char* comment = "") {
    out.push_back({std::move(name), value, comment});
  };
  add("element_t", kernel_type(problem.type()));
  add("output_t", kernel_type(problem.result_type()));
  add("compute_t", kernel_type(compute_type(problem.type())));
  add("CHANNELS", gather.channels, "channels of a group that are summed over");
  add("ROWS", gather.rows, "channels of a group in the output");
  for (int i = 0; i < 3; ++i) {
    add(cat("SOURCE_", axis[i]), gather.source[i]);
    add(cat("STRIDE_", axis[i]), gather.stride[i]);
    add(cat("STEP_", axis[i]), gather.step[i]);
    add(cat("PADDED_", axis[i]), gather.leaves_source(i));
  }
  add("PHASES", static_cast<std::int64_t>(gather.phases.size()));
  const auto add_phases = [&](std::string name, const auto& value) {
    std::vector<std::int64_t> values;
    for (const Gather::Phase& phase : gather.phases) values.push_back(value(phase));
    add(std::move(name), values);
  };
  using Phase = Gather::Phase;
  for (int i = 0; i < 3; ++i) {
    add_phases(cat("OUT_", out_axis[i]), [i](const Phase& phase) { return phase.pixels[i]; });
    add_phases(cat("FILTER_", tap_axis[i]), [i](const Phase& phase) { return phase.taps[i]; });
    add_phases(cat("ORIGIN_", axis[i]), [i](const Phase& phase) { return phase.origin[i]; });
  }
  add_phases("W_FIRST", [](const Phase& phase) { return phase.w_first; });
  add_phases("OUT_FIRST", [](const Phase& phase) { return phase.out_first; });
  add_phases("Z_FIRST", [](const Phase& phase) { return phase.z_first; });
  const auto add_strides = [&](const char* tensor, const char* const(&names)[5],
                               const Dims& strides) {
    for (int i = 0; i < 5; ++i) add(cat(tensor, "_STRIDE_", names[i]), strides[i]);
  };
  add_strides("SOURCE", {"N", "C", "D", "H", "W"}, gather.source_strides);
  add_strides("W", {"ROW", "C", "T", "R", "S"},
              {gather.w_row, gather.w_channel, gather.w_tap[0], gather.w_tap[1], gather.w_tap[2]});
  add("W_STRIDE_GROUP", gather.w_group);
  add("SOURCE_STRIDE_GROUP", gather.source_group);
  add_strides("OUT", {"N", "ROW", "O", "P", "Q"}, gather.out_strides);
  add_strides("Z", {"N", "ROW", "O", "P", "Q"}, gather.z_strides);
  add("RESIDUAL", problem.epilogue.residual,
      "beta scales the tensor z; else the output's old values");
  add("RESIDUAL_LAST", problem.epilogue.residual_last, "beta's term is added after the activation");
  add("BIAS", problem.epilogue.bias);
  add("BIAS_STRIDE", problem.bias_stride);
  add("OUT_STRIDE_GROUP", gather.out_group);
  add("Z_STRIDE_GROUP", gather.z_group);
  add("BIAS_STRIDE_GROUP", gather.bias_group);
  add("ACTIVATION", static_cast<std::int64_t>(problem.epilogue.activation.mode),
      "a value of kilnActivationMode_t");
  return out;
}

LaunchSpec gather_launch(const ConvolutionProblem& problem, std::int64_t phase_tiles,
                         std::int64_t blocks, std::uint32_t threads, std::uint32_t shared_memory) {
  LaunchSpec launch;
  launch.empty = problem.batch == 0;
  launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.shape.block = {threads, 1, 1};
  launch.shape.shared_memory = shared_memory;
  GatherParams params{};
  params.images = problem.batch;
  params.tiles = phase_tiles;
  params.coef[0] = problem.epilogue.activation.coefficient;
  params.coef[1] = problem.epilogue.activation.coefficient2;
  launch.set_parameters(params);
  // Operands in order, those that exist: x, w, z, bias, y; or w, dy, z, bias, dx.
  const std::vector<Operand> operands = operands_of(problem);
  const auto patch = [&](std::string_view name, std::size_t offset) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].name == name)
        launch.patches.push_back({LaunchSpec::Hole::operand, static_cast<std::uint8_t>(i),
                                  static_cast<std::uint16_t>(offset)});
  };
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  patch(dgrad ? "dy" : "x", offsetof(GatherParams, source));
  patch("w", offsetof(GatherParams, w));
  patch("bias", offsetof(GatherParams, bias));
  patch(problem.epilogue.residual ? "z" : operands.back().name, offsetof(GatherParams, z));
  patch(operands.back().name, offsetof(GatherParams, out));
  launch.patches.push_back({LaunchSpec::Hole::alpha, 0, offsetof(GatherParams, alpha)});
  launch.patches.push_back({LaunchSpec::Hole::beta, 0, offsetof(GatherParams, beta)});
  return launch;
}

LaunchSpec wgrad_launch(const ConvolutionProblem& problem, std::int64_t blocks,
                        std::uint32_t threads, std::uint32_t shared_memory) {
  LaunchSpec launch;  // also for an empty batch, whose gradient of zeros has to be stored
  launch.shape.grid = {static_cast<std::uint32_t>(blocks), 1, 1};
  launch.shape.block = {threads, 1, 1};
  launch.shape.shared_memory = shared_memory;
  WgradParams params{};
  const std::int64_t pixels = problem.batch * problem.out_pixels();
  params.pixels = static_cast<unsigned long long>(pixels);
  launch.set_parameters(params);
  using Hole = LaunchSpec::Hole;
  launch.patches = {{Hole::operand, 0, offsetof(WgradParams, x)},
                    {Hole::operand, 1, offsetof(WgradParams, dy)},
                    {Hole::operand, 2, offsetof(WgradParams, dw)},
                    {Hole::alpha, 0, offsetof(WgradParams, alpha)},
                    {Hole::beta, 0, offsetof(WgradParams, beta)}};
  return launch;
}

}  // namespace kiln
