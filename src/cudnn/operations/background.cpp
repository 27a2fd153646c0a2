#include "cudnn/operations/background.hpp"

#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/process/per_process.hpp"
#include "cudnn/library/status.hpp"

namespace kiln::cudnn {
namespace {

// The two plans of a problem. They are never destroyed: a kernel of theirs may be running.
class Entry {
 public:
  // The plan to execute now.
  kilnPlan_t plan_for(const ConvolutionCall& call) {
    if (kilnPlan_t ready = ready_.load(std::memory_order_acquire)) return ready;
    const std::lock_guard lock(mutex_);
    if (kilnPlan_t ready = ready_.load(std::memory_order_relaxed)) return ready;
    if (better_ == nullptr) better_ = create_plan(call);
    if (!started_) must(kilnStartFinalizePlan(better_));
    started_ = true;
    int done = 0;
    const kilnStatus_t status = kilnPollFinalizePlan(better_, &done);
    if (done == 0) {
      if (kilnPlan_t quick = quick_plan(call)) return quick;
      return finish(kilnWaitFinalizePlan(better_));
    }
    return finish(status);
  }

 private:
  kilnPlan_t finish(kilnStatus_t status) {
    started_ = false;  // after a failure the next call tries again
    must(status);
    ready_.store(better_, std::memory_order_release);
    return better_;
  }

  // Null where no engine compiles quickly.
  kilnPlan_t quick_plan(const ConvolutionCall& call) {
    if (quick_ != nullptr || no_quick_) return quick_;
    kilnPlan_t plan = create_plan(call);
    const char* const engine = call.pass == Pass::backward_filter ? "wgrad_direct" : "direct";
    if (kilnSetPlanEngine(plan, engine) == KILN_STATUS_SUCCESS &&
        kilnFinalizePlan(plan) == KILN_STATUS_SUCCESS)
      return quick_ = plan;
    kilnDestroyPlan(plan);
    no_quick_ = true;
    return nullptr;
  }

  std::mutex mutex_;  // held while the quick kernel compiles, never for an execution
  std::atomic<kilnPlan_t> ready_{nullptr};
  kilnPlan_t better_ = nullptr, quick_ = nullptr;
  bool started_ = false, no_quick_ = false;
};

using Table = std::unordered_map<std::string, std::unique_ptr<Entry>>;

// Null where the table is full.
Entry* find_or_add(const std::string& key) {
  constexpr std::size_t capacity = 4096;
  static constinit PerProcess<Table> table("cuDNN plans");
  const auto entries = table.lock();
  if (const auto found = entries->find(key); found != entries->end()) return found->second.get();
  if (entries->size() >= capacity) return nullptr;
  return entries->emplace(key, std::make_unique<Entry>()).first->second.get();
}

}  // namespace

// Plans never end, so there is an end to their number: further problems wait for their kernels, in
// Kiln's own cache of plans.
void run_in_background(const ConvolutionCall& call) {
  Entry* const entry = find_or_add(key_of(call));
  if (entry == nullptr) return run_at_once(call);
  execute_plan(entry->plan_for(call), call);
}

}  // namespace kiln::cudnn
