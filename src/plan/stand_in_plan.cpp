#include "plan/stand_in_plan.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/log/log.hpp"
#include "engines/stand_in.hpp"
#include "plan/background.hpp"

namespace kiln {
namespace {

constexpr double most_slowdown = 3;  // estimated, of a quick stand-in: kilnStandIn_t promises this

bool is_quick(const StandIn& stand_in, const Choice& chosen) {
  return stand_in.for_every_shape && stand_in.choice.seconds <= most_slowdown * chosen.seconds;
}

}  // namespace

std::unique_ptr<Plan> make_stand_in(const Plan& plan, const Terms& terms, const Choice& chosen,
                                    kilnStandIn_t allowed) {
  const bool quick = allowed == KILN_STAND_IN_QUICK;
  std::optional<StandIn> found = stand_in(plan.problem(), plan.device().description(), terms);
  if (!found || (quick && !is_quick(*found, chosen))) return nullptr;
  FinalizeOptions options{{found->choice.proposal.kernel.engine, terms.workspace},
                          quick ? Caching::cached : Caching::use,
                          std::move(found->choice)};
  auto out = std::make_unique<Plan>(plan.shared_device(), plan.problem());
  try {
    out->finalize(options);
  } catch (const Error& error) {
    if (quick && error.status() == KILN_STATUS_NOT_CACHED && cache_mode() != CacheMode::strict) {
      options.caching = Caching::use;
      BackgroundFinalization::start_unattended(std::move(out), std::move(options));
    } else {
      log::info(cat("no stand-in for ", text_of(plan.problem()), ": ", error.what()));
    }
    return nullptr;
  }
  out->ask_also(chosen.proposal);
  return out;
}

}  // namespace kiln
