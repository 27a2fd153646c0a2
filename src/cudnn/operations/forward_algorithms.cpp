// Queries of algorithms for the forward pass.
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/status.hpp"
#include "cudnn/operations/algorithm_query.hpp"

using kiln::cudnn::ConvolutionCall;
using kiln::cudnn::Function;
using kiln::cudnn::guarded;
using kiln::cudnn::serve;

namespace {

ConvolutionCall problem(cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc,
                        cudnnFilterDescriptor_t wDesc, cudnnConvolutionDescriptor_t convDesc,
                        cudnnTensorDescriptor_t yDesc) {
  return {.pass = kiln::cudnn::Pass::forward,
          .handle = handle,
          .x_desc = xDesc,
          .w_desc = wDesc,
          .convolution_desc = convDesc,
          .y_desc = yDesc};
}

}  // namespace

cudnnStatus_t cudnnGetConvolutionForwardAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return guarded([&] { kiln::cudnn::get_count(handle, count); });
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnFilterDescriptor_t wDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t yDesc, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  return serve(
      Function(cudnnGetConvolutionForwardAlgorithm_v7),
      [&] {
        get_algorithms(problem(handle, xDesc, wDesc, convDesc, yDesc), requestedAlgoCount,
                       returnedAlgoCount, perfResults);
      },
      handle, xDesc, wDesc, convDesc, yDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithm(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnFilterDescriptor_t wDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t yDesc, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionFwdAlgoPerf_t* perfResults) {
  return serve(
      Function(cudnnFindConvolutionForwardAlgorithm),
      [&] {
        find_algorithms(problem(handle, xDesc, wDesc, convDesc, yDesc), requestedAlgoCount,
                        returnedAlgoCount, perfResults);
      },
      handle, xDesc, wDesc, convDesc, yDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionForwardAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, const void* x,
    cudnnFilterDescriptor_t wDesc, const void* w, cudnnConvolutionDescriptor_t convDesc,
    cudnnTensorDescriptor_t yDesc, void* y, int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionFwdAlgoPerf_t* perfResults, void* workSpace, size_t workSpaceSizeInBytes) {
  return serve(
      Function(cudnnFindConvolutionForwardAlgorithmEx),
      [&] {
        ConvolutionCall call = problem(handle, xDesc, wDesc, convDesc, yDesc);
        call.x = kiln::cudnn::given(x, "x");
        call.w = kiln::cudnn::given(w, "w");
        call.y = kiln::cudnn::given(y, "y");
        find_algorithms(call, requestedAlgoCount, returnedAlgoCount, perfResults);
      },
      handle, xDesc, x, wDesc, w, convDesc, yDesc, y, requestedAlgoCount, returnedAlgoCount,
      perfResults, workSpace, workSpaceSizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnFilterDescriptor_t wDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t yDesc,
    cudnnConvolutionFwdAlgo_t algo, size_t* sizeInBytes) {
  return serve(
      Function(cudnnGetConvolutionForwardWorkspaceSize),
      [&] { get_workspace(problem(handle, xDesc, wDesc, convDesc, yDesc), algo, sizeInBytes); },
      handle, xDesc, wDesc, convDesc, yDesc, algo, sizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnFilterDescriptor_t wDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t yDesc,
    cudnnConvolutionFwdPreference_t preference, size_t memoryLimitInBytes,
    cudnnConvolutionFwdAlgo_t* algo) {
  return serve(
      Function(cudnnGetConvolutionForwardAlgorithm),
      [&] { get_preferred(problem(handle, xDesc, wDesc, convDesc, yDesc), preference, algo); },
      handle, xDesc, wDesc, convDesc, yDesc, preference, memoryLimitInBytes, algo);
}
