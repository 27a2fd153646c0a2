// Plans of batch normalization: moments, their combination, the pass over the elements, and its
// gradient.
#pragma once

#include "torch/plans/plan_request.hpp"

namespace kiln::torch {

bool is_normalization(Pass pass);

// What the request says of a normalization.
void set_normalization(kilnNormalizationDescriptor_t descriptor, const PlanRequest& request);

// Throws std::runtime_error if Kiln refuses.
kilnPlan_t create_normalization(kilnHandle_t handle, const PlanRequest& request);

// Operands that the pass does not have are null.
struct NormalizationOperands {
  const void *x = nullptr, *dy = nullptr, *residual = nullptr;
  const void *scale = nullptr, *bias = nullptr;
  const void *mean = nullptr, *inverse_deviation = nullptr;  // in; combine_moments writes them
  void* moments = nullptr;                                   // combine_moments: of the whole
  const void* part_moments = nullptr;
  void *running_mean = nullptr, *running_variance = nullptr;
  double factor = 0;
  void *y = nullptr, *dresidual = nullptr;  // y: or dx
  void *dscale = nullptr, *dbias = nullptr;
};
// Enqueues the plan on the handle's stream. Throws std::runtime_error.
void execute_normalization(kilnHandle_t handle, kilnPlan_t plan, const PlanRequest& request,
                           const NormalizationOperands& operands);

}  // namespace kiln::torch
