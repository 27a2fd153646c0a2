// Evaluates the cost model on measured candidates: how good its choices are with given constants.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "cli/fit/candidates.hpp"
#include "engines/cost/fitted.hpp"

namespace kiln::cli::fit {

using Engines = std::set<const Method*>;  // and rewrites

struct Quality {
  int candidates = 0;    // candidates that rms_error covers
  double rms_error = 0;  // of the logarithm of estimate over measurement: 0.1 is about 10%
  int problems = 0;      // problems with at least two candidates
  int close = 0;         // those whose choice takes at most 10% longer than the best
  double mean_regret = 0, worst_regret = 0;
};

class Model {
 public:
  Model(MeasuredSet& set, DeviceDescription device, int threads);

  // The engines whose estimates depend on a family's constants, found by changing the constants.
  // Rewrites are in no family: the choice for the problems that they make is remembered, so their
  // estimates always use the library's own constants.
  const Engines& engines_of(const std::string& family) const { return engines_.at(family); }

  // All engines whose estimates depend on some constant.
  const Engines& engines() const { return all_; }

  // Estimates the candidates of these engines by the constants: in all problems, or only in those
  // that are not left out of the fit.
  void estimate(const FittedConstants& constants, const Engines& engines, bool all = true);

  // The quality of the current estimates over problems for which `wanted` holds. rms_error covers
  // the candidates of these engines; all else covers the problems with such a candidate.
  Quality quality(const Engines& engines,
                  const std::function<bool(const MeasuredProblem&)>& wanted) const;

  // The function that a fit minimizes, over problems that are not left out and have candidates of
  // these engines: the mean regret of the choice, plus half the mean square of the logarithm of
  // estimate over measurement. Estimates within some 2% of the least share the choice.
  double loss(const Engines& engines) const;

 private:
  MeasuredSet& set_;
  const DeviceDescription device_;
  const int threads_;
  Engines all_;
  std::map<std::string, Engines> engines_;
};

}  // namespace kiln::cli::fit
