// The double-precision reference that every kernel is compared with: each operation by its
// definition, written to be read, threaded over outputs.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "problem/problem.hpp"
#include "problem/scalars.hpp"

namespace kiln::reference {

// One output. A kernel that computes in the compute type may miss `value` by `allowed`, before it
// rounds to the output's own type; how that bound comes about stands with each operation. `scale`
// is what errors are quoted against: the sum of the absolute values that the output is a sum of.
struct Expected {
  double value = 0, allowed = 0, scale = 0;
  // A convolution's output that is NaN because padding meets a NaN or an infinity: the value
  // without the products of padding, which engines may skip. Either is right.
  std::optional<double> without_padding{};

  // The right value that `output` is compared with, where several are right.
  double value_for(double output) const {
    return without_padding && !std::isnan(output) ? *without_padding : value;
  }
};

// The outputs at `indices` (dense numbers of the result's elements). operands: the memory of every
// operand, in the order and layout of operands_of(problem), results as they were before: the last
// one is read if beta is not 0. A convolution's moments and a gradient's sums are those of its
// result as it was stored, so for them the last one is as it is afterwards. 0 threads: as many as
// the machine has. result: the number of the operand whose elements are asked for; -1: the last
// one.
std::vector<Expected> expect(const Problem& problem, const Scalars& scalars,
                             std::span<const void* const> operands,
                             std::span<const std::int64_t> indices, int threads = 0,
                             int result = -1);

// Number of input elements per output, which determines the time of expect().
double terms_of_output(const Problem& problem);

// ---- one operation each: what expect() calls ---------------------------------------------------

struct Request {
  const Scalars& scalars;
  std::span<const void* const> operands;
  std::span<const std::int64_t> indices;
  int threads;
  std::size_t result;  // the operand that is asked for: of operations with one result, the last
};
std::vector<Expected> expect(const ConvolutionProblem& problem, const Request& request);
std::vector<Expected> expect(const LocalProblem& problem, const Request& request);
std::vector<Expected> expect(const PoolingProblem& problem, const Request& request);
std::vector<Expected> expect(const SoftmaxProblem& problem, const Request& request);
std::vector<Expected> expect(const PointwiseProblem& problem, const Request& request);
std::vector<Expected> expect(const ReductionProblem& problem, const Request& request);
std::vector<Expected> expect(const NormalizationProblem& problem, const Request& request);
std::vector<Expected> expect(const MatmulProblem& problem, const Request& request);

// `gradients`, before they are rounded to dy's type, become what NormalizationPass::gradient makes
// of them. dy's own memory is not read.
void take_gradient(const NormalizationProblem& problem, const Request& request,
                   std::vector<Expected>& gradients);

double terms_of_output(const ConvolutionProblem& problem);
double terms_of_output(const LocalProblem& problem);
double terms_of_output(const PoolingProblem& problem);
double terms_of_output(const SoftmaxProblem& problem);
double terms_of_output(const PointwiseProblem& problem);
double terms_of_output(const ReductionProblem& problem);
double terms_of_output(const NormalizationProblem& problem);
double terms_of_output(const MatmulProblem& problem);

// ---- what they share ----------------------------------------------------------------------------

// Half the distance from 1 to the next number of the compute type: 2^-24 or 2^-53.
double unit_roundoff(DataType compute_type);

// The element `offset` elements into memory of `type`.
double read_element(DataType type, const void* memory, std::int64_t offset);

// Calls body(i) for 0 <= i < count on `threads` threads (0: all the machine has), in runs of
// `share`.
void parallel(std::int64_t count, int threads, const std::function<void(std::int64_t)>& body,
              std::int64_t share = 64);

// The coefficients as `type` has them: what a kernel computes with, or compares with.
Activation in_type(const Activation& activation, DataType type);
// f and its derivative, which is taken at x. At an infinity both are what they tend to.
double activate(const Activation& activation, double x);
double activation_gradient(const Activation& activation, double x);
// The derivative from the function's value, for modes with gradient_from_output().
double activation_gradient_from_output(const Activation& activation, double y);
// Near a zero of the derivative a kernel errs by a few roundoffs of 1 or x, not of its value.
bool gradient_crosses_zero(kilnActivationMode_t mode);
// Whether the derivative is one of a few numbers.
bool is_piecewise_linear(kilnActivationMode_t mode);
// What a kernel's functions may err by, beside a few roundoffs, as a share of their value: where a
// result has 16 bits they are brief.
double brief_error(DataType result);

}  // namespace kiln::reference
