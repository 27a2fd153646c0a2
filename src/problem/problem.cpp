#include "problem/problem.hpp"

#include "core/text.hpp"

namespace kiln {
namespace {

struct Command {
  const char* operator()(const ConvolutionProblem&) const { return "conv"; }
  const char* operator()(const LocalProblem&) const { return "local"; }
  const char* operator()(const PoolingProblem&) const { return "pool"; }
  const char* operator()(const SoftmaxProblem&) const { return "softmax"; }
  const char* operator()(const ReductionProblem&) const { return "tensor"; }
  const char* operator()(const NormalizationProblem&) const { return "norm"; }
  const char* operator()(const MatmulProblem&) const { return "matmul"; }
  const char* operator()(const PointwiseProblem& problem) const {
    const bool activation =
        problem.op == PointwiseOp::activation || problem.op == PointwiseOp::activation_backward;
    return activation ? "act" : "tensor";
  }
};

struct ScalarType {
  DataType operator()(const ConvolutionProblem& problem) const {
    return compute_type(problem.type());
  }
  DataType operator()(const LocalProblem& problem) const { return (*this)(problem.conv); }
  DataType operator()(const PointwiseProblem& problem) const { return problem.compute_type(); }
  template <class OneType>
  DataType operator()(const OneType& problem) const {
    return compute_type(problem.type);
  }
};

// The bytes of an operand. Elements that are broadcast count once, because only these are in
// memory.
double bytes_of(const Operand& operand) {
  double elements = 1;
  for (int i = 0; i < Operand::axes; ++i)
    if (operand.stride(i) != 0 || operand.size(i) == 0)
      elements *= static_cast<double>(operand.size(i));
  return elements * static_cast<double>(size_of(operand.type));
}

}  // namespace

const char* command_of(const Problem& problem) { return std::visit(Command{}, problem); }

std::string line_of(const Problem& problem) {
  return std::visit([](const auto& value) { return to_line(value); }, problem);
}

std::string text_of(const Problem& problem) {
  return cat(command_of(problem), " ", line_of(problem));
}

std::vector<Operand> operands_of(const Problem& problem) {
  return std::visit([](const auto& value) { return operands_of(value); }, problem);
}

DataType scalar_type(const Problem& problem) { return std::visit(ScalarType{}, problem); }

Work work_of(const Problem& problem, bool reads_output) {
  Work work;
  if (const auto* convolution = std::get_if<ConvolutionProblem>(&problem))
    work.flops = convolution->flops();
  if (const auto* local = std::get_if<LocalProblem>(&problem)) work.flops = local->conv.flops();
  if (const auto* product = std::get_if<MatmulProblem>(&problem)) work.flops = product->flops();
  const std::vector<Operand> operands = operands_of(problem);
  for (const Operand& operand : operands) {
    const bool read = operand.updated || (&operand == &operands.back() && reads_output);
    work.bytes += bytes_of(operand) * (read ? 2 : 1);
  }
  return work;
}

}  // namespace kiln
