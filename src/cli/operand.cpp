#include "cli/operand.hpp"

namespace kiln::cli {

std::int64_t Operand::count() const {
  std::int64_t count = 1;
  for (auto size : dims) count *= size;
  return count;
}

std::int64_t Operand::span() const {
  std::int64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    if (dims[i] == 0) return 0;
    last += (dims[i] - 1) * strides[i];
  }
  return last + 1;
}

std::int64_t Operand::offset(std::int64_t index) const {
  std::int64_t offset = 0;
  for (int i = 5; i-- > 0; index /= dims[i]) offset += index % dims[i] * strides[i];
  return offset;
}

std::vector<bool> Operand::members() const {
  std::vector<bool> members;
  if (span() <= count()) return members;
  members.resize(span());
  const std::int64_t total = count();
  for (std::int64_t i = 0; i < total; ++i) members[offset(i)] = true;
  return members;
}

Operand x_of(const ConvolutionProblem& problem) {
  return {{problem.batch, problem.in_channels, problem.in[0], problem.in[1], problem.in[2]},
          problem.x_strides};
}

Operand w_of(const ConvolutionProblem& problem) {
  return {{problem.out_channels, problem.group_in(), problem.filter[0], problem.filter[1],
           problem.filter[2]},
          problem.w_strides};
}

Operand y_of(const ConvolutionProblem& problem) {
  return {{problem.batch, problem.out_channels, problem.out[0], problem.out[1], problem.out[2]},
          problem.y_strides};
}

}  // namespace kiln::cli
