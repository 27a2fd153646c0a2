// The gradients of normalizations.
#include "api/normalization/call.hpp"

using kiln::api::create_plan;
using kiln::api::optional_tensor;
using kiln::api::tensor_of;
using kiln::api::normalization::backward_apply_operands;
using kiln::api::normalization::backward_operands;
using kiln::api::normalization::execute;
using kiln::api::normalization::parts_of;
using kiln::api::normalization::run;
using kiln::api::normalization::spec_of;

kilnStatus_t kilnCreateNormalizationBackwardPlan(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnTensorDescriptor_t xDesc,
    kilnTensorDescriptor_t residualDesc, kilnTensorDescriptor_t dyDesc,
    kilnTensorDescriptor_t dresidualDesc, kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan) {
  return create_plan("NormalizationBackward", handle, plan, [&] {
    return kiln::make_normalization_backward(
        spec_of(normDesc), tensor_of(xDesc, "xDesc"), optional_tensor(residualDesc, "residualDesc"),
        tensor_of(dyDesc, "dyDesc"), optional_tensor(dresidualDesc, "dresidualDesc"),
        tensor_of(dxDesc, "dxDesc"));
  });
}

kilnStatus_t kilnExecuteNormalizationBackward(kilnHandle_t handle, kilnPlan_t plan,
                                              const void* alpha, const void* x, const void* scale,
                                              const void* bias, const void* mean,
                                              const void* inverseDeviation, const void* residual,
                                              const void* dy, void* dscale, void* dbias,
                                              void* dresidual, const void* beta, void* dx) {
  return execute(
      "NormalizationBackward", handle, plan, {.alpha = alpha, .beta = beta},
      backward_operands(parts_of(plan),
                        {x, scale, bias, mean, inverseDeviation, "inverseDeviation", residual}, dy,
                        dscale, dbias, dresidual, dx));
}

kilnStatus_t kilnNormalizationBackward(kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc,
                                       const void* alpha, kilnTensorDescriptor_t xDesc,
                                       const void* x, const void* scale, const void* bias,
                                       const void* mean, const void* inverseDeviation,
                                       kilnTensorDescriptor_t residualDesc, const void* residual,
                                       kilnTensorDescriptor_t dyDesc, const void* dy, void* dscale,
                                       void* dbias, kilnTensorDescriptor_t dresidualDesc,
                                       void* dresidual, const void* beta,
                                       kilnTensorDescriptor_t dxDesc, void* dx) {
  return run(
      handle, {.alpha = alpha, .beta = beta},
      backward_operands(parts_of(normDesc, residualDesc),
                        {x, scale, bias, mean, inverseDeviation, "inverseDeviation", residual}, dy,
                        dscale, dbias, dresidual, dx),
      [&] {
        return kiln::make_normalization_backward(
            spec_of(normDesc), tensor_of(xDesc, "xDesc"),
            optional_tensor(residualDesc, "residualDesc"), tensor_of(dyDesc, "dyDesc"),
            optional_tensor(dresidualDesc, "dresidualDesc"), tensor_of(dxDesc, "dxDesc"));
      });
}

kilnStatus_t kilnCreateNormalizationBackwardApplyPlan(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnTensorDescriptor_t xDesc,
    kilnTensorDescriptor_t dyDesc, kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan) {
  return create_plan("NormalizationBackwardApply", handle, plan, [&] {
    return kiln::make_normalization_backward_apply(spec_of(normDesc), tensor_of(xDesc, "xDesc"),
                                                   tensor_of(dyDesc, "dyDesc"),
                                                   tensor_of(dxDesc, "dxDesc"));
  });
}

kilnStatus_t kilnExecuteNormalizationBackwardApply(kilnHandle_t handle, kilnPlan_t plan,
                                                   const void* alpha, const void* x,
                                                   const void* scale, const void* mean,
                                                   const void* inverseDeviation, const void* dy,
                                                   const void* dscale, const void* dbias,
                                                   const void* beta, void* dx) {
  return execute(
      "NormalizationBackwardApply", handle, plan, {.alpha = alpha, .beta = beta},
      backward_apply_operands(
          parts_of(plan), {x, scale, nullptr, mean, inverseDeviation, "inverseDeviation", nullptr},
          dy, dscale, dbias, dx));
}

kilnStatus_t kilnNormalizationBackwardApply(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, const void* alpha,
    kilnTensorDescriptor_t xDesc, const void* x, const void* scale, const void* mean,
    const void* inverseDeviation, kilnTensorDescriptor_t dyDesc, const void* dy, const void* dscale,
    const void* dbias, const void* beta, kilnTensorDescriptor_t dxDesc, void* dx) {
  return run(handle, {.alpha = alpha, .beta = beta},
             backward_apply_operands(
                 parts_of(normDesc, nullptr),
                 {x, scale, nullptr, mean, inverseDeviation, "inverseDeviation", nullptr}, dy,
                 dscale, dbias, dx),
             [&] {
               return kiln::make_normalization_backward_apply(
                   spec_of(normDesc), tensor_of(xDesc, "xDesc"), tensor_of(dyDesc, "dyDesc"),
                   tensor_of(dxDesc, "dxDesc"));
             });
}
