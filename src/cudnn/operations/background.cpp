#include "cudnn/operations/background.hpp"

#include <atomic>
#include <mutex>

#include "core/log/log.hpp"
#include "core/process/per_process.hpp"
#include "core/text.hpp"
#include "cudnn/library/status.hpp"
#include "cudnn/operations/plan_table.hpp"

namespace kiln::cudnn {
namespace {

// The plan of a problem.
class Entry {
 public:
  // The plan, ready for execution by its own kernel or by its stand-in.
  kilnPlan_t plan_for(const ConvolutionCall& call) {
    if (kilnPlan_t settled = settled_.load(std::memory_order_acquire)) return settled;
    const std::lock_guard lock(mutex_);
    if (kilnPlan_t settled = settled_.load(std::memory_order_relaxed)) return settled;
    if (!started_) start(call);
    int done = 0;
    const kilnStatus_t status = kilnPollFinalizePlan(plan_, &done);
    if (done != 0) return finish(status);
    return executable_ ? plan_ : finish(kilnWaitFinalizePlan(plan_));
  }

 private:
  void start(const ConvolutionCall& call) {
    if (plan_ == nullptr) {
      plan_ = create_plan(call);
      must(kilnSetPlanStandIn(plan_, KILN_STAND_IN_ANY));
    }
    must(kilnStartFinalizePlan(plan_));
    started_ = true;
    kilnPlanInfo_t info{};
    info.structSize = sizeof info;
    executable_ = kilnGetPlanInfo(plan_, &info) == KILN_STATUS_SUCCESS;
  }

  // If the plan's own kernel cannot be made, the stand-in executes it for good. Without a stand-in,
  // the next call tries again.
  kilnPlan_t finish(kilnStatus_t status) {
    started_ = false;
    if (status != KILN_STATUS_SUCCESS && executable_)
      log::warn(cat("a convolution stays with its stand-in: ", kilnGetLastErrorMessage()));
    else
      must(status);
    settled_.store(plan_, std::memory_order_release);
    return plan_;
  }

  std::mutex mutex_;  // held while the stand-in's kernel compiles, but not during executions
  std::atomic<kilnPlan_t> settled_{nullptr};
  kilnPlan_t plan_ = nullptr;
  bool started_ = false, executable_ = false;
};

}  // namespace

// Problems beyond the table's bound wait for their kernels, in Kiln's cache of plans.
void run_in_background(const ConvolutionCall& call) {
  static constinit PerProcess<PlanTable<Entry>> table("cuDNN plans");
  Entry* const entry = table.lock()->find_or_add(key_of(call));
  if (entry == nullptr) return run_at_once(call);
  execute_plan(entry->plan_for(call), call);
}

}  // namespace kiln::cudnn
