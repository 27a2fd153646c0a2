// The handle and the plan behind the C API.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "api/api.hpp"
#include "api/plan_cache.hpp"
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

  // Texts that are made when first asked for.
  std::once_flag problem_once, constants_once, engines_once;
  std::string problem_text, constants_text;
  std::vector<kiln::EngineRefusal> engines;
};

namespace kiln::api {

// The plan, where no other thread is at work on it. Throws NOT_INITIALIZED.
inline const Plan& settled(const kilnPlanStruct& object) {
  if (object.background) {
    fail(KILN_STATUS_NOT_INITIALIZED,
         "plan is being finalized; expected kilnWaitFinalizePlan, or a poll that says done");
  }
  return object.plan;
}

}  // namespace kiln::api
