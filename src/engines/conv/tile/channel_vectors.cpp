#include "engines/conv/tile/channel_vectors.hpp"

#include <algorithm>
#include <numeric>

#include "core/text.hpp"
#include "engines/conv/tile/vector_copies.hpp"

namespace kiln {

Refusal channel_vectors_refusal(const ConvolutionProblem& problem, const Gather& gather) {
  if (auto refused = volume_refusal(gather)) return refused;
  return channel_vectors_refusal(problem, gather, channel_vector(problem.type()));
}

Refusal volume_refusal(const Gather& gather) {
  for (const Gather::Phase& phase : gather.phases)
    if (gather.source[0] != 1 || phase.pixels[0] != 1 || phase.taps[0] > 1)
      return "three dimensions of space; this engine takes one and two";
  return {};
}

Refusal channel_vectors_refusal(const ConvolutionProblem& problem, const Gather& gather,
                                std::int64_t vector) {
  const std::int64_t bytes = vector * static_cast<std::int64_t>(size_of(problem.type()));
  for (const std::int64_t channels :
       {problem.groups * gather.channels, problem.groups * gather.rows})
    if (channels % vector != 0) return cat(channels, " channels; expected a multiple of ", vector);
  if (problem.alignment < bytes)
    return cat("the alignment is ", problem.alignment, " bytes; expected ", bytes);
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  const char* const out = dgrad ? "dx" : problem.pass == ConvolutionPass::wgrad ? "dy" : "y";
  if (auto refused = vector_strides_refusal(dgrad ? "dy" : "x", gather.source_strides, vector))
    return refused;
  if (auto refused = vector_strides_refusal(out, gather.out_strides, vector)) return refused;
  for (const Gather::Phase& phase : gather.phases)
    if (phase.out_first % vector != 0)
      return cat("with this stride, some pixels of dx begin at no multiple of ", bytes, " bytes");
  if (gather.z_strides != gather.out_strides)
    return "z and the output have different strides; this engine takes equal ones";
  return {};
}

std::int64_t fitting_vector(const ConvolutionProblem& problem, const Gather& gather) {
  for (const std::int64_t vector : {channel_vector(problem.type()), std::int64_t{2}})
    if (!channel_vectors_refusal(problem, gather, vector) && !group_rows_refusal(vector, gather))
      return vector;
  return 1;
}

std::int64_t group_inputs(std::int64_t vector, const Gather& gather) {
  return std::max<std::int64_t>(vector / gather.rows, 1) * gather.channels;
}

std::int64_t input_access(std::int64_t vector, const Gather& gather) {
  return std::gcd(vector, group_inputs(vector, gather));
}

Refusal group_rows_refusal(std::int64_t vector, const Gather& gather) {
  if (vector % gather.rows == 0 || gather.rows % vector == 0) return {};
  return cat(gather.rows, " output channels a group; expected a divisor or a multiple of ", vector);
}

}  // namespace kiln
