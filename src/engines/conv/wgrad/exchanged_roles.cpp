#include "engines/conv/wgrad/exchanged_roles.hpp"

#include <algorithm>
#include <utility>

namespace kiln {

bool exchanges_roles(const ConvolutionProblem& problem) {
  const bool unit = std::all_of(problem.stride.begin(), problem.stride.end(),
                                [](std::int64_t stride) { return stride == 1; });
  return problem.pass == ConvolutionPass::wgrad && unit && problem.groups == 1 &&
         problem.out_channels < problem.in_channels;
}

// dw[k, c, r] is the sum of dy[k, p] x[c, p + r d - pad] over pixels p of dy. With p' = p + r d -
// pad and r' = R - 1 - r it is the sum of dy[k, p' + r' d - ((R - 1) d - pad)] x[c, p'] over pixels
// p' of x.
ConvolutionProblem with_roles_exchanged(const ConvolutionProblem& problem) {
  if (!exchanges_roles(problem)) return problem;
  ConvolutionProblem out = problem;
  std::swap(out.in_channels, out.out_channels);
  std::swap(out.in, out.out);
  std::swap(out.x_strides, out.y_strides);
  std::swap(out.w_strides[0], out.w_strides[1]);
  for (std::size_t i = 0; i < out.pad.size(); ++i)
    out.pad[i] = (problem.filter[i] - 1) * problem.dilation[i] - problem.pad[i];
  out.mode = problem.mode == KILN_CONVOLUTION ? KILN_CROSS_CORRELATION : KILN_CONVOLUTION;
  return out;
}

Proposal for_exchanged_roles(Proposal proposal) {
  const auto exchange = [](LaunchSpec& launch) {
    for (LaunchSpec::Patch& patch : launch.patches)
      if (patch.hole == LaunchSpec::Hole::operand && patch.operand < 2)
        patch.operand = static_cast<std::uint8_t>(1 - patch.operand);
  };
  for (Step& step : proposal.steps) exchange(step.launch);
  return proposal;
}

}  // namespace kiln
