// A computed output against the double-precision reference: each output must satisfy
//   |y - value| <= allowed + v |value| + t / 2
// with `value` (where two are right, the one that suits y) and `allowed` as the reference gives
// them, and v and t the unit roundoff and the smallest subnormal of the type of y. What that type
// cannot hold is infinite in both; NaN answers NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "problem/problem.hpp"
#include "problem/scalars.hpp"
#include "reference/reference.hpp"

namespace kiln::cli {

struct Comparison {
  std::int64_t outputs = 0;    // of the problem
  std::int64_t checked = 0;    // of them, compared with the reference
  std::int64_t unwritten = 0;  // of them, still as they were poisoned (looked for if beta is 0)
  std::int64_t stray = 0;      // elements between the outputs that were written over
  double relative_rms = 0;     // ||y - r|| / ||r|| over the checked outputs
  double max_error = 0;        // the largest |y - r|, as a share of the terms that make it up
  double max_bound_share = 0;  // the largest |y - r| as a share of its bound
  std::string worst;           // that output: "y[0,3,0,7,9] is 1.25; expected 1.5"

  bool passed() const { return unwritten == 0 && stray == 0 && max_bound_share <= 1; }
  std::string complaint() const;  // a clause; "" if passed
};

// How much of an output is compared: all of it where the reference takes no longer than `seconds`;
// else a random sample of at least `least` and the corners of the output, a quarter of it along the
// output's edges.
struct Sampling {
  std::uint64_t seed = 0;
  double seconds = 1;
  std::int64_t least = 512;
};

// Outputs that the reference has worked out, for any number of results of one problem.
class Samples {
 public:
  // `operands`: the memory of each as it was before, in the order of operands_of(problem).
  Samples(const Problem& problem, const Scalars& scalars, std::span<const void* const> operands,
          const Sampling& sampling);

  std::vector<std::int64_t> offsets() const;  // of the chosen elements in the result's memory
  Comparison compare(std::span<const double> outputs) const;  // the elements there

 private:
  Operand result_;
  std::vector<std::int64_t> chosen_;  // numbered densely
  std::vector<reference::Expected> expected_;
};

// `memory`: of every operand as it was before, in the order of operands_of(problem); `after`: of
// the last one afterwards. Whether outputs were written is looked at for all of them, whatever is
// sampled.
Comparison compare(const Problem& problem, const Scalars& scalars,
                   const std::vector<std::vector<std::byte>>& memory,
                   std::span<const std::byte> after, std::uint64_t seed);

}  // namespace kiln::cli
