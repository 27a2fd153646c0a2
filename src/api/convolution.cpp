// Convolution in all its passes.
#include "api/operation.hpp"

using kiln::api::checked;
using kiln::api::create_plan;
using kiln::api::execute_plan;
using kiln::api::run_at_once;
using kiln::api::tensor_of;

kilnStatus_t kilnCreateConvolutionForwardPlan(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                              kilnFilterDescriptor_t wDesc,
                                              kilnConvolutionDescriptor_t convDesc,
                                              kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan("ConvolutionForward", handle, plan, [&] {
    return kiln::make_convolution(checked(convDesc, "convDesc").spec, tensor_of(xDesc, "xDesc"),
                                  tensor_of(wDesc, "wDesc"), tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnExecuteConvolutionForward(kilnHandle_t handle, kilnPlan_t plan, const void* alpha,
                                           const void* x, const void* w, const void* beta,
                                           void* y) {
  return execute_plan("ConvolutionForward", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"x", x}, {"w", w}, {"y", y}});
}

kilnStatus_t kilnConvolutionForward(kilnHandle_t handle, const void* alpha,
                                    kilnTensorDescriptor_t xDesc, const void* x,
                                    kilnFilterDescriptor_t wDesc, const void* w,
                                    kilnConvolutionDescriptor_t convDesc, const void* beta,
                                    kilnTensorDescriptor_t yDesc, void* y) {
  return run_at_once(handle, {.alpha = alpha, .beta = beta}, {{"x", x}, {"w", w}, {"y", y}}, [&] {
    return kiln::make_convolution(checked(convDesc, "convDesc").spec, tensor_of(xDesc, "xDesc"),
                                  tensor_of(wDesc, "wDesc"), tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnCreateConvolutionBackwardDataPlan(
    kilnHandle_t handle, kilnFilterDescriptor_t wDesc, kilnTensorDescriptor_t dyDesc,
    kilnConvolutionDescriptor_t convDesc, kilnTensorDescriptor_t dxDesc, kilnPlan_t* plan) {
  return create_plan("ConvolutionBackwardData", handle, plan, [&] {
    return kiln::make_convolution_dgrad(checked(convDesc, "convDesc").spec,
                                        tensor_of(wDesc, "wDesc"), tensor_of(dyDesc, "dyDesc"),
                                        tensor_of(dxDesc, "dxDesc"));
  });
}

kilnStatus_t kilnExecuteConvolutionBackwardData(kilnHandle_t handle, kilnPlan_t plan,
                                                const void* alpha, const void* w, const void* dy,
                                                const void* beta, void* dx) {
  return execute_plan("ConvolutionBackwardData", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"w", w}, {"dy", dy}, {"dx", dx}});
}

kilnStatus_t kilnConvolutionBackwardData(kilnHandle_t handle, const void* alpha,
                                         kilnFilterDescriptor_t wDesc, const void* w,
                                         kilnTensorDescriptor_t dyDesc, const void* dy,
                                         kilnConvolutionDescriptor_t convDesc, const void* beta,
                                         kilnTensorDescriptor_t dxDesc, void* dx) {
  return run_at_once(
      handle, {.alpha = alpha, .beta = beta}, {{"w", w}, {"dy", dy}, {"dx", dx}}, [&] {
        return kiln::make_convolution_dgrad(checked(convDesc, "convDesc").spec,
                                            tensor_of(wDesc, "wDesc"), tensor_of(dyDesc, "dyDesc"),
                                            tensor_of(dxDesc, "dxDesc"));
      });
}

kilnStatus_t kilnCreateConvolutionBackwardFilterPlan(
    kilnHandle_t handle, kilnTensorDescriptor_t xDesc, kilnTensorDescriptor_t dyDesc,
    kilnConvolutionDescriptor_t convDesc, kilnFilterDescriptor_t dwDesc, kilnPlan_t* plan) {
  return create_plan("ConvolutionBackwardFilter", handle, plan, [&] {
    return kiln::make_convolution_wgrad(checked(convDesc, "convDesc").spec,
                                        tensor_of(xDesc, "xDesc"), tensor_of(dyDesc, "dyDesc"),
                                        tensor_of(dwDesc, "dwDesc"));
  });
}

kilnStatus_t kilnExecuteConvolutionBackwardFilter(kilnHandle_t handle, kilnPlan_t plan,
                                                  const void* alpha, const void* x, const void* dy,
                                                  const void* beta, void* dw) {
  return execute_plan("ConvolutionBackwardFilter", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"x", x}, {"dy", dy}, {"dw", dw}});
}

kilnStatus_t kilnConvolutionBackwardFilter(kilnHandle_t handle, const void* alpha,
                                           kilnTensorDescriptor_t xDesc, const void* x,
                                           kilnTensorDescriptor_t dyDesc, const void* dy,
                                           kilnConvolutionDescriptor_t convDesc, const void* beta,
                                           kilnFilterDescriptor_t dwDesc, void* dw) {
  return run_at_once(
      handle, {.alpha = alpha, .beta = beta}, {{"x", x}, {"dy", dy}, {"dw", dw}}, [&] {
        return kiln::make_convolution_wgrad(checked(convDesc, "convDesc").spec,
                                            tensor_of(xDesc, "xDesc"), tensor_of(dyDesc, "dyDesc"),
                                            tensor_of(dwDesc, "dwDesc"));
      });
}

kilnStatus_t kilnCreateConvolutionBackwardBiasPlan(kilnHandle_t handle,
                                                   kilnTensorDescriptor_t dyDesc,
                                                   kilnTensorDescriptor_t dbDesc,
                                                   kilnPlan_t* plan) {
  return create_plan("ConvolutionBackwardBias", handle, plan, [&] {
    return kiln::make_bias_gradient(tensor_of(dyDesc, "dyDesc"), tensor_of(dbDesc, "dbDesc"));
  });
}

kilnStatus_t kilnExecuteConvolutionBackwardBias(kilnHandle_t handle, kilnPlan_t plan,
                                                const void* alpha, const void* dy, const void* beta,
                                                void* db) {
  return execute_plan("ConvolutionBackwardBias", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"dy", dy}, {"db", db}});
}

