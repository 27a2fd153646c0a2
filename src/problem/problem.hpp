// A problem of any operation, and functions for all of them.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "problem/convolution.hpp"
#include "problem/local.hpp"
#include "problem/matmul.hpp"
#include "problem/normalization.hpp"
#include "problem/pointwise.hpp"
#include "problem/pooling.hpp"
#include "problem/reduction.hpp"
#include "problem/softmax.hpp"

namespace kiln {

using Problem = std::variant<ConvolutionProblem, PoolingProblem, SoftmaxProblem, PointwiseProblem,
                             ReductionProblem, LocalProblem, NormalizationProblem, MatmulProblem>;

// The operation's command: "conv", "local", "pool", "act", "softmax", "norm", "tensor",
// "matmul".
const char* command_of(const Problem& problem);

// The arguments of the command: flags and line.
std::string line_of(const Problem& problem);

// Command and arguments, as `kiln` takes them. Log lines name problems by this text.
std::string text_of(const Problem& problem);

// The operands in the order of an execution; the last one is the result, or the last result.
std::vector<Operand> operands_of(const Problem& problem);

// The compute type, which alpha and beta have too.
DataType scalar_type(const Problem& problem);

// The least work of an operation with any kernel: floating-point operations of convolutions,
// locally connected layers and matrix products (0 for other operations), and the bytes of all
// operands, each counted once (the last one twice if it is read, and results that are updated).
struct Work {
  double flops = 0, bytes = 0;
};
Work work_of(const Problem& problem, bool reads_output);

}  // namespace kiln
