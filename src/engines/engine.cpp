#include "engines/engine.hpp"

#include "core/text.hpp"

namespace kiln {

Refusal result_refusal(const Method& method, const Problem& problem) {
  const auto* convolution = std::get_if<ConvolutionProblem>(&problem);
  if (convolution == nullptr) return {};
  if (convolution->type() != convolution->result_type() && !method.takes_mixed_types())
    return cat("a result of ", name_of(convolution->result_type()), " from tensors of ",
               name_of(convolution->type()), "; this engine takes one type");
  if (convolution->epilogue.moments && !method.makes_moments())
    return "the moments of the result, which this engine does not make";
  if (convolution->epilogue.gradient && !method.takes_gradient())
    return "a normalization's gradient, which this engine does not make";
  if (convolution->group_strides && !method.takes_group_strides())
    return cat(convolution->groups, " matrices, which lie anywhere; this engine takes one");
  return {};
}

std::variant<std::vector<Candidate>, Refusal> ask(const Engine& engine, const Problem& problem,
                                                  const DeviceDescription& device) {
  if (auto refused = result_refusal(engine, problem)) return refused;
  return engine.candidates(problem, device);
}

}  // namespace kiln