kilnStatus_t kilnConvolutionBackwardBias(kilnHandle_t handle, const void* alpha,
                                         kilnTensorDescriptor_t dyDesc, const void* dy,
                                         const void* beta, kilnTensorDescriptor_t dbDesc,
                                         void* db) {
  return run_at_once(handle, {.alpha = alpha, .beta = beta}, {{"dy", dy}, {"db", db}}, [&] {
    return kiln::make_bias_gradient(tensor_of(dyDesc, "dyDesc"), tensor_of(dbDesc, "dbDesc"));
  });
}

kilnStatus_t kilnCreateConvolutionTransposedPlan(kilnHandle_t handle, kilnTensorDescriptor_t xDesc,
                                                 kilnFilterDescriptor_t wDesc,
                                                 kilnConvolutionDescriptor_t convDesc,
                                                 kilnTensorDescriptor_t yDesc, kilnPlan_t* plan) {
  return create_plan("ConvolutionTransposed", handle, plan, [&] {
    return kiln::make_convolution_transposed(checked(convDesc, "convDesc").spec,
                                             tensor_of(xDesc, "xDesc"), tensor_of(wDesc, "wDesc"),
                                             tensor_of(yDesc, "yDesc"));
  });
}

kilnStatus_t kilnExecuteConvolutionTransposed(kilnHandle_t handle, kilnPlan_t plan,
                                              const void* alpha, const void* x, const void* w,
                                              const void* beta, void* y) {
  return execute_plan("ConvolutionTransposed", handle, plan, {.alpha = alpha, .beta = beta},
                      {{"w", w}, {"x", x}, {"y", y}});
}

kilnStatus_t kilnConvolutionTransposed(kilnHandle_t handle, const void* alpha,
                                       kilnTensorDescriptor_t xDesc, const void* x,
                                       kilnFilterDescriptor_t wDesc, const void* w,
                                       kilnConvolutionDescriptor_t convDesc, const void* beta,
                                       kilnTensorDescriptor_t yDesc, void* y) {
  return run_at_once(handle, {.alpha = alpha, .beta = beta}, {{"w", w}, {"x", x}, {"y", y}}, [&] {
    return kiln::make_convolution_transposed(checked(convDesc, "convDesc").spec,
                                             tensor_of(xDesc, "xDesc"), tensor_of(wDesc, "wDesc"),
                                             tensor_of(yDesc, "yDesc"));
  });
}
