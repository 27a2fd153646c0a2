// Convolution in all passes. A workspace that the caller passes is not touched, and every algorithm
// gives Kiln's own choice.
#include "cudnn/descriptors/types.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/status.hpp"
#include "cudnn/operations/algorithm.hpp"
#include "cudnn/operations/convolution_call.hpp"

using kiln::cudnn::call_of;
using kiln::cudnn::check_algorithm;
using kiln::cudnn::Function;
using kiln::cudnn::kiln_of;
using kiln::cudnn::Pass;
using kiln::cudnn::run;
using kiln::cudnn::serve;

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* alpha,
                                      cudnnTensorDescriptor_t xDesc, const void* x,
                                      cudnnFilterDescriptor_t wDesc, const void* w,
                                      cudnnConvolutionDescriptor_t convDesc,
                                      cudnnConvolutionFwdAlgo_t algo, void* workSpace,
                                      size_t workSpaceSizeInBytes, const void* beta,
                                      cudnnTensorDescriptor_t yDesc, void* y) {
  return serve(
      Function(cudnnConvolutionForward),
      [&] {
        check_algorithm(algo);
        run(call_of(handle, xDesc, wDesc, convDesc, yDesc)
                .with({.x = x, .w = w, .y = y, .alpha = alpha, .beta = beta}));
      },
      handle, alpha, xDesc, x, wDesc, w, convDesc, algo, workSpace, workSpaceSizeInBytes, beta,
      yDesc, y);
}

cudnnStatus_t cudnnConvolutionBiasActivationForward(
    cudnnHandle_t handle, const void* alpha1, cudnnTensorDescriptor_t xDesc, const void* x,
    cudnnFilterDescriptor_t wDesc, const void* w, cudnnConvolutionDescriptor_t convDesc,
    cudnnConvolutionFwdAlgo_t algo, void* workSpace, size_t workSpaceSizeInBytes,
    const void* alpha2, cudnnTensorDescriptor_t zDesc, const void* z,
    cudnnTensorDescriptor_t biasDesc, const void* bias, cudnnActivationDescriptor_t activationDesc,
    cudnnTensorDescriptor_t yDesc, void* y) {
  return serve(
      Function(cudnnConvolutionBiasActivationForward),
      [&] {
        check_algorithm(algo);
        // A program without a residual passes y as z, with the factor 0.
        const bool has_z =
            kiln::cudnn::scalar(alpha2, kiln::cudnn::shape_of(yDesc, "yDesc").type, "alpha2") != 0;
        if (has_z) kiln::api::check_pointer(z, "z", "the address of a tensor, or an alpha2 of 0");
        static constexpr double zero = 0;  // its bytes are also a float's 0
        kiln::cudnn::ConvolutionCall call =
            call_of(handle, xDesc, wDesc, convDesc, yDesc)
                .with({.x = x, .w = w, .y = y, .alpha = alpha1, .beta = has_z ? alpha2 : &zero});
        call.pass = Pass::fused_forward;
        call.z_desc = has_z ? zDesc : nullptr;
        call.bias_desc = bias != nullptr ? biasDesc : nullptr;
        call.activation_desc = activationDesc;
        call.z = has_z ? z : nullptr;
        call.bias = bias;
        run(call);
      },
      handle, alpha1, xDesc, x, wDesc, w, convDesc, algo, workSpace, workSpaceSizeInBytes, alpha2,
      zDesc, z, biasDesc, bias, activationDesc, yDesc, y);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* alpha,
                                           cudnnFilterDescriptor_t wDesc, const void* w,
                                           cudnnTensorDescriptor_t dyDesc, const void* dy,
                                           cudnnConvolutionDescriptor_t convDesc,
                                           cudnnConvolutionBwdDataAlgo_t algo, void* workSpace,
                                           size_t workSpaceSizeInBytes, const void* beta,
                                           cudnnTensorDescriptor_t dxDesc, void* dx) {
  return serve(
      Function(cudnnConvolutionBackwardData),
      [&] {
        check_algorithm(algo);
        run(call_of(handle, wDesc, dyDesc, convDesc, dxDesc)
                .with({.x = dx, .w = w, .y = dy, .alpha = alpha, .beta = beta}));
      },
      handle, alpha, wDesc, w, dyDesc, dy, convDesc, algo, workSpace, workSpaceSizeInBytes, beta,
      dxDesc, dx);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void* alpha,
                                             cudnnTensorDescriptor_t xDesc, const void* x,
                                             cudnnTensorDescriptor_t dyDesc, const void* dy,
                                             cudnnConvolutionDescriptor_t convDesc,
                                             cudnnConvolutionBwdFilterAlgo_t algo, void* workSpace,
                                             size_t workSpaceSizeInBytes, const void* beta,
                                             cudnnFilterDescriptor_t dwDesc, void* dw) {
  return serve(
      Function(cudnnConvolutionBackwardFilter),
      [&] {
        check_algorithm(algo);
        run(call_of(handle, xDesc, dyDesc, convDesc, dwDesc)
                .with({.x = x, .w = dw, .y = dy, .alpha = alpha, .beta = beta}));
      },
      handle, alpha, xDesc, x, dyDesc, dy, convDesc, algo, workSpace, workSpaceSizeInBytes, beta,
      dwDesc, dw);
}

cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* alpha,
                                           cudnnTensorDescriptor_t dyDesc, const void* dy,
                                           const void* beta, cudnnTensorDescriptor_t dbDesc,
                                           void* db) {
  return serve(
      Function(cudnnConvolutionBackwardBias),
      [&] {
        kiln::cudnn::must(kilnConvolutionBackwardBias(kiln::cudnn::context_of(handle).handle.get(),
                                                      alpha, kiln_of(dyDesc, "dyDesc"), dy, beta,
                                                      kiln_of(dbDesc, "dbDesc"), db));
      },
      handle, alpha, dyDesc, dy, beta, dbDesc, db);
}
