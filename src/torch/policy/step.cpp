#include "torch/policy/step.hpp"

#include <utility>

#include "torch/plans/failure.hpp"
#include "torch/plans/handles.hpp"

namespace kiln::torch {

Step::Step(const PlanRequest& request) : entry_(find_entry(request)) {
  std::string why;
  handle_ =
      current_handle(static_cast<kilnDeviceKind_t>(request.device_kind), request.device_index, why);
  if (handle_ != nullptr) return;
  warn_of_failure(KILN_STATUS_NO_DEVICE, request.pass, why);
  entry_->refuse(std::move(why));
}

void Step::note_capture() const {
  if (StreamView(entry_->request.device_kind, handle_).captured()) entry_->keep_plan();
}

void Step::run(const Operands& operands) const {
  note_capture();
  execute_plan(handle_, entry_->plan(), entry_->request, operands);
}

void Step::run(const NormalizationOperands& operands) const {
  note_capture();
  execute_normalization(handle_, entry_->plan(), entry_->request, operands);
}

}  // namespace kiln::torch
