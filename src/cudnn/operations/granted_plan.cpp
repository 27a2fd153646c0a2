#include "cudnn/operations/granted_plan.hpp"

#include <mutex>

#include "core/process/per_process.hpp"
#include "cudnn/library/status.hpp"
#include "cudnn/operations/plan_table.hpp"

namespace kiln::cudnn {
namespace {

struct Granted {
  std::mutex making;
  GrantedPlan made;
};

GrantedPlan make(const std::function<kilnStatus_t(kilnPlan_t*)>& create) {
  constexpr std::size_t most = 16 << 20;
  GrantedPlan out;
  must(create(&out.plan));
  try {
    must(kilnSetPlanWorkspaceLimit(out.plan, most));
    must(kilnFinalizePlan(out.plan));
    kilnPlanInfo_t info{};
    info.structSize = sizeof info;
    must(kilnGetPlanInfo(out.plan, &info));
    out.workspace = info.workspaceBytes;
  } catch (...) {
    kilnDestroyPlan(out.plan);
    throw;
  }
  return out;
}

}  // namespace

GrantedPlan granted_plan(const std::string& key,
                         const std::function<kilnStatus_t(kilnPlan_t*)>& create) {
  static constinit PerProcess<PlanTable<Granted>> table("cuDNN granted plans");
  Granted* const entry = table.lock()->find_or_add(key);
  if (entry == nullptr) return {};
  const std::lock_guard lock(entry->making);
  if (entry->made.plan == nullptr) entry->made = make(create);
  return entry->made;
}

LentWorkspace::LentWorkspace(kilnHandle_t handle, void* workspace, std::size_t bytes)
    : handle_(handle) {
  must(kilnSetWorkspace(handle, workspace, bytes));
}

// A handle of the cuDNN API has no workspace between its calls.
LentWorkspace::~LentWorkspace() { kilnSetWorkspace(handle_, nullptr, 0); }

}  // namespace kiln::cudnn
