// Convolutions with an epilogue: of any list, and of the usual one.
#include "api/activation.hpp"
#include "api/epilogue_plan.hpp"
#include "api/operation.hpp"

using kiln::api::activation_of;
using kiln::api::Argument;
using kiln::api::Arguments;
using kiln::api::checked;
using kiln::api::create_list_plan;
using kiln::api::create_plan;
using kiln::api::execute_list;
using kiln::api::execute_plan;
using kiln::api::optional_tensor;
using kiln::api::run_at_once;
using kiln::api::run_list_at_once;
using kiln::api::tensor_of;

namespace {

const char* const fused = "ConvolutionBiasActivationForward";

kiln::ConvolutionProblem make_fused(kilnTensorDescriptor_t xDesc, kilnFilterDescriptor_t wDesc,
                                    kilnConvolutionDescriptor_t convDesc,
                                    kilnTensorDescriptor_t zDesc, kilnTensorDescriptor_t biasDesc,
                                    kilnActivationDescriptor_t activationDesc,
                                    kilnTensorDescriptor_t yDesc) {
  return kiln::make_convolution(
      checked(convDesc, "convDesc").spec, tensor_of(xDesc, "xDesc"), tensor_of(wDesc, "wDesc"),
      tensor_of(yDesc, "yDesc"),
      kiln::bias_activation_epilogue(optional_tensor(zDesc, "zDesc"),
                                     optional_tensor(biasDesc, "biasDesc"),
                                     activation_of(activationDesc)));
}

// The operands that a plan has, in its order. Those of the epilogue have no name where it has none.
Arguments in_order(const Argument& first, const Argument& second,
                   std::initializer_list<Argument> of_epilogue, const Argument& y) {
  Arguments all{first, second};
  for (const Argument& argument : of_epilogue)
    if (argument.name != nullptr) all.add(argument);
  all.add(y);
  return all;
}

Argument given_if(bool given, const Argument& argument) { return given ? argument : Argument{}; }

// Makes the problem of a list, forward or transposed; the descriptors are read when it is called.
template <class Make>
auto maker(Make make, kilnTensorDescriptor_t xDesc, kilnFilterDescriptor_t wDesc,
           kilnConvolutionDescriptor_t convDesc, kilnTensorDescriptor_t yDesc) {
  return [=](const kiln::EpilogueList& list) {
    return make(checked(convDesc, "convDesc").spec, tensor_of(xDesc, "xDesc"),
                tensor_of(wDesc, "wDesc"), tensor_of(yDesc, "yDesc"), list);
  };
}

}  // namespace

kilnStatus_t kilnCreateConvolutionBiasActivationForwardPlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnFilterDescriptor_t wDesc,
    kilnConvolutionDescriptor_t convDesc, kilnTensorDescriptor_t zDesc,
    kilnTensorDescriptor_t biasDesc, kilnActivationDescriptor_t activationDesc,
    kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan(
      fused, handle, plan,
      [&] { return make_fused(xDesc, wDesc, convDesc, zDesc, biasDesc, activationDesc, yDesc); },
      {{"z", zDesc != nullptr}, {"bias", biasDesc != nullptr}});
}

kilnStatus_t kilnExecuteConvolutionBiasActivationForward(kilnHandle_t handle, kilnPlan_t plan,
                                                         const void* alpha, const void* x,
                                                         const void* w, const void* beta,
                                                         const void* z, const void* bias, void* y) {
  // The plan knows its operands; if it is no plan at all, execute_plan refuses it.
  bool has_z = z != nullptr, has_bias = bias != nullptr;
  if (plan != nullptr && plan->mark.is(kilnPlanStruct::mark_value)) {
    if (const auto* problem = std::get_if<kiln::ConvolutionProblem>(&plan->plan.problem())) {
      has_z = problem->epilogue.residual;
      has_bias = problem->epilogue.bias;
    }
  }
  return execute_plan(
      fused, handle, plan, {.alpha = alpha, .beta = beta},
      in_order({"x", x}, {"w", w}, {given_if(has_z, {"z", z}), given_if(has_bias, {"bias", bias})},
               {"y", y}),
      {z, bias}, __func__);
}

