// Any operation's problem, and what can be asked of all of them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "problem/convolution.hpp"
#include "problem/local.hpp"
#include "problem/pointwise.hpp"
#include "problem/pooling.hpp"
#include "problem/reduction.hpp"
#include "problem/softmax.hpp"

namespace kiln {

using Problem = std::variant<ConvolutionProblem, PoolingProblem, SoftmaxProblem, PointwiseProblem,
                             ReductionProblem, LocalProblem>;

// The operation's command: "conv", "local", "pool", "act", "softmax", "tensor".
const char* command_of(const Problem& problem);

// Flags and line, as the command takes them.
std::string line_of(const Problem& problem);

// Command and line: the problem as the program takes it, and its name in every log line.
std::string text_of(const Problem& problem);

// In the order of the execution's operands; the result is the last.
std::vector<Operand> operands_of(const Problem& problem);

// The type of arithmetic, alpha and beta.
DataType scalar_type(const Problem& problem);

// The least work of the operation, whatever the kernel: floating-point operations of convolutions
// and locally connected layers (0 for the others), and the bytes of every operand's elements,
// counted once (the output twice if it is read).
struct Work {
  double flops = 0, bytes = 0;
};
Work work_of(const Problem& problem, bool reads_output);

}  // namespace kiln
