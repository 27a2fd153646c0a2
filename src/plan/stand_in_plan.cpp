#include "plan/stand_in_plan.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/log/log.hpp"
#include "engines/stand_in/stand_in.hpp"
#include "plan/background.hpp"
#include "plan/plan_line.hpp"

namespace kiln {
namespace {

constexpr double most_slowdown = 3;  // estimated, of a quick stand-in: kilnStandIn_t promises this

// Why a stand-in is not KILN_STAND_IN_QUICK; "" if it is.
std::string slow_because(const StandIn& stand_in, const Choice& chosen) {
  const std::string engine = stand_in.choice.proposal.first().kernel.engine;
  if (!stand_in.for_every_shape)
    return cat("no kernel that serves every shape takes the problem; ", engine,
               " would, by KILN_STAND_IN_ANY");
  if (stand_in.choice.seconds <= most_slowdown * chosen.seconds) return "";
  return cat(engine, " is estimated to take more than ", most_slowdown,
             " times as long as the plan's own kernel; KILN_STAND_IN_ANY allows it");
}

}  // namespace

std::unique_ptr<Plan> make_stand_in(const Plan& plan, const Grant& grant, const Choice& chosen,
                                    kilnStandIn_t allowed, std::string& why_not) {
  const bool quick = allowed == KILN_STAND_IN_QUICK;
  std::optional<StandIn> found = stand_in(plan.problem(), plan.device().description(), grant);
  why_not = !found  ? cat("a ", command_of(plan.problem()),
                          " plan of this kind has one kernel, and nothing else to run meanwhile")
            : quick ? slow_because(*found, chosen)
                    : "";
  if (!why_not.empty()) return nullptr;
  FinalizeOptions options{{found->choice.proposal.first().kernel.engine, grant.workspace},
                          quick ? Caching::cached : Caching::use,
                          std::move(found->choice)};
  auto out = std::make_unique<Plan>(plan.shared_device(), plan.problem());
  try {
    out->finalize(options);
  } catch (const Error& error) {
    why_not = error.what();
    if (quick && error.status() == KILN_STATUS_NOT_CACHED && cache_mode() != CacheMode::strict) {
      why_not = "its kernel is in no cache; it is compiled now, for plans to come";
      options.caching = Caching::use;
      BackgroundFinalization::start_unattended(std::move(out), std::move(options));
    } else {
      log::info(cat("no stand-in for ",
                    plan_line(plan.problem(), plan.device().description(), grant), ": ",
                    error.what()));
    }
    return nullptr;
  }
  out->ask_also(chosen.proposal);
  return out;
}

}  // namespace kiln
