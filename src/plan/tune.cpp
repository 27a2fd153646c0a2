#include "plan/tune.hpp"

#include <algorithm>
#include <limits>
#include <memory>

#include "core/error.hpp"
#include "core/log/log.hpp"
#include "plan/tuning.hpp"

namespace kiln {
namespace {

constexpr std::size_t most_candidates = 8;
constexpr int rounds = 5;  // in each, every candidate is measured once, so clock drift affects all
// Relative to the fastest candidate's time: up to `as_fast` the cost model's choice is kept; beyond
// `far_behind` in one round a candidate is not measured again.
constexpr double as_fast = 1.01, far_behind = 1.5;

struct Contestant {
  Option option;
  std::unique_ptr<Plan> plan;
  int count = 1;                // executions per measurement
  std::vector<double> samples;  // milliseconds per execution

  double least() const {
    return samples.empty() ? std::numeric_limits<double>::max()
                           : *std::min_element(samples.begin(), samples.end());
  }
  double median() const {
    std::vector<double> sorted = samples;
    std::nth_element(sorted.begin(), sorted.begin() + sorted.size() / 2, sorted.end());
    return sorted[sorted.size() / 2];
  }
};

// The candidates with the best estimates, the cost model's choice first, each with a plan that is
// not finalized yet.
std::vector<Contestant> contestants_of(const Plan& plan, const FinalizeOptions& options,
                                       const std::shared_ptr<Device>& device) {
  const Terms& terms = options.terms;
  std::vector<Contestant> contestants;
  for (Option& option : all_candidates(plan.problem(), device->description(), terms.workspace)) {
    if (terms.only_engine.empty() ? option.only_by_name : option.name.engine != terms.only_engine)
      continue;
    if (contestants.size() == most_candidates) break;
    contestants.push_back(
        {std::move(option), std::make_unique<Plan>(device, plan.problem()), 1, {}});
  }
  return contestants;
}

}  // namespace

void tune_plan(Plan& plan, const FinalizeOptions& options, std::span<void* const> operands,
               void* stream, const Workspace& workspace, double budget_milliseconds) {
  const std::shared_ptr<Device> device = plan.shared_device();
  std::vector<Contestant> contestants = contestants_of(plan, options, device);
  Scalars scalars{};
  // Running statistics stay as they are.
  if (std::holds_alternative<NormalizationProblem>(plan.problem())) scalars.alpha2 = 0;
  if (contestants.size() < 2) {
    // There is nothing to compare, but wrong operands are refused as they are by several.
    for (const Contestant& only : contestants) {
      only.plan->finalize(options);
      only.plan->execute(operands, scalars, stream, {}, workspace);
    }
    return plan.finalize(options);
  }
  const auto measure = [&](Contestant& each) {
    const double milliseconds = device->time(
        stream, each.count, [&] { each.plan->execute(operands, scalars, stream, {}, workspace); });
    each.samples.push_back(milliseconds / each.count);
    return milliseconds;
  };
  // The first execution loads code and warms caches; the second one estimates the time.
  std::string failure;
  double spent = 0;
  std::erase_if(contestants, [&](Contestant& each) {
    try {
      FinalizeOptions own = options;
      own.choice = each.option.choice;
      each.plan->finalize(own);
      spent += measure(each);
      each.samples.clear();
      spent += measure(each);
      return false;
    } catch (const Error& error) {
      if (error.status() == KILN_STATUS_BAD_PARAM) throw;  // the operands are at fault
      failure = error.what();
      return true;
    }
  });
  if (contestants.empty()) return plan.finalize(options);
  const auto best = [&] {
    return std::min_element(
        contestants.begin(), contestants.end(),
        [](const Contestant& a, const Contestant& b) { return a.least() < b.least(); });
  };
  const double fastest = best()->least();
  std::erase_if(contestants,
                [&](const Contestant& each) { return each.least() > far_behind * fastest; });
  const double left = std::max(budget_milliseconds - spent, 0.0);
  for (Contestant& each : contestants) {
    const double share = left / (rounds * static_cast<double>(contestants.size()));
    each.count = static_cast<int>(std::clamp(share / std::max(each.least(), 1e-6), 1.0, 1000.0));
  }
  for (int round = 0; round < rounds && (round == 0 || spent < budget_milliseconds); ++round)
    for (Contestant& each : contestants) {
      if (round == 0) each.samples.clear();
      spent += measure(each);
    }
  const Contestant* winner = &contestants.front();
  for (const Contestant& each : contestants)
    if (each.median() * as_fast < winner->median()) winner = &each;
  FinalizeOptions own = options;
  own.choice = winner->option.choice;
  own.choice->tuned = true;
  plan.finalize(own);
  try {
    remember_winners({tuned_kernel(plan.problem(), device->description(), options.terms.workspace,
                                   winner->option, winner->median() * 1e3)});
  } catch (const Error& error) {
    log::warn(error.what());
  }
}

}  // namespace kiln
