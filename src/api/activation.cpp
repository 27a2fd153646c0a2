// Activation descriptors, activations and their gradients.
#include "api/activation.hpp"

#include "api/operation.hpp"

namespace kiln::api {

const Activation& activation_of(kilnActivationDescriptor_t descriptor) {
  const kilnActivationStruct& object = checked(descriptor, "activationDesc");
  if (!object.set)
    fail(KILN_STATUS_NOT_INITIALIZED, "activationDesc was created but never set; expected a mode");
  return object.activation;
}

}  // namespace kiln::api

using kiln::api::activation_of;
using kiln::api::Argument;
using kiln::api::checked;
using kiln::api::create;
using kiln::api::create_plan;
using kiln::api::destroy;
using kiln::api::execute_plan;
using kiln::api::guarded;
using kiln::api::run_at_once;
using kiln::api::tensor_of;

kilnStatus_t kilnCreateActivationDescriptor(kilnActivationDescriptor_t* descriptor) {
  return create(descriptor, "descriptor");
}

kilnStatus_t kilnDestroyActivationDescriptor(kilnActivationDescriptor_t descriptor) {
  return destroy(descriptor, "descriptor");
}

kilnStatus_t kilnSetActivationDescriptor(kilnActivationDescriptor_t descriptor,
                                         kilnActivationMode_t mode, double coef) {
  return guarded([&] {
    auto& target = checked(descriptor, "descriptor");
    if (kiln::coefficients_of(mode) > 1)
      kiln::fail(KILN_STATUS_BAD_PARAM, "mode is ", static_cast<int>(mode), " (",
                 kiln::name_of(mode),
                 "), which has two coefficients; expected kilnSetActivationDescriptorEx for it");
    target.activation = kiln::make_activation({mode, coef});
    target.set = true;
  });
}

kilnStatus_t kilnSetActivationDescriptorEx(kilnActivationDescriptor_t descriptor,
                                           kilnActivationMode_t mode, double coef, double coef2) {
  return guarded([&] {
    auto& target = checked(descriptor, "descriptor");
    target.activation = kiln::make_activation({mode, coef, coef2});
    target.set = true;
  });
}

kilnStatus_t kilnGetActivationDescriptor(kilnActivationDescriptor_t descriptor,
                                         kilnActivationMode_t* mode, double* coef) {
  return kilnGetActivationDescriptorEx(descriptor, mode, coef, nullptr);
}

kilnStatus_t kilnGetActivationDescriptorEx(kilnActivationDescriptor_t descriptor,
                                           kilnActivationMode_t* mode, double* coef,
                                           double* coef2) {
  return guarded([&] {
    const kilnActivationStruct& source = checked(descriptor, "descriptor");
    if (!source.set)
      kiln::fail(KILN_STATUS_NOT_INITIALIZED,
                 "descriptor was created but never set; expected a mode");
    if (mode != nullptr) *mode = source.activation.mode;
    if (coef != nullptr) *coef = source.activation.coefficient;
    if (coef2 != nullptr) *coef2 = source.activation.coefficient2;
  });
}

kilnStatus_t kilnCreateActivationForwardPlan(kilnHandle_t handle,
                                             kilnActivationDescriptor_t activationDesc,
                                             kilnTensorDescriptor_t xDesc,
                                             kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan("ActivationForward", handle, plan, [&] {
    return kiln::make_activation_forward(activation_of(activationDesc), tensor_of(xDesc, "xDesc"),
                                         tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnExecuteActivationForward(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                          const void* x, const void* beta, void* y) {
  return execute_plan("ActivationForward", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"x", x}, {"y", y}});
}

kilnStatus_t kilnActivationForward(kilnHandle_t handle, kilnActivationDescriptor_t activationDesc,
                                   const void* alpha, kilnTensorDescriptor_t xDesc, const void* x,
                                   const void* beta, kilnTensorDescriptor_t yDesc, void* y) {
  return run_at_once(handle, {.alpha = alpha, .beta = beta}, {{"x", x}, {"y", y}}, [&] {
    return kiln::make_activation_forward(activation_of(activationDesc), tensor_of(xDesc, "xDesc"),
                                         tensor_of(yDesc, "yDesc"));
  });
}

namespace {

kiln::PointwiseProblem make_backward(kilnActivationDescriptor_t activationDesc,
                                     kilnTensorDescriptor_t yDesc, kilnTensorDescriptor_t dyDesc,
                                     kilnTensorDescriptor_t xDesc, kilnTensorDescriptor_t dxDesc) {
  const kiln::Activation& activation = activation_of(activationDesc);
  const bool from_y = kiln::gradient_from_output(activation);
  const char* const name = from_y ? "yDesc" : "xDesc";
  return kiln::make_activation_backward(activation, tensor_of(from_y ? yDesc : xDesc, name), name,
                                        tensor_of(dyDesc, "dyDesc"), tensor_of(dxDesc, "dxDesc"));
}

}  // namespace

kilnStatus_t kilnCreateActivationBackwardPlan(kilnHandle_t handle,
                                              kilnActivationDescriptor_t activationDesc,
                                              kilnTensorDescriptor_t yDesc,
                                              kilnTensorDescriptor_t dyDesc,
                                              kilnTensorDescriptor_t xDesc,
                                              kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan) {
  return create_plan("ActivationBackward", handle, plan,
                     [&] { return make_backward(activationDesc, yDesc, dyDesc, xDesc, dxDesc); },
                     {{"y", yDesc != nullptr}, {"x", xDesc != nullptr}});
}

kilnStatus_t kilnExecuteActivationBackward(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                           const void* y, const void* dy, const void* x,
                                           const void* beta, void* dx) {
  // The plan knows which of y and x is read; if it is no plan at all, execute_plan refuses it.
  bool from_y = true;
  if (plan != nullptr && plan->mark.is(kilnPlanStruct::mark_value)) {
    if (const auto* problem = std::get_if<kiln::PointwiseProblem>(&plan->plan.problem()))
      from_y = kiln::gradient_from_output(problem->activation);
  }
  const Argument saved = from_y ? Argument{"y", y} : Argument{"x", x};
  return execute_plan("ActivationBackward", handle, plan, {.alpha = alpha, .beta = beta},
                      {saved, {"dy", dy}, {"dx", dx}}, {y, x});
}

kilnStatus_t kilnActivationBackward(kilnHandle_t handle, kilnActivationDescriptor_t activationDesc,
                                    const void* alpha, kilnTensorDescriptor_t yDesc, const void* y,
                                    kilnTensorDescriptor_t dyDesc, const void* dy,
                                    kilnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                    kilnTensorDescriptor_t dxDesc, void* dx) {
  // If it is no descriptor at all, the call below refuses it.
  bool from_y = true;
  if (activationDesc != nullptr && activationDesc->mark.is(kilnActivationStruct::mark_value))
    from_y = kiln::gradient_from_output(activationDesc->activation);
  const Argument saved = from_y ? Argument{"y", y} : Argument{"x", x};
  return run_at_once(handle, {.alpha = alpha, .beta = beta}, {saved, {"dy", dy}, {"dx", dx}},
                     [&] { return make_backward(activationDesc, yDesc, dyDesc, xDesc, dxDesc); },
                     {{"y", yDesc != nullptr}, {"x", xDesc != nullptr}}, {y, x});
}
