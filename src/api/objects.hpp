// The handle and the plan behind the C API.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <initializer_list>
#include <memory>
#include <set>
#include <string>

#include "api/api.hpp"
#include "api/epilogue.hpp"
#include "api/plan/plan_cache.hpp"
#include "core/process/per_process.hpp"
#include "device/device.hpp"
#include "plan/background.hpp"
#include "plan/plan.hpp"

struct kilnContext {
  static constexpr auto kind = "a handle", creator = "kilnCreate";
  static constexpr std::uint32_t mark_value = 0x6b6c7404;
  explicit kilnContext(std::shared_ptr<kiln::Device> opened) : device(std::move(opened)) {}

  kiln::api::Mark mark{mark_value};
  std::shared_ptr<kiln::Device> device;
  void* stream = nullptr;
  kiln::Workspace workspace;
  kiln::api::PlanCache plans;  // of the immediate calls
};

namespace kiln::api {

// A tensor that an operation can do without, by the name of its pointer.
struct OptionalTensor {
  const char* name = "";
  bool given = false;  // its descriptor is not null
};
inline constexpr std::size_t most_optional = 2;

}  // namespace kiln::api

struct kilnPlanStruct {
  static constexpr auto kind = "a plan", creator = "a kilnCreate...Plan";
  static constexpr std::uint32_t mark_value = 0x6b6c7405;
  kilnPlanStruct(const char* made_for, std::shared_ptr<kiln::Device> device,
                 const kiln::Problem& problem,
                 std::initializer_list<kiln::api::OptionalTensor> may_be_left_out)
      : operation(made_for),
        optional_count(may_be_left_out.size()),
        plan(std::move(device), problem) {
    std::copy(may_be_left_out.begin(), may_be_left_out.end(), optional.begin());
  }
  ~kilnPlanStruct();

  kiln::api::Mark mark{mark_value};
  const char* const operation;  // "PoolingForward", of kilnCreatePoolingForwardPlan
  std::array<kiln::api::OptionalTensor, kiln::api::most_optional> optional;
  const std::size_t optional_count;
  kiln::api::EpilogueTensors epilogue;  // of the plans that are made with a list
  kiln::Plan plan;
  kiln::FinalizeOptions options;
  std::string refusals;  // written by finalization
  kilnStandIn_t stand_in_allowed = KILN_STAND_IN_NONE;
  // Lives as long as the plan: its kernels may be in flight, or in a graph.
  std::unique_ptr<kiln::Plan> stand_in;
  std::string
      no_stand_in;  // why the last kilnStartFinalizePlan made none; "" if it was to make none
  // If there is a stand-in: the plan that executes now. Other threads execute while it changes.
  std::atomic<const kiln::Plan*> serving{nullptr};
  // Set from kilnStartFinalizePlan until the caller has learned that finalization is over;
  // meanwhile `plan` belongs to another thread.
  std::shared_ptr<kiln::BackgroundFinalization> background;

  // While a thread of the caller's finalizes it: fork_generation() + 1 of its process, else 0.
  std::atomic<std::uint64_t> finalizing{0};

  // In a forked child: another thread of the parent was finalizing it, and it stays half changed.
  bool torn() const {
    const std::uint64_t process = finalizing;
    return (process != 0 && process != kiln::fork_generation() + 1) ||
           (background && background->torn());
  }

  // Texts that are made when first asked for. The problem's line names the grant, which may change
  // until finalization; each line stays, for the caller may hold it.
  kiln::OwnPerProcess<std::set<std::string>> problem_lines;
  kiln::OwnOnce<std::string> constants_text, stand_in_constants_text;
  kiln::OwnOnce<std::vector<kiln::EngineRefusal>> engines;
};

namespace kiln::api {

// Marks the plan as being finalized by one of the caller's threads, while it lives.
class AtWork {
 public:
  explicit AtWork(kilnPlanStruct& object) : object_(object) {
    object.finalizing = fork_generation() + 1;
  }
  ~AtWork() { object_.finalizing = 0; }
  AtWork(const AtWork&) = delete;
  AtWork& operator=(const AtWork&) = delete;

 private:
  kilnPlanStruct& object_;
};

// The plan, if no other thread is working on it. Throws NOT_INITIALIZED.
inline const Plan& settled(const kilnPlanStruct& object) {
  if (object.torn() || (object.background && object.background->lost())) {
    fail(KILN_STATUS_NOT_INITIALIZED,
         "plan was being finalized when this process was forked; expected a plan of its own");
  }
  if (object.background) {
    fail(KILN_STATUS_NOT_INITIALIZED,
         "plan is being finalized; expected kilnWaitFinalizePlan, or a poll that says done",
         object.no_stand_in.empty() ? "" : cat(". There is no stand-in: ", object.no_stand_in));
  }
  return object.plan;
}

// The plan that executes now: its stand-in, or itself. Throws NOT_INITIALIZED where another thread
// is at work on it.
inline const Plan& serving(const kilnPlanStruct& object) {
  const Plan* const now = object.serving.load(std::memory_order_acquire);
  return now != nullptr ? *now : settled(object);
}

// For what can be set before finalization alone. Throws BAD_PARAM, NOT_INITIALIZED.
inline void check_open(const kilnPlanStruct& object, const char* function) {
  if (settled(object).finalized())
    fail(KILN_STATUS_BAD_PARAM, "plan is finalized; expected ", function,
         " before kilnFinalizePlan");
  if (object.stand_in)
    fail(KILN_STATUS_BAD_PARAM, "plan has a stand-in; expected ", function,
         " before kilnStartFinalizePlan");
}

}  // namespace kiln::api
