// A computed output against the double-precision reference.
//
// An f32 (f64) kernel sums K = C/g * taps products; partial sum s_i is rounded with an error of at
// most u |s_i|, u = 2^-24 (2^-53). Taking these errors as independent and of mean zero, Hoeffding's
// inequality bounds the error of the sum by c u sqrt(sum of s_i^2) except with probability
// 2 exp(-c^2 / 2) (Higham and Mary, "A New Approach to Probabilistic Rounding Error Analysis",
// 2019). With s the whole sum and M the sum of absolute values of the products, s_i is i/K s plus a
// random bridge whose variance, for products of two uniform numbers, gives
//   sum of s_i^2 <= 2/3 K s^2 + 0.6 M^2 <= (M + sqrt(K) |s|)^2.
// The reference, a sum in doubles, errs as much again for f64 and not to speak of for the others.
// So each output must satisfy
//   |y - r| <= |alpha| c u (M + sqrt(K) |s|) + 4 u (|alpha| |s| + |beta| |y0|) + v |r| + t / 2
// with r = alpha s + beta y0, c = 8 (16 for f64), and v and t the unit roundoff and the smallest
// subnormal of the type of y. One lost tap of average size changes y by M/K, which exceeds the
// first term up to K of about 9e5 in f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "problem/convolution.hpp"

namespace kiln::cli {

struct Scaling {
  double alpha = 1, beta = 0;  // exact in the compute type
};

struct Comparison {
  std::int64_t outputs = 0;    // of the problem
  std::int64_t checked = 0;    // of them, compared with the reference
  std::int64_t unwritten = 0;  // of them, still as they were poisoned (looked for if beta is 0)
  std::int64_t stray = 0;      // elements between the outputs that were written over
  double relative_rms = 0;     // ||y - r|| / ||r|| over the checked outputs
  double max_error = 0;        // the largest |y - r| / (|alpha| M + |beta y0|)
  double max_bound_share = 0;  // the largest |y - r| as a share of its bound
  std::string worst;           // that output: "y[0,3,0,7,9] is 1.25; expected 1.5"

  bool passed() const { return unwritten == 0 && stray == 0 && max_bound_share <= 1; }
  std::string complaint() const;  // a clause; "" if passed
};

// Memory of x, w, y before (y0) and after (y) as operand.hpp has it. Every output is checked where
// that takes about a second; else a random sample of at least 4096 and the corners of the output, a
// quarter of it along the output's edges. Whether outputs were written is always looked at for all.
Comparison compare_forward(const ConvolutionProblem& problem, const Scaling& scaling,
                           std::span<const std::byte> x, std::span<const std::byte> w,
                           std::span<const std::byte> y0, std::span<const std::byte> y,
                           std::uint64_t seed);

}  // namespace kiln::cli
