#include "engines/conv/channel_sums/gradient_finish.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "conv/channel_sums/gradient_params.h"
#include "engines/conv/channel_sums/channel_finish.hpp"

namespace kiln {

void add_gradient_constants(KernelSpec& spec, const NormalizationGradient& gradient) {
  spec.constants.push_back({"GRADIENT_OF", static_cast<std::int64_t>(gradient.activation.mode),
                            "the activation whose gradient is taken"});
  spec.constants.push_back({"GRADIENT_FROM_OUTPUT", gradient_from_output(gradient.activation),
                            "its derivative is a function of its value"});
  spec.constants.push_back(
      {"NORM_RESIDUAL", gradient.residual, "the normalization added a residual"});
}

Step gradient_finish(const PartsOfSums& of, const ConvolutionProblem& problem,
                     const std::string& engine) {
  const std::vector<Operand> operands = operands_of(problem);
  const std::int64_t channels = operands.back().dims[1];
  Step out = channel_finish(engine, "conv/channel_sums/gradient_finish.cu", "gradient_finish",
                            channels, std::max(of.at_most, of.parts));
  LaunchSpec& launch = out.launch;
  GradientFinishParams params{};
  params.channels = static_cast<unsigned>(channels);
  params.rows = static_cast<unsigned>(of.rows);
  params.parts = static_cast<unsigned>(of.parts);
  launch.set_parameters(params);
  launch.patches.push_back(
      {LaunchSpec::Hole::workspace, 0, offsetof(GradientFinishParams, partials)});
  const auto patch = [&](std::string_view name, std::size_t offset) {
    patch_operand(launch, operands, name, offset);
  };
  patch("norm_deviation", offsetof(GradientFinishParams, deviation));
  patch("norm_dscale", offsetof(GradientFinishParams, dscale));
  patch("norm_dbias", offsetof(GradientFinishParams, dbias));
  return out;
}

}  // namespace kiln
