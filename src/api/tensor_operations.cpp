// Transform, add, set, scale, binary operations and reductions of tensors.
#include "api/operation.hpp"

using kiln::api::create_plan;
using kiln::api::execute_plan;
using kiln::api::run_at_once;
using kiln::api::tensor_of;
using kiln::api::zero;

kilnStatus_t kilnCreateTransformTensorPlan(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                           kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan("TransformTensor", handle, plan, [&] {
    return kiln::make_transform(tensor_of(xDesc, "xDesc"), tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnExecuteTransformTensor(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                        const void* x, const void* beta, void* y) {
  return execute_plan("TransformTensor", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"x", x}, {"y", y}});
}

kilnStatus_t kilnTransformTensor(kilnHandle_t handle, const void* alpha,
                                 kilnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                 kilnTensorDescriptor_t yDesc, void* y) {
  return run_at_once(handle, {.alpha = alpha, .beta = beta}, {{"x", x}, {"y", y}}, [&] {
    return kiln::make_transform(tensor_of(xDesc, "xDesc"), tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnCreateAddTensorPlan(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                     kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan("AddTensor", handle, plan, [&] {
    return kiln::make_add(tensor_of(xDesc, "xDesc"), tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnExecuteAddTensor(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                  const void* x, const void* beta, void* y) {
  return execute_plan("AddTensor", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"x", x}, {"y", y}});
}

kilnStatus_t kilnAddTensor(kilnHandle_t handle, const void* alpha, kilnTensorDescriptor_t xDesc,
                           const void* x, const void* beta, kilnTensorDescriptor_t yDesc, void* y) {
  return run_at_once(handle, {.alpha = alpha, .beta = beta}, {{"x", x}, {"y", y}}, [&] {
    return kiln::make_add(tensor_of(xDesc, "xDesc"), tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnCreateSetTensorPlan(kilnHandle_t handle, kilnTensorDescriptor_t yDesc,
                                     kilnPlan_t* plan) {
  return create_plan("SetTensor", handle, plan,
                     [&] { return kiln::make_fill(tensor_of(yDesc, "yDesc")); });
}

kilnStatus_t kilnExecuteSetTensor(kilnHandle_t handle, kilnPlan_t plan, void* y,
                                  const void* value) {
  return execute_plan("SetTensor", handle, plan,
                      {.alpha = value, .beta = &zero, .alpha_name = "value"}, {{"y", y}});
}

kilnStatus_t kilnSetTensor(kilnHandle_t handle, kilnTensorDescriptor_t yDesc, void* y,
                           const void* value) {
  return run_at_once(handle, {.alpha = value, .beta = &zero, .alpha_name = "value"}, {{"y", y}},
                     [&] { return kiln::make_fill(tensor_of(yDesc, "yDesc")); });
}

kilnStatus_t kilnCreateScaleTensorPlan(kilnHandle_t handle, kilnTensorDescriptor_t yDesc,
                                       kilnPlan_t* plan) {
  return create_plan("ScaleTensor", handle, plan,
                     [&] { return kiln::make_fill(tensor_of(yDesc, "yDesc")); });
}

kilnStatus_t kilnExecuteScaleTensor(kilnHandle_t handle, kilnPlan_t plan, void* y,
                                    const void* alpha) {
  return execute_plan("ScaleTensor", handle, plan,
                      {.alpha = &zero, .beta = alpha, .beta_name = "alpha"}, {{"y", y}});
}

kilnStatus_t kilnScaleTensor(kilnHandle_t handle, kilnTensorDescriptor_t yDesc, void* y,
                             const void* alpha) {
  return run_at_once(handle, {.alpha = &zero, .beta = alpha, .beta_name = "alpha"}, {{"y", y}},
                     [&] { return kiln::make_fill(tensor_of(yDesc, "yDesc")); });
}

kilnStatus_t kilnCreateOpTensorPlan(kilnHandle_t handle, kilnOpTensorOp_t op,
                                    kilnTensorDescriptor_t aDesc, kilnTensorDescriptor_t bDesc,
                                    kilnTensorDescriptor_t cDesc, kilnPlan_t* plan) {
  return create_plan("OpTensor", handle, plan, [&] {
    return kiln::make_binary(op, tensor_of(aDesc, "aDesc"), tensor_of(bDesc, "bDesc"),
                             tensor_of(cDesc, "cDesc"));
  });
}

kilnStatus_t kilnExecuteOpTensor(kilnHandle_t handle, kilnPlan_t plan, const void* alpha1,
                                 const void* a, const void* alpha2, const void* b, const void* beta,
                                 void* c) {
  return execute_plan("OpTensor", handle, plan,
                      {.alpha = alpha1, .beta = beta, .alpha2 = alpha2, .alpha_name = "alpha1"},
                      {{"a", a}, {"b", b}, {"c", c}});
}

kilnStatus_t kilnOpTensor(kilnHandle_t handle, kilnOpTensorOp_t op, const void* alpha1,
                          kilnTensorDescriptor_t aDesc, const void* a, const void* alpha2,
                          kilnTensorDescriptor_t bDesc, const void* b, const void* beta,
                          kilnTensorDescriptor_t cDesc, void* c) {
  return run_at_once(
      handle, {.alpha = alpha1, .beta = beta, .alpha2 = alpha2, .alpha_name = "alpha1"},
      {{"a", a}, {"b", b}, {"c", c}}, [&] {
        return kiln::make_binary(op, tensor_of(aDesc, "aDesc"), tensor_of(bDesc, "bDesc"),
                                 tensor_of(cDesc, "cDesc"));
      });
}

kilnStatus_t kilnCreateReduceTensorPlan(kilnHandle_t handle, kilnReduceTensorOp_t op,
                                        kilnTensorDescriptor_t aDesc, kilnTensorDescriptor_t cDesc,
                                        kilnPlan_t* plan) {
  return create_plan("ReduceTensor", handle, plan, [&] {
    return kiln::make_reduction(op, tensor_of(aDesc, "aDesc"), tensor_of(cDesc, "cDesc"));
  });
}

kilnStatus_t kilnExecuteReduceTensor(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                     const void* a, const void* beta, void* c) {
  return execute_plan("ReduceTensor", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"a", a}, {"c", c}});
}

kilnStatus_t kilnReduceTensor(kilnHandle_t handle, kilnReduceTensorOp_t op, const void* alpha,
                              kilnTensorDescriptor_t aDesc, const void* a, const void* beta,
                              kilnTensorDescriptor_t cDesc, void* c) {
  return run_at_once(handle, {.alpha = alpha, .beta = beta}, {{"a", a}, {"c", c}}, [&] {
    return kiln::make_reduction(op, tensor_of(aDesc, "aDesc"), tensor_of(cDesc, "cDesc"));
  });
}
