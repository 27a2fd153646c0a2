// Compares a computed result with the double-precision reference. Each element y must satisfy
//   |y - value| <= allowed + v |value| + t / 2
// where `value` and `allowed` are the reference's (of two right values, the one that suits y), and
// v and t are the unit roundoff and the smallest subnormal of the type of y. A value that this type
// cannot hold counts as infinite in both, and where NaN is expected y must be NaN.
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
  std::int64_t unwritten = 0;  // of them, still the poison of before (looked for if beta is 0)
  std::int64_t stray = 0;      // elements between the outputs that were written over
  double relative_rms = 0;     // ||y - r|| / ||r|| over the checked outputs
  double max_error = 0;        // the largest |y - r|, as a share of the terms that make it up
  double max_bound_share = 0;  // the largest |y - r| as a share of its bound
  std::string worst;           // that output: "y[0,3,0,7,9] is 1.25; expected 1.5"

  bool passed() const { return unwritten == 0 && stray == 0 && max_bound_share <= 1; }
  std::string complaint() const;  // a clause; "" if passed
};

// How many elements of a result are compared: all if the reference takes no longer than `seconds`;
// else its corners and at least `least` random elements, a quarter of which lie on its edges.
struct Sampling {
  std::uint64_t seed = 0;
  double seconds = 1;
  std::int64_t least = 512;
};

// The reference's values of a sample of a problem's outputs, computed once, with which any number
// of results are compared.
class Samples {
 public:
  // `operands`: the memory of each as it was before, in the order of operands_of(problem). result:
  // the number of one of them that is written; -1: the last one.
  Samples(const Problem& problem, const Scalars& scalars, std::span<const void* const> operands,
          const Sampling& sampling, int result = -1);

  std::vector<std::int64_t> offsets() const;  // of the chosen elements in the result's memory
  Comparison compare(std::span<const double> outputs) const;  // the elements there

 private:
  Operand result_;
  std::vector<std::int64_t> chosen_;  // numbered densely
  std::vector<reference::Expected> expected_;
};

// Compares the results of one execution. `memory`: of every operand before it, in the order of
// operands_of(problem); `after`: afterwards. Unwritten and stray elements are looked for in whole
// results, and inputs that changed count as stray ones; values are compared in a sample. What is
// said of values is the last result's, or the one's whose error is beyond its bound.
Comparison compare(const Problem& problem, const Scalars& scalars,
                   const std::vector<std::vector<std::byte>>& memory,
                   const std::vector<std::vector<std::byte>>& after, std::uint64_t seed);
// The same of an operation with one result, whose memory afterwards is `after`.
Comparison compare(const Problem& problem, const Scalars& scalars,
                   const std::vector<std::vector<std::byte>>& memory,
                   std::span<const std::byte> after, std::uint64_t seed);

}  // namespace kiln::cli
