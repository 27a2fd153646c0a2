// Batch normalization, its gradient and its moments.
#include "api/normalization.hpp"

#include <string_view>

#include "api/operation.hpp"

using kiln::NormalizationProblem;
using kiln::NormalizationSpec;
using kiln::api::Argument;
using kiln::api::Arguments;
using kiln::api::checked;
using kiln::api::create_plan;
using kiln::api::execute_plan;
using kiln::api::optional_tensor;
using kiln::api::run_at_once;
using kiln::api::ScalarArguments;
using kiln::api::tensor_of;

namespace {

constexpr double one = 1, none = 0;
constexpr float one_f32 = 1;

// The arguments of an execution, or the name of one that must be null.
class Operands {
 public:
  void add(const char* name, const void* address) { list_.add({name, address}); }
  void add_if(bool given, const char* name, const void* address) {
    if (given)
      add(name, address);
    else if (address != nullptr && stray_.name == nullptr)
      stray_ = {name, address};
  }
  // Throws BAD_PARAM.
  void check() const {
    if (stray_.name != nullptr)
      kiln::fail(KILN_STATUS_BAD_PARAM, stray_.name,
                 " is given; expected null, as the descriptors leave it out");
  }
  const Arguments& list() const { return list_; }

 private:
  Arguments list_;
  Argument stray_;
};

NormalizationSpec spec_of(kilnNormalizationDescriptor_t descriptor) {
  return checked(descriptor, "normDesc").spec;
}

// What decides which operands there are. Of a plan that is none, nothing: executing refuses it.
struct Parts {
  bool affine = false, running = false, residual = false;
};
Parts parts_of(kilnPlan_t plan) {
  if (plan != nullptr && plan->mark.is(kilnPlanStruct::mark_value))
    if (const auto* problem = std::get_if<NormalizationProblem>(&plan->plan.problem()))
      return {problem->affine, problem->running, problem->residual};
  return {};
}
Parts parts_of(kilnNormalizationDescriptor_t descriptor, kilnTensorDescriptor_t residual) {
  if (descriptor == nullptr || !descriptor->mark.is(kilnNormalizationStruct::mark_value)) return {};
  return {descriptor->spec.affine, descriptor->spec.running, residual != nullptr};
}

// Executes with operands that were checked, in the function that was called.
kilnStatus_t execute(const char* operation, kilnHandle_t handle, kilnPlan_t plan,
                     const ScalarArguments& scalars, const Operands& operands,
                     const char* function = __builtin_FUNCTION()) noexcept {
  if (plan != nullptr && plan->mark.is(kilnPlanStruct::mark_value) &&
      std::string_view(plan->operation) == operation) {
    const kilnStatus_t status = kiln::api::guarded([&] { operands.check(); }, function);
    if (status != KILN_STATUS_SUCCESS) return status;
  }
  return execute_plan(operation, handle, plan, scalars, operands.list(), {}, function);
}
template <class Make>
kilnStatus_t run(kilnHandle_t handle, const ScalarArguments& scalars, const Operands& operands,
                 const Make& make, const char* function = __builtin_FUNCTION()) noexcept {
  return run_at_once(
      handle, scalars, operands.list(),
      [&] {
        const NormalizationProblem problem = make();
        operands.check();
        return problem;
      },
      {}, {}, function);
}

// Of operations without alpha and beta; the moments' have no factor either.
ScalarArguments factor_alone(kilnDataType_t scalar_type, const void* factor) {
  return {.alpha = scalar_type == KILN_DATA_DOUBLE ? static_cast<const void*>(&one) : &one_f32,
          .beta = &none,
          .alpha2 = factor,
          .alpha2_name = "factor"};
}
kilnDataType_t scalar_type_of(kilnPlan_t plan) {
  const bool is_plan = plan != nullptr && plan->mark.is(kilnPlanStruct::mark_value);
  return is_plan ? plan->plan.scalar_type() : KILN_DATA_FLOAT;
}

struct Statistics {
  const void* factor;
  void *running_mean, *running_variance, *mean, *deviation;
};
void add_statistics(Operands& operands, const Parts& parts, const Statistics& s) {
  operands.add_if(parts.running, "runningMean", s.running_mean);
  operands.add_if(parts.running, "runningVariance", s.running_variance);
  operands.add("mean", s.mean);
  operands.add("inverseDeviation", s.deviation);
}

// Without running statistics nothing reads the factor, and it may be null.
const void* factor_of(const Parts& parts, const void* factor) {
  return parts.running ? factor : &none;
}

Operands training_operands(const Parts& parts, const void* x, const void* scale, const void* bias,
                           const void* residual, const Statistics& statistics, void* y) {
  Operands out;
  out.add("x", x);
  out.add_if(parts.affine, "scale", scale);
  out.add_if(parts.affine, "bias", bias);
  out.add_if(parts.residual, "residual", residual);
  add_statistics(out, parts, statistics);
  out.add("y", y);
  return out;
}

struct Given {
  const void *x, *scale, *bias, *mean, *spread;
  const char* spread_name;
  const void* residual;
};
Operands given_operands(const Parts& parts, const Given& given) {
  Operands out;
  out.add("x", given.x);
  out.add_if(parts.affine, "scale", given.scale);
  out.add_if(parts.affine, "bias", given.bias);
  out.add("mean", given.mean);
  out.add(given.spread_name, given.spread);
  out.add_if(parts.residual, "residual", given.residual);
  return out;
}
Operands forward_operands(const Parts& parts, const Given& given, void* y) {
  Operands out = given_operands(parts, given);
  out.add("y", y);
  return out;
}
Operands backward_operands(const Parts& parts, const Given& given, const void* dy, void* dscale,
                           void* dbias, void* dresidual, void* dx) {
  Operands out = given_operands(parts, given);
  out.add("dy", dy);
  out.add("dscale", dscale);
  out.add("dbias", dbias);
  out.add_if(parts.residual, "dresidual", dresidual);
  out.add("dx", dx);
  return out;
}

Operands backward_apply_operands(const Parts& parts, const Given& given, const void* dy,
                                 const void* dscale, const void* dbias, void* dx) {
  Operands out;
  out.add("x", given.x);
  out.add_if(parts.affine, "scale", given.scale);
  out.add("mean", given.mean);
  out.add(given.spread_name, given.spread);
  out.add("dy", dy);
  out.add("dscale", dscale);
  out.add("dbias", dbias);
  out.add("dx", dx);
  return out;
}

Operands combine_operands(const Parts& parts, const void* of_parts, const Statistics& statistics,
                          void* moments) {
  Operands out;
  out.add("partMoments", of_parts);
  add_statistics(out, parts, statistics);
  out.add("moments", moments);
  return out;
}

}  // namespace

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
