// Normalizations forward: by the statistics of x, or by those that are given.
#include "api/normalization/call.hpp"

using kiln::api::create_plan;
using kiln::api::optional_tensor;
using kiln::api::tensor_of;
using kiln::api::normalization::execute;
using kiln::api::normalization::factor_of;
using kiln::api::normalization::forward_operands;
using kiln::api::normalization::Parts;
using kiln::api::normalization::parts_of;
using kiln::api::normalization::run;
using kiln::api::normalization::spec_of;
using kiln::api::normalization::training_operands;

kilnStatus_t kilnCreateNormalizationForwardTrainingPlan(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnTensorDescriptor_t xDesc,
    kilnTensorDescriptor_t residualDesc, kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan("NormalizationForwardTraining", handle, plan, [&] {
    return kiln::make_normalization_training(spec_of(normDesc), tensor_of(xDesc, "xDesc"),
                                             optional_tensor(residualDesc, "residualDesc"),
                                             tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnExecuteNormalizationForwardTraining(
    kilnHandle_t handle, kilnPlan_t plan, const void* alpha, const void* x, const void* scale,
    const void* bias, const void* residual, const void* factor, void* runningMean,
    void* runningVariance, void* mean, void* inverseDeviation, const void* beta, void* y) {
  const Parts parts = parts_of(plan);
  return execute(
      "NormalizationForwardTraining", handle, plan,
      {.alpha = alpha, .beta = beta, .alpha2 = factor_of(parts, factor), .alpha2_name = "factor"},
      training_operands(parts, x, scale, bias, residual,
                        {factor, runningMean, runningVariance, mean, inverseDeviation}, y));
}

kilnStatus_t kilnNormalizationForwardTraining(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, const void* alpha,
    kilnTensorDescriptor_t xDesc, const void* x, const void* scale, const void* bias,
    kilnTensorDescriptor_t residualDesc, const void* residual, const void* factor,
    void* runningMean, void* runningVariance, void* mean, void* inverseDeviation, const void* beta,
    kilnTensorDescriptor_t yDesc, void* y) {
  const Parts parts = parts_of(normDesc, residualDesc);
  return run(
      handle,
      {.alpha = alpha, .beta = beta, .alpha2 = factor_of(parts, factor), .alpha2_name = "factor"},
      training_operands(parts, x, scale, bias, residual,
                        {factor, runningMean, runningVariance, mean, inverseDeviation}, y),
      [&] {
        return kiln::make_normalization_training(spec_of(normDesc), tensor_of(xDesc, "xDesc"),
                                                 optional_tensor(residualDesc, "residualDesc"),
                                                 tensor_of(yDesc, "yDesc"));
      });
}

kilnStatus_t kilnCreateNormalizationForwardInferencePlan(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnTensorDescriptor_t xDesc,
    kilnTensorDescriptor_t residualDesc, kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan("NormalizationForwardInference", handle, plan, [&] {
    return kiln::make_normalization_inference(spec_of(normDesc), tensor_of(xDesc, "xDesc"),
                                              optional_tensor(residualDesc, "residualDesc"),
                                              tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnExecuteNormalizationForwardInference(kilnHandle_t handle, kilnPlan_t plan,
                                                      const void* alpha, const void* x,
                                                      const void* scale, const void* bias,
                                                      const void* mean, const void* variance,
                                                      const void* residual, const void* beta,
                                                      void* y) {
  return execute(
      "NormalizationForwardInference", handle, plan, {.alpha = alpha, .beta = beta},
      forward_operands(parts_of(plan), {x, scale, bias, mean, variance, "variance", residual}, y));
}

kilnStatus_t kilnNormalizationForwardInference(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, const void* alpha,
    kilnTensorDescriptor_t xDesc, const void* x, const void* scale, const void* bias,
    const void* mean, const void* variance, kilnTensorDescriptor_t residualDesc,
    const void* residual, const void* beta, kilnTensorDescriptor_t yDesc, void* y) {
  return run(handle, {.alpha = alpha, .beta = beta},
             forward_operands(parts_of(normDesc, residualDesc),
                              {x, scale, bias, mean, variance, "variance", residual}, y),
             [&] {
               return kiln::make_normalization_inference(
                   spec_of(normDesc), tensor_of(xDesc, "xDesc"),
                   optional_tensor(residualDesc, "residualDesc"), tensor_of(yDesc, "yDesc"));
             });
}

kilnStatus_t kilnCreateNormalizationApplyPlan(kilnHandle_t handle,
                                              kilnNormalizationDescriptor_t normDesc,
                                              kilnTensorDescriptor_t xDesc,
                                              kilnTensorDescriptor_t residualDesc,
                                              kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan("NormalizationApply", handle, plan, [&] {
    return kiln::make_normalization_apply(spec_of(normDesc), tensor_of(xDesc, "xDesc"),
                                          optional_tensor(residualDesc, "residualDesc"),
                                          tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnExecuteNormalizationApply(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                           const void* x, const void* scale, const void* bias,
                                           const void* mean, const void* inverseDeviation,
                                           const void* residual, const void* beta, void* y) {
  return execute(
      "NormalizationApply", handle, plan, {.alpha = alpha, .beta = beta},
      forward_operands(parts_of(plan),
                       {x, scale, bias, mean, inverseDeviation, "inverseDeviation", residual}, y));
}

kilnStatus_t kilnNormalizationApply(kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc,
                                    const void* alpha, kilnTensorDescriptor_t xDesc, const void* x,
                                    const void* scale, const void* bias, const void* mean,
                                    const void* inverseDeviation,
                                    kilnTensorDescriptor_t residualDesc, const void* residual,
                                    const void* beta, kilnTensorDescriptor_t yDesc, void* y) {
  return run(
      handle, {.alpha = alpha, .beta = beta},
      forward_operands(parts_of(normDesc, residualDesc),
                       {x, scale, bias, mean, inverseDeviation, "inverseDeviation", residual}, y),
      [&] {
        return kiln::make_normalization_apply(spec_of(normDesc), tensor_of(xDesc, "xDesc"),
                                              optional_tensor(residualDesc, "residualDesc"),
                                              tensor_of(yDesc, "yDesc"));
      });
}
