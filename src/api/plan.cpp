// Plans: finalizing and destroying them. Making and executing them is each operation's own.
#include "api/objects.hpp"

using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::api::guarded;

namespace {

std::string refusals_text(const kiln::Plan& plan) {
  std::string text;
  for (const kiln::EngineRefusal& refusal : plan.refusals()) {
    text += kiln::cat(refusal.engine, ": ", refusal.reason, "\n");
  }
  return text;
}

// The end of a finalization in the background: the plan is the caller's again. Throws what it
// failed with.
void settle(kilnPlanStruct& object) {
  object.background->wait();
  object.refusals = refusals_text(object.plan);
  const std::shared_ptr<kiln::BackgroundFinalization> over = std::move(object.background);
  over->check();
}

// Finalizes on this thread.
void finalize(kilnPlanStruct& object) {
  const kiln::api::AtWork at_work(object);
  try {
    object.plan.finalize(object.options);
  } catch (...) {
    object.refusals = refusals_text(object.plan);
    throw;
  }
  object.refusals = refusals_text(object.plan);
}

void wait_for(kilnPlanStruct& object) {
  if (object.background) return settle(object);
  if (!kiln::api::settled(object).finalized()) {
    kiln::fail(KILN_STATUS_NOT_INITIALIZED,
               "plan is not being finalized; expected kilnStartFinalizePlan before");
  }
}

}  // namespace

kilnPlanStruct::~kilnPlanStruct() {
  if (!background || background->cancel()) return;
  background->wait();
}

kilnStatus_t kilnFinalizePlan(kilnPlan_t plan) {
  return guarded([&] {
    kilnPlanStruct& object = checked(plan, "plan");
    if (object.background) return settle(object);
    if (!kiln::api::settled(object).finalized()) finalize(object);
  });
}

kilnStatus_t kilnStartFinalizePlan(kilnPlan_t plan) {
  return guarded([&] {
    kilnPlanStruct& object = checked(plan, "plan");
    if (object.background && !object.background->lost()) return;
    if (kiln::api::settled(object).finalized()) return;
    object.background = kiln::BackgroundFinalization::start(object.plan, object.options);
  });
}

kilnStatus_t kilnPollFinalizePlan(kilnPlan_t plan, int* done) {
  return guarded([&] {
    kilnPlanStruct& object = checked(plan, "plan");
    check_pointer(done, "done", "where to store whether it is over");
    *done = 0;
    if (object.background && !object.background->done() && !object.background->lost()) return;
    *done = 1;
    wait_for(object);
  });
}

kilnStatus_t kilnWaitFinalizePlan(kilnPlan_t plan) {
  return guarded([&] { wait_for(checked(plan, "plan")); });
}

kilnStatus_t kilnCancelFinalizePlan(kilnPlan_t plan, int* cancelled) {
  return guarded([&] {
    kilnPlanStruct& object = checked(plan, "plan");
    const bool withdrawn = object.background && object.background->cancel();
    if (withdrawn) object.background.reset();
    if (cancelled != nullptr) *cancelled = withdrawn;
  });
}

kilnStatus_t kilnDestroyPlan(kilnPlan_t plan) {
  return guarded([&] {
    if (plan == nullptr) return;
    kilnPlanStruct& object = checked(plan, "plan");
    if (object.torn())
      object.mark.clear();  // half of it is there, for ever
    else
      delete &object;
  });
}
