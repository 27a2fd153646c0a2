// The cost model over measured candidates: how good its choices are with given constants.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "cli/fit/candidates.hpp"
#include "engines/cost/fitted.hpp"

namespace kiln::cli::fit {

using Engines = std::set<const Engine*>;

struct Quality {
  int candidates = 0;    // whose estimates count for rms_error
  double rms_error = 0;  // of the logarithm of estimate over measurement: 0.1 is about 10%
  int problems = 0;      // with at least two candidates
  int close = 0;         // of them, where the choice is within 10% of the best
  double mean_regret = 0, worst_regret = 0;
};

class Model {
 public:
  Model(MeasuredSet& set, DeviceDescription device, int threads);

  // The engines whose estimates a family's constants change: found by changing them. An engine that
  // copies tensors for another one's kernel is in none: the choice of that kernel is remembered, so
  // its estimates are those of the program's own constants throughout.
  const Engines& engines_of(const std::string& family) const { return engines_.at(family); }

  // All whose estimates constants may change.
  const Engines& engines() const { return all_; }

  // Estimates the candidates of these engines anew, in the problems that are not left out unless
  // `all`.
  void estimate(const FittedConstants& constants, const Engines& engines, bool all = true);

  // Of problems for which `wanted` holds. rms_error counts candidates of these engines, the rest
  // problems that have one.
  Quality quality(const Engines& engines,
                  const std::function<bool(const MeasuredProblem&)>& wanted) const;

  // What a fit makes small, over problems that are not left out and have candidates of these
  // engines: the mean regret of the choice, where estimates within 2% of the least share the
  // choice, and half the mean square of the logarithm of estimate over measurement.
  double loss(const Engines& engines) const;

 private:
  MeasuredSet& set_;
  const DeviceDescription device_;
  const int threads_;
  Engines all_;
  std::map<std::string, Engines> engines_;
};

}  // namespace kiln::cli::fit
