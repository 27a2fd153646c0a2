#include "cli/fit/model.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include "cli/fit/constants.hpp"
#include "cli/tune/outcome.hpp"
#include "engines/answers.hpp"
#include "engines/choice.hpp"
#include "engines/engine.hpp"

namespace kiln::cli::fit {
namespace {

bool has_any(const MeasuredProblem& item, const Engines& engines) {
  return std::ranges::any_of(item.candidates, [&](const MeasuredCandidate& candidate) {
    return engines.contains(candidate.method);
  });
}

double log_error(const MeasuredCandidate& candidate) {
  return std::log(candidate.estimated / candidate.measured);
}

void estimate_anew(MeasuredProblem& item, const Engines& wanted, const DeviceDescription& device) {
  Engines present;
  for (const MeasuredCandidate& candidate : item.candidates)
    if (wanted.contains(candidate.method)) present.insert(candidate.method);
  for (const Method* method : present) {
    const auto answer = ask(*method, item.problem, Chooser(device));
    const auto* candidates = std::get_if<std::vector<Candidate>>(&answer);
    if (candidates == nullptr) continue;
    for (const Candidate& candidate : *candidates)
      for (MeasuredCandidate& each : item.candidates)
        if (each.method == method && same_kernel(each, candidate) &&
            each.name.parts == candidate.parts)
          each.estimated = candidate.seconds;
  }
}

// The expected regret if candidates with estimates near the least one may be chosen too, the nearer
// the likelier: the order of nearly equal estimates changes with a chip's clock.
double likely_regret(const MeasuredProblem& item) {
  constexpr double near = 0.02;
  const double least = item.candidates[item.choice()].estimated;
  const double best = item.candidates[item.best()].measured;
  double weights = 0, regrets = 0;
  for (const MeasuredCandidate& candidate : item.candidates) {
    const double weight = std::exp(-std::log(candidate.estimated / least) / near);
    weights += weight;
    regrets += weight * (candidate.measured / best - 1);
  }
  return regrets / weights;
}

}  // namespace

Model::Model(MeasuredSet& set, DeviceDescription device, int threads)
    : set_(set), device_(std::move(device)), threads_(threads) {
  constexpr double change = 1.05;
  for (const MeasuredProblem& item : set_.problems)
    for (const MeasuredCandidate& candidate : item.candidates)
      if (candidate.method->rewrite() == nullptr) all_.insert(candidate.method);
  const FittedConstants own = fitted_of(device_);
  for (const std::string& family : family_names()) {
    FittedConstants changed = own;
    for (const NamedConstant& constant : all_constants())
      if (constant.family == family) constant.of(changed) *= change;
    std::map<const MeasuredCandidate*, double> before;
    for (const MeasuredProblem& item : set_.problems)
      for (const MeasuredCandidate& candidate : item.candidates)
        before[&candidate] = candidate.estimated;
    estimate(changed, all_);
    for (MeasuredProblem& item : set_.problems)
      for (MeasuredCandidate& candidate : item.candidates) {
        const double was = before[&candidate];
        if (candidate.estimated != was) engines_[family].insert(candidate.method);
        candidate.estimated = was;
      }
    engines_[family];  // which may have none
  }
}

void Model::estimate(const FittedConstants& constants, const Engines& engines, bool all) {
  const TrialConstants trial(constants);
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i; (i = next++) < set_.problems.size();)
      if (all || !set_.problems[i].left_out) estimate_anew(set_.problems[i], engines, device_);
  };
  std::vector<std::jthread> helpers;
  for (int i = 1; i < threads_; ++i) helpers.emplace_back(work);
  work();
}

Quality Model::quality(const Engines& engines,
                       const std::function<bool(const MeasuredProblem&)>& wanted) const {
  Quality quality;
  for (const MeasuredProblem& item : set_.problems) {
    if (!wanted(item) || !has_any(item, engines)) continue;
    for (const MeasuredCandidate& candidate : item.candidates)
      if (engines.contains(candidate.method)) {
        ++quality.candidates;
        quality.rms_error += log_error(candidate) * log_error(candidate);
      }
    if (!item.compares()) continue;
    const double regret = item.regret();
    ++quality.problems;
    quality.close += 1 + regret <= tune::close_enough;
    quality.mean_regret += regret;
    quality.worst_regret = std::max(quality.worst_regret, regret);
  }
  quality.rms_error = std::sqrt(quality.rms_error / std::max(quality.candidates, 1));
  quality.mean_regret /= std::max(quality.problems, 1);
  return quality;
}

double Model::loss(const Engines& engines) const {
  constexpr double weight = 0.5;
  double regrets = 0, errors = 0;
  int problems = 0, candidates = 0;
  for (const MeasuredProblem& item : set_.problems) {
    if (item.left_out || !has_any(item, engines)) continue;
    for (const MeasuredCandidate& candidate : item.candidates)
      if (engines.contains(candidate.method)) {
        ++candidates;
        errors += log_error(candidate) * log_error(candidate);
      }
    if (!item.compares()) continue;
    ++problems;
    regrets += likely_regret(item);
  }
  return regrets / std::max(problems, 1) + weight * errors / std::max(candidates, 1);
}

}  // namespace kiln::cli::fit
