// Locally connected layers and their gradients.
#include "api/operation.hpp"

using kiln::api::Argument;
using kiln::api::checked;
using kiln::api::create_plan;
using kiln::api::execute_plan;
using kiln::api::optional_tensor;
using kiln::api::run_at_once;
using kiln::api::tensor_of;

namespace {

// The operands of an execution are those of its problem, with or without a bias.
template <class Run>
kilnStatus_t run_forward(bool has_bias, const void* x, const void* w, const void* bias, void* y,
                         const Run& run) {
  if (has_bias) return run({{"x", x}, {"w", w}, {"bias", bias}, {"y", y}});
  return run({{"x", x}, {"w", w}, {"y", y}});
}

}  // namespace

kilnStatus_t kilnCreateLocalForwardPlan(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                        kilnTensorDescriptor_t wDesc,
                                        kilnConvolutionDescriptor_t convDesc,
                                        kilnTensorDescriptor_t biasDesc,
                                        kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan("LocalForward", handle, plan,
                     [&] {
                       return kiln::make_local(checked(convDesc, "convDesc").spec,
                                               tensor_of(xDesc, "xDesc"), tensor_of(wDesc, "wDesc"),
                                               optional_tensor(biasDesc, "biasDesc"),
                                               tensor_of(yDesc, "yDesc"));
                     },
                     {{"bias", biasDesc != nullptr}});
}

kilnStatus_t kilnExecuteLocalForward(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                     const void* x, const void* w, const void* beta,
                                     const void* bias, void* y) {
  // The plan knows whether there is one; if it is no plan at all, execute_plan refuses it.
  bool has_bias = bias != nullptr;
  if (plan != nullptr && plan->mark.is(kilnPlanStruct::mark_value))
    if (const auto* problem = std::get_if<kiln::LocalProblem>(&plan->plan.problem()))
      has_bias = problem->bias;
  const char* const function = __func__;
  return run_forward(has_bias, x, w, bias, y, [&](std::initializer_list<Argument> arguments) {
    return execute_plan("LocalForward", handle, plan, {.alpha = alpha, .beta = beta}, arguments,
                        {bias}, function);
  });
}

kilnStatus_t kilnLocalForward(kilnHandle_t handle, const void* alpha, kilnTensorDescriptor_t xDesc,
                              const void* x, kilnTensorDescriptor_t wDesc, const void* w,
                              kilnConvolutionDescriptor_t convDesc, const void* beta,
                              kilnTensorDescriptor_t biasDesc, const void* bias,
                              kilnTensorDescriptor_t yDesc, void* y) {
  const char* const function = __func__;
  const auto make = [&] {
    return kiln::make_local(checked(convDesc, "convDesc").spec, tensor_of(xDesc, "xDesc"),
                            tensor_of(wDesc, "wDesc"), optional_tensor(biasDesc, "biasDesc"),
                            tensor_of(yDesc, "yDesc"));
  };
  const bool has_bias = biasDesc != nullptr;
  return run_forward(has_bias, x, w, bias, y, [&](std::initializer_list<Argument> arguments) {
    return run_at_once(handle, {.alpha = alpha, .beta = beta}, arguments, make,
                       {{"bias", has_bias}}, {bias}, function);
  });
}

kilnStatus_t kilnCreateLocalBackwardDataPlan(kilnHandle_t handle, kilnTensorDescriptor_t wDesc,
                                             kilnTensorDescriptor_t dyDesc,
                                             kilnConvolutionDescriptor_t convDesc,
                                             kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan) {
  return create_plan("LocalBackwardData", handle, plan, [&] {
    return kiln::make_local_dgrad(checked(convDesc, "convDesc").spec, tensor_of(wDesc, "wDesc"),
                                  tensor_of(dyDesc, "dyDesc"), tensor_of(dxDesc, "dxDesc"));
  });
}

kilnStatus_t kilnExecuteLocalBackwardData(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                          const void* w, const void* dy, const void* beta,
                                          void* dx) {
  return execute_plan("LocalBackwardData", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"w", w}, {"dy", dy}, {"dx", dx}});
}

kilnStatus_t kilnLocalBackwardData(kilnHandle_t handle, const void* alpha,
                                   kilnTensorDescriptor_t wDesc, const void* w,
                                   kilnTensorDescriptor_t dyDesc, const void* dy,
                                   kilnConvolutionDescriptor_t convDesc, const void* beta,
                                   kilnTensorDescriptor_t dxDesc, void* dx) {
  return run_at_once(
      handle, {.alpha = alpha, .beta = beta}, {{"w", w}, {"dy", dy}, {"dx", dx}}, [&] {
        return kiln::make_local_dgrad(checked(convDesc, "convDesc").spec, tensor_of(wDesc, "wDesc"),
                                      tensor_of(dyDesc, "dyDesc"), tensor_of(dxDesc, "dxDesc"));
      });
}

kilnStatus_t kilnCreateLocalBackwardFilterPlan(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                               kilnTensorDescriptor_t dyDesc,
                                               kilnConvolutionDescriptor_t convDesc,
                                               kilnTensorDescriptor_t dwDesc, kilnPlan_t* plan) {
  return create_plan("LocalBackwardFilter", handle, plan, [&] {
    return kiln::make_local_wgrad(checked(convDesc, "convDesc").spec, tensor_of(xDesc, "xDesc"),
                                  tensor_of(dyDesc, "dyDesc"), tensor_of(dwDesc, "dwDesc"));
  });
}

kilnStatus_t kilnExecuteLocalBackwardFilter(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                            const void* x, const void* dy, const void* beta,
                                            void* dw) {
  return execute_plan("LocalBackwardFilter", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"x", x}, {"dy", dy}, {"dw", dw}});
}

kilnStatus_t kilnLocalBackwardFilter(kilnHandle_t handle, const void* alpha,
                                     kilnTensorDescriptor_t xDesc, const void* x,
                                     kilnTensorDescriptor_t dyDesc, const void* dy,
                                     kilnConvolutionDescriptor_t convDesc, const void* beta,
                                     kilnTensorDescriptor_t dwDesc, void* dw) {
  return run_at_once(
      handle, {.alpha = alpha, .beta = beta}, {{"x", x}, {"dy", dy}, {"dw", dw}}, [&] {
        return kiln::make_local_wgrad(checked(convDesc, "convDesc").spec, tensor_of(xDesc, "xDesc"),
                                      tensor_of(dyDesc, "dyDesc"), tensor_of(dwDesc, "dwDesc"));
      });
}
