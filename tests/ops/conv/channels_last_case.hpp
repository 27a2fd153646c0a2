// Shared by the suites of engines for few channels and small groups: channels-last problems with
// data that vary from turn to turn, filter gradients split between blocks, and infinities that no
// tap reads.
#pragma once

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>

#include "engines/conv/recipe/recipe_engine.hpp"
#include "tensor_core_case.hpp"

namespace test {

inline constexpr DataType half_types[] = {KILN_DATA_HALF, KILN_DATA_BFLOAT16};

inline ConvolutionProblem nhwc(const char* line, DataType type,
                               ConvolutionPass pass = ConvolutionPass::fprop,
                               kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION) {
  return problem_in(line, {type, KILN_MATH_DEFAULT}, KILN_TENSOR_NHWC, pass, mode);
}

// Every third filter is flipped.
inline kilnConvolutionMode_t mode_in_turn(std::size_t turn) {
  return turn % 3 == 0 ? KILN_CONVOLUTION : KILN_CROSS_CORRELATION;
}

// Small integers; every second result is scaled and added to what its tensor holds.
inline OperationCase integers_in_turn(const ConvolutionProblem& problem, std::size_t turn) {
  OperationCase item = integers_of(problem);
  if (turn % 2 == 1) {
    item.scalars = {.alpha = -2, .beta = 3};
    item.fill_integers(7, 2);
  }
  return item;
}

// How the blocks of a filter gradient share its pixels: each cluster adds up its blocks' sums in
// shared memory, and several clusters leave theirs in the workspace for a second step.
struct Split {
  int cluster, groups;
};
inline Split split_in_turn(std::size_t turn) {
  constexpr Split splits[] = {{1, 1}, {2, 1}, {1, 3}, {8, 1}, {2, 2}};
  return splits[turn % std::size(splits)];
}

// Runs a filter gradient's proposal of a split and compares the result with exact sums.
inline void check_split(const OperationCase& item, const Proposal& proposal, const Split& split) {
  const std::string fault = item.exact_fault(run_proposal(item, proposal));
  BOOST_TEST(fault.empty(), text_of(item.problem)
                                << ", " << proposal.first().kernel.tile << ", clusters of "
                                << split.cluster << ", " << split.groups << " groups: " << fault);
}

// The same for the first tile of an engine.
template <class Tile>
void check_split(const RecipeEngine<Tile>& engine, const OperationCase& item, const Split& split) {
  const auto& problem = std::get<ConvolutionProblem>(item.problem);
  const DeviceDescription& on = device()->description();
  const Tile tile = engine.tiles(problem, on).front();
  check_split(item, engine.propose(tile, problem, on, {split.cluster, split.groups}), split);
}

// Random numbers, within the reference's bounds.
inline void check_uniform(const ConvolutionProblem& problem, const char* engine, unsigned seed,
                          const Scalars& scalars = {}) {
  OperationCase item(problem);
  item.scalars = scalars;
  item.fill_uniform(seed);
  const std::string fault = check(item, engine);
  BOOST_TEST(fault.empty(), fault);
}

// A filter gradient whose stride leaves the last row and column of x out: infinities there are in
// no sum.
inline void check_infinity_beside_the_last_pixel(const ConvolutionProblem& problem,
                                                 const char* engine) {
  OperationCase item = integers_of(problem, 5);
  for (std::int64_t at = 0; at < problem.in[2]; ++at) {
    const double infinity = std::numeric_limits<double>::infinity();
    item["x"].at((problem.in[1] - 1) * problem.in[2] + at) = infinity;
    item["x"].at(at * problem.in[2] + problem.in[2] - 1) = infinity;
  }
  const HostTensor got = item.run_plan(engine);
  const std::string fault = item.exact_fault(got);
  BOOST_TEST(fault.empty(), text_of(item.problem) << ": " << fault);
  BOOST_TEST(std::all_of(got.values.begin(), got.values.end(),
                         [](double value) { return std::isfinite(value); }));
}

// Checks a problem with a NaN or infinity at one place of an operand.
inline void check_one_value(const ConvolutionProblem& problem, const char* engine,
                            const char* tensor, bool infinite) {
  OperationCase item = integers_of(problem, 5);
  replace_zeros(item);
  const auto size = static_cast<std::int64_t>(item[tensor].values.size());
  item[tensor].at(size / 3) = infinite ? std::numeric_limits<double>::infinity() : std::nan("");
  check_integers(item, engine);
}

}  // namespace test
