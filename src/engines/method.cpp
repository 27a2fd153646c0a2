#include "engines/method.hpp"

#include <utility>

#include "core/text.hpp"
#include "engines/engine.hpp"
#include "engines/rewrite/rewrite.hpp"

namespace kiln {
namespace {

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
  return {};
}

}  // namespace

std::variant<std::vector<Candidate>, Refusal> ask(const Engine& engine, const Problem& problem,
                                                  const DeviceDescription& device) {
  if (auto refused = result_refusal(engine, problem)) return refused;
  return engine.candidates(problem, device);
}

std::variant<std::vector<Candidate>, Refusal> ask(const Method& method, const Problem& problem,
                                                  const InnerChoice& inner) {
  if (const Engine* const engine = method.engine()) return ask(*engine, problem, inner.device());
  if (auto refused = result_refusal(method, problem)) return refused;
  return method.rewrite()->candidates(std::get<ConvolutionProblem>(problem), inner);
}

Proposal make(const Method& method, const Problem& problem, const InnerChoice& inner,
              Candidate candidate) {
  if (const Engine* const engine = method.engine())
    return engine->make(problem, inner.device(), std::move(candidate));
  return method.rewrite()->make(std::get<ConvolutionProblem>(problem), inner, candidate);
}

}  // namespace kiln
