#include "plan/tune/tune.hpp"

#include <memory>
#include <vector>

#include "core/error.hpp"
#include "core/log/log.hpp"
#include "plan/tune/contest.hpp"
#include "plan/tune/rotation.hpp"
#include "plan/tuning.hpp"

namespace kiln {
namespace {

constexpr std::size_t most_candidates = 8;

struct Entrant {
  Option option;
  std::unique_ptr<Plan> plan;
};

// The entrants with the best estimates, the cost model's choice first, each with a plan that is
// not finalized yet.
std::vector<Entrant> entrants_of(const Plan& plan, const FinalizeOptions& options,
                                 const std::shared_ptr<Device>& device) {
  const Grant& grant = options.grant;
  std::vector<Entrant> entrants;
  for (Option& option : all_candidates(plan.problem(), device->description(), grant.workspace)) {
    if (grant.only_engine.empty() ? option.only_by_name : option.name.engine != grant.only_engine)
      continue;
    if (entrants.size() == most_candidates) break;
    entrants.push_back({std::move(option), std::make_unique<Plan>(device, plan.problem())});
  }
  return entrants;
}

}  // namespace

void tune_plan(Plan& plan, const FinalizeOptions& options, std::span<void* const> operands,
               void* stream, const Lent& lent, double budget_milliseconds) {
  const std::shared_ptr<Device> device = plan.shared_device();
  std::vector<Entrant> entrants = entrants_of(plan, options, device);
  Scalars scalars{};
  // Running statistics stay as they are.
  if (std::holds_alternative<NormalizationProblem>(plan.problem())) scalars.alpha2 = 0;
  const auto execute = [&](const Entrant& each, std::span<void* const> set) {
    each.plan->execute(set, scalars, stream, {}, lent.workspace);
  };
  if (entrants.size() < 2) {
    // There is nothing to compare, but wrong operands are refused as they are by several.
    for (const Entrant& only : entrants) {
      only.plan->finalize(options);
      execute(only, operands);
    }
    return plan.finalize(options);
  }
  // The first execution loads code, and tells whether there can be others.
  std::erase_if(entrants, [&](const Entrant& each) {
    try {
      FinalizeOptions own = options;
      own.choice = each.option.choice;
      each.plan->finalize(own);
      execute(each, operands);
      return false;
    } catch (const Error& error) {
      if (error.status() == KILN_STATUS_BAD_PARAM) throw;  // the operands are at fault
      return true;
    }
  });
  if (entrants.empty()) return plan.finalize(options);
  Rotation rotation(*device, plan.problem(), operands, lent.spare, stream);
  const auto time = [&](std::size_t place, int count) {
    return device->time(stream, count, [&] { execute(entrants[place], rotation.next()); });
  };
  const Winning winning = hold_contest(entrants.size(), time, budget_milliseconds);
  const Entrant* const winner = &entrants[winning.candidate];
  FinalizeOptions own = options;
  own.choice = winner->option.choice;
  own.choice->tuned = true;
  plan.finalize(own);
  try {
    remember_winners({tuned_kernel(plan.problem(), device->description(), options.grant.workspace,
                                   winner->option, winning.milliseconds * 1e3)});
  } catch (const Error& error) {
    log::warn(error.what());
  }
}

}  // namespace kiln
