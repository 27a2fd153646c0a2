// Plans of matrix products: Pass::product.
#pragma once

#include "torch/plans/plan_request.hpp"

namespace kiln::torch {

// Throws std::runtime_error if Kiln refuses.
kilnPlan_t create_product(kilnHandle_t handle, const PlanRequest& request);

// Enqueues the plan on the handle's stream.
kilnStatus_t execute_product(kilnHandle_t handle, kilnPlan_t plan, const PlanRequest& request,
                             const Operands& operands);

}  // namespace kiln::torch
