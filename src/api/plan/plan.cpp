// Plans: finalizing and destroying them. Making and executing them is each operation's own.
#include "api/objects.hpp"
#include "plan/stand_in_plan.hpp"

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

// The plan is finalized: whoever executes it from here on takes its own kernel.
void take_over(kilnPlanStruct& object) {
  if (object.stand_in) object.serving.store(&object.plan, std::memory_order_release);
}

// The end of a finalization in the background: the plan is the caller's again. Throws what it
// failed with.
void settle(kilnPlanStruct& object) {
  object.background->wait();
  object.refusals = refusals_text(object.plan);
  const std::shared_ptr<kiln::BackgroundFinalization> over = std::move(object.background);
  over->check();
  take_over(object);
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
  take_over(object);
}

// Makes the plan executable before its kernel is compiled, where that can be done: finalizes it by
// a kernel that is in a cache, or gives it a stand-in. What fails here fails in the background once
// more, and is told from there.
void make_executable(kilnPlanStruct& object) {
  if (object.stand_in) return;  // of a start before
  object.no_stand_in.clear();
  const kiln::api::AtWork at_work(object);
  kiln::FinalizeOptions options = object.options;
  try {
    options.choice = object.plan.choose(options.grant);
    options.caching = kiln::Caching::cached;
    object.plan.finalize(options);
    object.refusals = refusals_text(object.plan);
    return;
  } catch (const kiln::Error& error) {
    object.no_stand_in = error.what();
    if (!options.choice) return;
  }
  object.stand_in = kiln::make_stand_in(object.plan, options.grant, *options.choice,
                                        object.stand_in_allowed, object.no_stand_in);
  if (!object.stand_in) return;
  object.options.choice = std::move(options.choice);  // what the stand-in was made to agree with
  object.serving.store(object.stand_in.get(), std::memory_order_release);
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
    if (object.stand_in_allowed != KILN_STAND_IN_NONE) make_executable(object);
    if (object.plan.finalized()) return;
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
