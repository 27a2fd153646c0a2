// Plans: finalizing and destroying them. Making and executing them is each operation's own.
#include "api/objects.hpp"

using kiln::api::checked;
using kiln::api::destroy;
using kiln::api::guarded;

namespace {

std::string refusals_text(const kiln::Plan& plan) {
  std::string text;
  for (const kiln::EngineRefusal& refusal : plan.refusals()) {
    text += kiln::cat(refusal.engine, ": ", refusal.reason, "\n");
  }
  return text;
}

}  // namespace

kilnStatus_t kilnFinalizePlan(kilnPlan_t plan) {
  return guarded([&] {
    kilnPlanStruct& object = checked(plan, "plan");
    if (object.plan.finalized()) return;
    try {
      object.plan.finalize();
    } catch (...) {
      object.refusals = refusals_text(object.plan);
      throw;
    }
    object.refusals = refusals_text(object.plan);
  });
}

kilnStatus_t kilnDestroyPlan(kilnPlan_t plan) { return destroy(plan, "plan"); }
