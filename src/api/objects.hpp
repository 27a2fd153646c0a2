// The handle and the plan behind the C API.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "api/api.hpp"
#include "api/plan_cache.hpp"
#include "core/per_process.hpp"
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
  kiln::api::PlanCache plans;  // of the immediate calls
};

struct kilnPlanStruct {
  static constexpr auto kind = "a plan", creator = "a kilnCreate...Plan";
  static constexpr std::uint32_t mark_value = 0x6b6c7405;
  kilnPlanStruct(const char* made_for, std::shared_ptr<kiln::Device> device,
                 const kiln::Problem& problem)
      : operation(made_for), plan(std::move(device), problem) {}
  ~kilnPlanStruct();

  kiln::api::Mark mark{mark_value};
  const char* const operation;  // "PoolingForward", of kilnCreatePoolingForwardPlan
  kiln::Plan plan;
  kiln::FinalizeOptions options;
  std::string refusals;  // written by finalization
  // From kilnStartFinalizePlan until the caller was told that it is over: `plan` is another
  // thread's.
  std::shared_ptr<kiln::BackgroundFinalization> background;

  // While a thread of the caller's finalizes it: fork_generation() + 1 of its process, else 0.
  std::atomic<std::uint64_t> finalizing{0};

  // In a forked child: another thread of the parent was finalizing it, and it stays half changed.
  bool torn() const {
    const std::uint64_t process = finalizing;
    return (process != 0 && process != kiln::fork_generation() + 1) ||
           (background && background->torn());
  }

  // Texts that are made when first asked for.
  kiln::OwnOnce<std::string> problem_text, constants_text;
  kiln::OwnOnce<std::vector<kiln::EngineRefusal>> engines;
};

namespace kiln::api {

// Says that a thread of the caller's is finalizing the plan.
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

// The plan, where no other thread is at work on it. Throws NOT_INITIALIZED.
inline const Plan& settled(const kilnPlanStruct& object) {
  if (object.torn() || (object.background && object.background->lost())) {
    fail(KILN_STATUS_NOT_INITIALIZED,
         "plan was being finalized when this process was forked; expected a plan of its own");
  }
  if (object.background) {
    fail(KILN_STATUS_NOT_INITIALIZED,
         "plan is being finalized; expected kilnWaitFinalizePlan, or a poll that says done");
  }
  return object.plan;
}

}  // namespace kiln::api
