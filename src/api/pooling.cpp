// Pooling and its gradient.
#include "api/operation.hpp"

using kiln::api::Argument;
using kiln::api::checked;
using kiln::api::create_plan;
using kiln::api::execute_plan;
using kiln::api::optional_tensor;
using kiln::api::run_at_once;
using kiln::api::tensor_of;

kilnStatus_t kilnCreatePoolingForwardPlan(kilnHandle_t handle, kilnPoolingDescriptor_t poolingDesc,
                                          kilnTensorDescriptor_t xDesc,
                                          kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan("PoolingForward", handle, plan, [&] {
    return kiln::make_pooling_forward(checked(poolingDesc, "poolingDesc").spec,
                                      tensor_of(xDesc, "xDesc"), tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnExecutePoolingForward(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                       const void* x, const void* beta, void* y) {
  return execute_plan("PoolingForward", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"x", x}, {"y", y}});
}

kilnStatus_t kilnPoolingForward(kilnHandle_t handle, kilnPoolingDescriptor_t poolingDesc,
                                const void* alpha, kilnTensorDescriptor_t xDesc, const void* x,
                                const void* beta, kilnTensorDescriptor_t yDesc, void* y) {
  return run_at_once(handle, {.alpha = alpha, .beta = beta}, {{"x", x}, {"y", y}}, [&] {
    return kiln::make_pooling_forward(checked(poolingDesc, "poolingDesc").spec,
                                      tensor_of(xDesc, "xDesc"), tensor_of(yDesc, "yDesc"));
  });
}

namespace {

kiln::PoolingProblem make_backward(kilnPoolingDescriptor_t poolingDesc,
                                   kilnTensorDescriptor_t dyDesc, kilnTensorDescriptor_t xDesc,
                                   kilnTensorDescriptor_t dxDesc) {
  return kiln::make_pooling_backward(checked(poolingDesc, "poolingDesc").spec,
                                     tensor_of(dyDesc, "dyDesc"), optional_tensor(xDesc, "xDesc"),
                                     tensor_of(dxDesc, "dxDesc"));
}

// Calls run() with the operands that the problem has: an average's gradient has no x.
template <class Run>
kilnStatus_t run_backward(bool max, const void* dy, const void* x, void* dx, const Run& run) {
  const Argument ady{"dy", dy}, ax{"x", x}, adx{"dx", dx};
  if (max) return run(std::initializer_list<Argument>{ady, ax, adx});
  return run(std::initializer_list<Argument>{ady, adx});
}

}  // namespace

kilnStatus_t kilnCreatePoolingBackwardPlan(kilnHandle_t handle, kilnPoolingDescriptor_t poolingDesc,
                                           kilnTensorDescriptor_t dyDesc,
                                           kilnTensorDescriptor_t xDesc,
                                           kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan) {
  return create_plan("PoolingBackward", handle, plan,
                     [&] { return make_backward(poolingDesc, dyDesc, xDesc, dxDesc); },
                     {{"x", xDesc != nullptr}});
}

kilnStatus_t kilnExecutePoolingBackward(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                        const void* dy, const void* x, const void* beta, void* dx) {
  // The plan knows whether there is an x; if it is no plan at all, execute_plan refuses it.
  bool max = x != nullptr;
  if (plan != nullptr && plan->mark.is(kilnPlanStruct::mark_value)) {
    if (const auto* problem = std::get_if<kiln::PoolingProblem>(&plan->plan.problem()))
      max = problem->mode == KILN_POOLING_MAX;
  }
  const char* const function = __func__;
  return run_backward(max, dy, x, dx, [&](std::initializer_list<Argument> arguments) {
    return execute_plan("PoolingBackward", handle, plan, {.alpha = alpha, .beta = beta}, arguments,
                        {x}, function);
  });
}

kilnStatus_t kilnPoolingBackward(kilnHandle_t handle, kilnPoolingDescriptor_t poolingDesc,
                                 const void* alpha, kilnTensorDescriptor_t dyDesc, const void* dy,
                                 kilnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                 kilnTensorDescriptor_t dxDesc, void* dx) {
  // If it is no descriptor at all, the call below refuses it.
  bool max = true;
  if (poolingDesc != nullptr && poolingDesc->mark.is(kilnPoolingStruct::mark_value))
    max = poolingDesc->spec.mode == KILN_POOLING_MAX;
  const char* const function = __func__;
  return run_backward(max, dy, x, dx, [&](std::initializer_list<Argument> arguments) {
    return run_at_once(
        handle, {.alpha = alpha, .beta = beta}, arguments,
        [&] { return make_backward(poolingDesc, dyDesc, xDesc, dxDesc); },
        {{"x", xDesc != nullptr}}, {x}, function);
  });
}
