#include "engines/conv/dense/epilogue/gradient.hpp"

#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/channel_sums/channel_finish.hpp"
#include "engines/conv/channel_sums/gradient_finish.hpp"
#include "engines/conv/dense/promotion.hpp"
#include "engines/conv/dense/refusal.hpp"
#include "engines/conv/maps/tensor_maps.hpp"

namespace kiln {
namespace {

// Those whose derivatives take a few instructions.
bool is_brief(const Activation& activation) {
  switch (activation.mode) {
    case KILN_ACTIVATION_IDENTITY:
    case KILN_ACTIVATION_RELU:
    case KILN_ACTIVATION_LEAKY_RELU:
    case KILN_ACTIVATION_CLIPPED_RELU:
    case KILN_ACTIVATION_CLIP: return true;
    default: return false;
  }
}

}  // namespace

Refusal dense_gradient_refusal(const ConvolutionProblem& problem, const Gather& gather) {
  if (!problem.epilogue.gradient) return {};
  const NormalizationGradient& gradient = *problem.epilogue.gradient;
  if (size_of(problem.type()) != 2)
    return "a normalization's gradient of f32; expected tensors of 16 bits";
  if (!is_brief(gradient.activation))
    return "the gradient of an activation of many instructions, which a pass hides";
  if (gather.phases.size() > 1) return "a normalization's gradient behind a strided data gradient";
  if (problem.batch == 0) return "the sums of an empty batch";
  if (dense_store_pixels(problem, gather) > 0)
    return "a normalization's gradient whose channels are not contiguous";
  const Dims strides = operands_of(problem).back().strides;
  if (problem.norm_x_strides != strides ||
      (gradient.residual && problem.norm_residual_strides != strides))
    return "a normalization's tensors with other strides than the result";
  const std::int64_t channels = dense_lines(problem, gather, 0).channels,
                     steps = gather.most_taps() * ceil_div(gather.channels, channels);
  if (channels * 2 != 128)
    return cat("a normalization's gradient behind ", gather.channels,
               " channels, which are copied in lines of ", channels, "; expected lines of 64");
  if (steps > dense_promotion(channels))
    return cat("a normalization's gradient of sums over ", gather.channels * gather.most_taps(),
               " products, which are promoted; expected at most ",
               dense_promotion(channels) * channels);
  return {};
}

Proposal with_gradient(Proposal plain, const RowParts& parts, const ConvolutionProblem& problem,
                       const DeviceDescription& device) {
  const NormalizationGradient& gradient = *problem.epilogue.gradient;
  Proposal out = std::move(plain);
  out.first().kernel.file = "conv/dense/epilogue/dense_gradient_wgmma.cu";
  out.first().kernel.entry = "dense_gradient_wgmma";
  out.first().kernel.tile += ", normalization's gradient in the epilogue";
  add_gradient_constants(out.first().kernel, gradient);
  LaunchSpec& launch = out.first().launch;
  launch.shape.grid[0] = static_cast<std::uint32_t>(parts.blocks());
  const std::size_t first = launch.parameters.size();
  launch.parameters.resize(first + tensor_map_alignment);
  const std::vector<Operand> operands = operands_of(problem);
  std::size_t at = first;
  for (const std::string_view name : {"norm_scale", "norm_bias", "norm_mean", "norm_deviation"}) {
    patch_operand(launch, operands, name, at);
    at += sizeof(void*);
  }
  launch.patches.push_back({LaunchSpec::Hole::workspace, 0, static_cast<std::uint16_t>(at)});
  out.steps.push_back(gradient_finish({parts.padded_rows(), parts.parts(), device.multiprocessors},
                                      problem, out.first().kernel.engine));
  out.workspace = parts.workspace(partial_sums_bytes);
  return out;
}

}  // namespace kiln
