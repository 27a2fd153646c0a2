#include "engines/conv/tile/vector_copies.hpp"

#include "core/text.hpp"

namespace kiln {

CopiedOperand copied_source(const ConvolutionProblem& problem, const Gather& gather) {
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  return {dgrad ? "dy" : "x", dgrad ? "filters" : "channels", gather.channels,
          gather.source_strides};
}

Refusal copies_refusal(const ConvolutionProblem& problem, const CopiedOperand& operand) {
  constexpr std::int64_t bytes = copied_bytes;
  if (problem.alignment < bytes)
    return Refusal{cat("the alignment is ", problem.alignment, " bytes; expected ", bytes,
                       ", which are copied at a time")};
  const std::int64_t vector = bytes / static_cast<std::int64_t>(size_of(problem.type()));
  if (operand.count % vector != 0)
    return Refusal{cat(operand.count, " ", operand.channels, " a group; expected a multiple of ",
                       vector, ", which are copied at a time")};
  if (operand.strides[1] != 1)
    return Refusal{cat("the ", operand.channels, " of ", operand.tensor,
                       " are not contiguous (stride 1), as channels-last layout has them")};
  for (const int i : {0, 2, 3, 4})
    if (operand.strides[i] % vector != 0)
      return Refusal{cat("a stride of ", operand.tensor, " is ", operand.strides[i],
                         "; expected a multiple of ", vector, ", for copies of ", bytes, " bytes")};
  return {};
}

Refusal vector_strides_refusal(const char* tensor, const Dims& strides, std::int64_t vector) {
  if (strides[1] != 1)
    return cat("the channels of ", tensor,
               " are not contiguous (stride 1), as channels-last layout has them");
  for (const std::size_t i : {0, 2, 3, 4})
    if (strides[i] % vector != 0 || strides[i] < 0)
      return cat("a stride of ", tensor, " is ", strides[i], "; expected a multiple of ", vector,
                 ", for copies of 16 bytes");
  return {};
}

}  // namespace kiln
