#include "torch/plans/normalization_plan.hpp"

#include <bit>

#include "torch/plans/descriptors.hpp"

namespace kiln::torch {

void set_normalization(kilnNormalizationDescriptor_t descriptor, const PlanRequest& r) {
  must(kilnSetNormalizationDescriptor(descriptor, r.has_bias, r.has_running, r.is_frozen,
                                      std::bit_cast<double>(r.epsilon)));
  if (r.statistics != 0)
    must(kilnSetNormalizationStatistics(descriptor,
                                        static_cast<kilnNormalizationStatistics_t>(r.statistics),
                                        r.groups, r.is_uncentered == 0));
  must(kilnSetNormalizationBias(descriptor, r.has_bias == 1));
  if (r.activation == KILN_ACTIVATION_IDENTITY) return;
  ActivationDescriptor activation;
  must(kilnSetActivationDescriptor(activation, static_cast<kilnActivationMode_t>(r.activation),
                                   r.activation_coefficient()));
  must(kilnSetNormalizationActivation(descriptor, activation));
}

bool is_normalization(Pass pass) { return pass >= Pass::moments; }

kilnPlan_t create_normalization(kilnHandle_t handle, const PlanRequest& r) {
  kilnPlan_t plan = nullptr;
  NormalizationDescriptor normalization;
  set_normalization(normalization, r);
  if (r.pass == Pass::combine_moments) {
    must(kilnCreateCombineNormalizationMomentsPlan(handle, normalization,
                                                   static_cast<kilnDataType_t>(r.type),
                                                   r.a.sizes[0], r.a.sizes[1], &plan));
    return plan;
  }
  TensorDescriptor x, dy, y, residual;
  set_tensor(x, r, r.a);
  if (r.pass == Pass::moments) {
    must(kilnCreateNormalizationMomentsPlan(handle, x, &plan));
    return plan;
  }
  set_tensor(y, r, r.c);
  kilnTensorDescriptor_t given_residual = nullptr;
  if (r.has_residual != 0) {
    set_tensor(residual, r, {r.c.sizes, r.residual_strides});
    given_residual = residual;
  }
  if (r.pass == Pass::normalize) {
    must(kilnCreateNormalizationApplyPlan(handle, normalization, x, given_residual, y, &plan));
    return plan;
  }
  if (r.pass == Pass::normalize_rows) {
    must(kilnCreateNormalizationForwardTrainingPlan(handle, normalization, x, given_residual, y,
                                                    &plan));
    return plan;
  }
  set_tensor(dy, r, r.b);
  if (r.pass == Pass::normalize_gradient_from_sums) {
    must(kilnCreateNormalizationBackwardApplyPlan(handle, normalization, x, dy, y, &plan));
    return plan;
  }
  kilnTensorDescriptor_t dresidual = nullptr;
  if (r.has_dresidual != 0) dresidual = y;
  must(kilnCreateNormalizationBackwardPlan(handle, normalization, x, given_residual, dy, dresidual,
                                           y, &plan));
  return plan;
}

void execute_normalization(kilnHandle_t handle, kilnPlan_t plan, const PlanRequest& request,
                           const NormalizationOperands& o) {
  const auto [one, zero] = scalars_of(request);
  const auto factor_f = static_cast<float>(o.factor);
  const void* const factor = request.type == KILN_DATA_DOUBLE ? static_cast<const void*>(&o.factor)
                                                              : static_cast<const void*>(&factor_f);
  const auto written = [](const void* address) { return const_cast<void*>(address); };
  kilnStatus_t status = KILN_STATUS_INTERNAL_ERROR;
  switch (request.pass) {
    case Pass::moments:
      status = kilnExecuteNormalizationMoments(handle, plan, o.x, o.moments);
      break;
    case Pass::combine_moments:
      status = kilnExecuteCombineNormalizationMoments(
          handle, plan, o.part_moments, factor, o.running_mean, o.running_variance, written(o.mean),
          written(o.inverse_deviation), o.moments);
      break;
    case Pass::normalize:
      status = kilnExecuteNormalizationApply(handle, plan, one, o.x, o.scale, o.bias, o.mean,
                                             o.inverse_deviation, o.residual, zero, o.y);
      break;
    case Pass::normalize_rows:
      status = kilnExecuteNormalizationForwardTraining(
          handle, plan, one, o.x, o.scale, o.bias, o.residual, nullptr, nullptr, nullptr,
          written(o.mean), written(o.inverse_deviation), zero, o.y);
      break;
    case Pass::normalize_gradient:
    case Pass::normalize_rows_gradient:
      status = kilnExecuteNormalizationBackward(handle, plan, one, o.x, o.scale, o.bias, o.mean,
                                                o.inverse_deviation, o.residual, o.dy, o.dscale,
                                                o.dbias, o.dresidual, zero, o.y);
      break;
    case Pass::normalize_gradient_from_sums:
      status = kilnExecuteNormalizationBackwardApply(handle, plan, one, o.x, o.scale, o.mean,
                                                     o.inverse_deviation, o.dy, o.dscale, o.dbias,
                                                     zero, o.y);
      break;
    default: break;  // a convolution
  }
  if (status != KILN_STATUS_SUCCESS) fail_with_last_message("a normalization failed");
}

}  // namespace kiln::torch
