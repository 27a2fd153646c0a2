#include "engines/conv/direct/depthwise_sums.hpp"

#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include "conv/geometry/gather_params.h"
#include "core/integer.hpp"
#include "engines/conv/channel_sums/channel_finish.hpp"
#include "engines/conv/channel_sums/gradient_finish.hpp"
#include "engines/conv/channel_sums/moments_finish.hpp"

namespace kiln {
namespace {

constexpr std::int64_t pair = 2;  // channels of a thread

std::size_t bytes_of_channel(const ConvolutionProblem& problem) {
  return problem.epilogue.moments ? counted_moments_bytes : partial_sums_bytes;
}

}  // namespace

bool asks_for_sums(const ConvolutionProblem& problem) {
  return problem.epilogue.moments || problem.epilogue.gradient.has_value();
}

Refusal depthwise_sums_refusal(const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  if (!asks_for_sums(problem)) return {};
  if (problem.batch == 0) return "the sums of an empty batch";
  if (!problem.epilogue.gradient) return {};
  if (size_of(problem.type()) != 2)
    return "a normalization's gradient of f32; expected tensors of 16 bits";
  const Dims strides = operands_of(problem).back().strides;
  if (problem.norm_x_strides != strides ||
      (problem.epilogue.gradient->residual && problem.norm_residual_strides != strides))
    return "a normalization's tensors with other strides than the result";
  return {};
}

std::int64_t depthwise_sums_registers(const ConvolutionProblem& problem, std::int64_t q) {
  if (problem.epilogue.moments) return 5 * pair;
  if (!problem.epilogue.gradient) return 0;
  return 9 * pair + q * (problem.epilogue.gradient->residual ? 2 : 1);
}

std::int64_t depthwise_sums_bytes(const ConvolutionProblem& problem, std::int64_t threads) {
  if (!asks_for_sums(problem)) return 0;
  return threads * pair * static_cast<std::int64_t>(bytes_of_channel(problem));
}

std::size_t DepthwiseParts::workspace(const ConvolutionProblem& problem) const {
  if (!asks_for_sums(problem)) return 0;
  return static_cast<std::size_t>(parts * channels) * bytes_of_channel(problem);
}

void add_depthwise_sums(Proposal& proposal, const DepthwiseParts& parts, const Seen& seen) {
  const ConvolutionProblem& problem = seen.problem;
  if (!asks_for_sums(problem)) return;
  Step& step = proposal.first();
  LaunchSpec& launch = step.launch;
  std::size_t at = launch.parameters.size();
  launch.parameters.resize(round_up(at + 7 * sizeof(void*), tensor_map_alignment));
  if (problem.epilogue.moments) {
    step.kernel.file = "conv/direct/depthwise_moments_nhwc_fma.cu";
    step.kernel.entry = "depthwise_moments_nhwc_fma";
    step.kernel.tile += ", moments in the epilogue";
    proposal.steps.push_back(
        moments_finish({.rows = parts.channels,
                        .parts = parts.parts,
                        .tiles = 0,
                        .tile_pixels = 0,
                        .pixels = problem.batch * seen.gather.phases.front().out_pixels(),
                        .at_most = parts.at_most,
                        .counted = true},
                       problem, step.kernel.engine));
  } else {
    const NormalizationGradient& gradient = *problem.epilogue.gradient;
    step.kernel.file = "conv/direct/depthwise_gradient_nhwc_fma.cu";
    step.kernel.entry = "depthwise_gradient_nhwc_fma";
    step.kernel.tile += ", normalization's gradient in the epilogue";
    add_gradient_constants(step.kernel, gradient);
    const double coefficients[] = {gradient.activation.coefficient,
                                   gradient.activation.coefficient2};
    std::memcpy(launch.parameters.data() + offsetof(GatherParams, coef), coefficients,
                sizeof coefficients);
    const std::vector<Operand> operands = operands_of(problem);
    for (const std::string_view name :
         {"norm_x", "norm_residual", "norm_scale", "norm_bias", "norm_mean", "norm_deviation"}) {
      patch_operand(launch, operands, name, at);
      at += sizeof(void*);
    }
    proposal.steps.push_back(
        gradient_finish({parts.channels, parts.parts, parts.at_most}, problem, step.kernel.engine));
  }
  proposal.first().launch.patches.push_back(
      {LaunchSpec::Hole::workspace, 0, static_cast<std::uint16_t>(at)});
  proposal.workspace = parts.workspace(problem);
}

}  // namespace kiln