kilnStatus_t kilnConvolutionBiasActivationForward(
    kilnHandle_t handle, const void* alpha, kilnTensorDescriptor_t xDesc, const void* x,
    kilnFilterDescriptor_t wDesc, const void* w, kilnConvolutionDescriptor_t convDesc,
    const void* beta, kilnTensorDescriptor_t zDesc, const void* z, kilnTensorDescriptor_t biasDesc,
    const void* bias, kilnActivationDescriptor_t activationDesc, kilnTensorDescriptor_t yDesc,
    void* y) {
  const bool has_z = zDesc != nullptr, has_bias = biasDesc != nullptr;
  const auto make = [&] {
    return make_fused(xDesc, wDesc, convDesc, zDesc, biasDesc, activationDesc, yDesc);
  };
  return run_at_once(
      handle, {.alpha = alpha, .beta = beta},
      in_order({"x", x}, {"w", w}, {given_if(has_z, {"z", z}), given_if(has_bias, {"bias", bias})},
               {"y", y}),
      make, {{"z", has_z}, {"bias", has_bias}}, {z, bias}, __func__);
}

kilnStatus_t kilnCreateConvolutionForwardEpiloguePlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnFilterDescriptor_t wDesc,
    kilnConvolutionDescriptor_t convDesc, kilnEpilogueDescriptor_t epilogueDesc,
    kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_list_plan("ConvolutionForwardEpilogue", handle, epilogueDesc, plan,
                          maker(kiln::make_convolution, xDesc, wDesc, convDesc, yDesc));
}

kilnStatus_t kilnExecuteConvolutionForwardEpilogue(kilnHandle_t handle, kilnPlan_t plan,
                                                   const void* alpha, const void* x, const void* w,
                                                   const void* beta, int operandCount,
                                                   const void* const operands[], void* y) {
  return execute_list("ConvolutionForwardEpilogue", handle, plan, {.alpha = alpha, .beta = beta},
                      operandCount, operands, {"x", x}, {"w", w}, {"y", y});
}

kilnStatus_t kilnConvolutionForwardEpilogue(kilnHandle_t handle, const void* alpha,
                                            kilnTensorDescriptor_t xDesc, const void* x,
                                            kilnFilterDescriptor_t wDesc, const void* w,
                                            kilnConvolutionDescriptor_t convDesc, const void* beta,
                                            kilnEpilogueDescriptor_t epilogueDesc, int operandCount,
                                            const void* const operands[],
                                            kilnTensorDescriptor_t yDesc, void* y) {
  return run_list_at_once(handle, {.alpha = alpha, .beta = beta}, epilogueDesc, operandCount,
                          operands, {"x", x}, {"w", w}, {"y", y},
                          maker(kiln::make_convolution, xDesc, wDesc, convDesc, yDesc));
}

kilnStatus_t kilnCreateConvolutionTransposedEpiloguePlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnFilterDescriptor_t wDesc,
    kilnConvolutionDescriptor_t convDesc, kilnEpilogueDescriptor_t epilogueDesc,
    kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_list_plan("ConvolutionTransposedEpilogue", handle, epilogueDesc, plan,
                          maker(kiln::make_convolution_transposed, xDesc, wDesc, convDesc, yDesc));
}

kilnStatus_t kilnExecuteConvolutionTransposedEpilogue(kilnHandle_t handle, kilnPlan_t plan,
                                                      const void* alpha, const void* x,
                                                      const void* w, const void* beta,
                                                      int operandCount,
                                                      const void* const operands[], void* y) {
  return execute_list("ConvolutionTransposedEpilogue", handle, plan, {.alpha = alpha, .beta = beta},
                      operandCount, operands, {"w", w}, {"x", x}, {"y", y});
}

kilnStatus_t kilnConvolutionTransposedEpilogue(
    kilnHandle_t handle, const void* alpha, kilnTensorDescriptor_t xDesc, const void* x,
    kilnFilterDescriptor_t wDesc, const void* w, kilnConvolutionDescriptor_t convDesc,
    const void* beta, kilnEpilogueDescriptor_t epilogueDesc, int operandCount,
    const void* const operands[], kilnTensorDescriptor_t yDesc, void* y) {
  return run_list_at_once(handle, {.alpha = alpha, .beta = beta}, epilogueDesc, operandCount,
                          operands, {"w", w}, {"x", x}, {"y", y},
                          maker(kiln::make_convolution_transposed, xDesc, wDesc, convDesc, yDesc));
}
