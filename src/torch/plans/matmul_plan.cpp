#include "torch/plans/matmul_plan.hpp"

#include "torch/plans/descriptors.hpp"
#include "torch/plans/epilogue_list.hpp"

namespace kiln::torch {

kilnPlan_t create_product(kilnHandle_t handle, const PlanRequest& r) {
  TensorDescriptor a, b, c;
  set_tensor(a, r, r.a);
  set_tensor(b, r, r.b);
  set_tensor(c, r, r.c);
  MatmulDescriptor product;
  must(kilnSetMatmulDescriptor(product, static_cast<kilnMathMode_t>(r.math), r.alignment));
  TensorDescriptor bias;
  if (r.has_bias != 0) set_bias(bias, r, static_cast<std::size_t>(r.rank - 1));
  EpilogueDescriptor epilogue;
  set_list(epilogue, r, bias);
  kilnPlan_t plan = nullptr;
  must(kilnCreateMatmulPlan(handle, product, a, b, epilogue, c, &plan));
  return plan;
}

kilnStatus_t execute_product(kilnHandle_t handle, kilnPlan_t plan, const PlanRequest& request,
                             const Operands& o) {
  const auto [one, zero] = scalars_of(request);
  const ListOperands list(request, o);
  return kilnExecuteMatmul(handle, plan, one, o.a, o.b, request.has_residual != 0 ? one : zero,
                           list.count, list.all.data(), o.c);
}

}  // namespace kiln::torch
