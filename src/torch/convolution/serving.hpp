// One step of a call: a plan's entry and its execution.
#pragma once

#include <memory>

#include "torch/convolution/native.hpp"
#include "torch/policy/policy.hpp"

namespace kiln::torch {

// What of a request all passes of a call have in common.
PlanRequest request_of(const Tensor& x, const Geometry& geometry);

// How a tensor will lie once in_format() has seen it.
PlanRequest::Side side_in_format(const Tensor& tensor, Format format);
// Its address if it stays where it is; null, which is aligned to everything, if it is copied.
const void* address_in_format(const Tensor& tensor, Format format);

// Notes in report() that a call was PyTorch's own, and why.
void note_refusal(Pass pass, const Tensor& x, const Tensor& w, const Geometry& geometry,
                  Refusal refusal);

// "torch.backends.cudnn.enabled is False", or null.
Refusal check_flags();

// The step that computes one result by Kiln.
class Step {
 public:
  explicit Step(const PlanRequest& request);

  // Whether Kiln can execute it now; makes the plan as far as the policy waits for it.
  bool ready(Policy policy) const { return kiln_can(*entry_, handle_, policy); }
  // Executes on the current stream. Operands as execute_plan() takes them. Only when ready.
  void run(const Operands& operands) const;
  void count(bool served) const { entry_->count(served); }
  PlanEntry& entry() const { return *entry_; }
  kilnHandle_t handle() const { return handle_; }

 private:
  std::shared_ptr<PlanEntry> entry_;
  kilnHandle_t handle_ = nullptr;
};

}  // namespace kiln::torch
