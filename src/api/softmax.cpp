// Softmax and its gradient.
#include "api/operation.hpp"

using kiln::api::create_plan;
using kiln::api::execute_plan;
using kiln::api::run_at_once;
using kiln::api::tensor_of;

kilnStatus_t kilnCreateSoftmaxForwardPlan(kilnHandle_t handle, kilnSoftmaxAlgorithm_t algorithm,
                                          kilnSoftmaxMode_t mode, kilnTensorDescriptor_t xDesc,
                                          kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan("SoftmaxForward", handle, plan, [&] {
    return kiln::make_softmax_forward(algorithm, mode, tensor_of(xDesc, "xDesc"),
                                      tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnExecuteSoftmaxForward(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                       const void* x, const void* beta, void* y) {
  return execute_plan("SoftmaxForward", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"x", x}, {"y", y}});
}

kilnStatus_t kilnSoftmaxForward(kilnHandle_t handle, kilnSoftmaxAlgorithm_t algorithm,
                                kilnSoftmaxMode_t mode, const void* alpha,
                                kilnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                kilnTensorDescriptor_t yDesc, void* y) {
  return run_at_once(handle, {.alpha = alpha, .beta = beta}, {{"x", x}, {"y", y}}, [&] {
    return kiln::make_softmax_forward(algorithm, mode, tensor_of(xDesc, "xDesc"),
                                      tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnCreateSoftmaxBackwardPlan(kilnHandle_t handle, kilnSoftmaxAlgorithm_t algorithm,
                                           kilnSoftmaxMode_t mode, kilnTensorDescriptor_t yDesc,
                                           kilnTensorDescriptor_t dyDesc,
                                           kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan) {
  return create_plan("SoftmaxBackward", handle, plan, [&] {
    return kiln::make_softmax_backward(algorithm, mode, tensor_of(yDesc, "yDesc"),
                                       tensor_of(dyDesc, "dyDesc"), tensor_of(dxDesc, "dxDesc"));
  });
}

kilnStatus_t kilnExecuteSoftmaxBackward(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                        const void* y, const void* dy, const void* beta, void* dx) {
  return execute_plan("SoftmaxBackward", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"y", y}, {"dy", dy}, {"dx", dx}});
}

kilnStatus_t kilnSoftmaxBackward(kilnHandle_t handle, kilnSoftmaxAlgorithm_t algorithm,
                                 kilnSoftmaxMode_t mode, const void* alpha,
                                 kilnTensorDescriptor_t yDesc, const void* y,
                                 kilnTensorDescriptor_t dyDesc, const void* dy, const void* beta,
                                 kilnTensorDescriptor_t dxDesc, void* dx) {
  return run_at_once(
      handle, {.alpha = alpha, .beta = beta}, {{"y", y}, {"dy", dy}, {"dx", dx}}, [&] {
        return kiln::make_softmax_backward(algorithm, mode, tensor_of(yDesc, "yDesc"),
                                           tensor_of(dyDesc, "dyDesc"),
                                           tensor_of(dxDesc, "dxDesc"));
      });
}
