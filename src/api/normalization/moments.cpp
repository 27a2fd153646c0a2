// The moments of a tensor's channels, and of the parts of a batch.
#include "api/normalization/call.hpp"

using kiln::api::create_plan;
using kiln::api::execute_plan;
using kiln::api::run_at_once;
using kiln::api::tensor_of;
using kiln::api::normalization::combine_operands;
using kiln::api::normalization::execute;
using kiln::api::normalization::factor_alone;
using kiln::api::normalization::factor_of;
using kiln::api::normalization::none;
using kiln::api::normalization::Parts;
using kiln::api::normalization::parts_of;
using kiln::api::normalization::run;
using kiln::api::normalization::scalar_type_of;
using kiln::api::normalization::spec_of;

kilnStatus_t kilnCreateNormalizationMomentsPlan(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                                kilnPlan_t* plan) {
  return create_plan("NormalizationMoments", handle, plan,
                     [&] { return kiln::make_normalization_moments(tensor_of(xDesc, "xDesc")); });
}

kilnStatus_t kilnExecuteNormalizationMoments(kilnHandle_t handle, kilnPlan_t plan, const void* x,
                                             void* moments) {
  return execute_plan("NormalizationMoments", handle, plan,
                      factor_alone(scalar_type_of(plan), &none), {{"x", x}, {"moments", moments}});
}

kilnStatus_t kilnNormalizationMoments(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                      const void* x, void* moments) {
  kilnDataType_t type = KILN_DATA_FLOAT;
  kilnGetTensorNdDescriptor(xDesc, 0, &type, nullptr, nullptr, nullptr);
  return run_at_once(handle, factor_alone(type, &none), {{"x", x}, {"moments", moments}},
                     [&] { return kiln::make_normalization_moments(tensor_of(xDesc, "xDesc")); });
}

kilnStatus_t kilnCreateCombineNormalizationMomentsPlan(kilnHandle_t handle,
                                                       kilnNormalizationDescriptor_t normDesc,
                                                       kilnDataType_t dataType, int64_t parts,
                                                       int64_t channels, kilnPlan_t* plan) {
  return create_plan("CombineNormalizationMoments", handle, plan, [&] {
    return kiln::make_normalization_combine(spec_of(normDesc), dataType, parts, channels);
  });
}

kilnStatus_t kilnExecuteCombineNormalizationMoments(kilnHandle_t handle, kilnPlan_t plan,
                                                    const void* partMoments, const void* factor,
                                                    void* runningMean, void* runningVariance,
                                                    void* mean, void* inverseDeviation,
                                                    void* moments) {
  const Parts parts = parts_of(plan);
  return execute(
      "CombineNormalizationMoments", handle, plan,
      factor_alone(scalar_type_of(plan), factor_of(parts, factor)),
      combine_operands(parts, partMoments,
                       {factor, runningMean, runningVariance, mean, inverseDeviation}, moments));
}

kilnStatus_t kilnCombineNormalizationMoments(
    kilnHandle_t handle, kilnNormalizationDescriptor_t normDesc, kilnDataType_t dataType,
    int64_t parts, int64_t channels, const void* partMoments, const void* factor, void* runningMean,
    void* runningVariance, void* mean, void* inverseDeviation, void* moments) {
  const Parts there = parts_of(normDesc, nullptr);
  return run(
      handle, factor_alone(dataType, factor_of(there, factor)),
      combine_operands(there, partMoments,
                       {factor, runningMean, runningVariance, mean, inverseDeviation}, moments),
      [&] {
        return kiln::make_normalization_combine(spec_of(normDesc), dataType, parts, channels);
      });
}
