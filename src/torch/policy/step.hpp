// One step of a call: an entry of the table of plans, and its execution.
#pragma once

#include <memory>

#include "torch/plans/normalization_plan.hpp"
#include "torch/policy/policy.hpp"

namespace kiln::torch {

// The step that computes one result by Kiln.
class Step {
 public:
  explicit Step(const PlanRequest& request);

  // Makes the plan if the policy waits for it, and returns whether Kiln can execute it now.
  bool ready(Policy policy) const { return kiln_can(*entry_, handle_, policy); }
  // Executes on the current stream, with operands as in execute_plan() and
  // execute_normalization(). Requires ready().
  void run(const Operands& operands) const;
  void run(const NormalizationOperands& operands) const;
  void count(bool served) const { entry_->count(served); }
  PlanEntry& entry() const { return *entry_; }
  kilnHandle_t handle() const { return handle_; }

 private:
  // Notes that the stream is being captured.
  void note_capture() const;

  std::shared_ptr<PlanEntry> entry_;
  kilnHandle_t handle_ = nullptr;
};

}  // namespace kiln::torch
