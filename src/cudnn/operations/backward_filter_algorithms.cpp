// Queries of algorithms for the gradient of the filter.
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/status.hpp"
#include "cudnn/operations/algorithm_query.hpp"

using kiln::cudnn::ConvolutionCall;
using kiln::cudnn::Function;
using kiln::cudnn::guarded;
using kiln::cudnn::serve;

namespace {

ConvolutionCall problem(cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc,
                        cudnnTensorDescriptor_t dyDesc, cudnnConvolutionDescriptor_t convDesc,
                        cudnnFilterDescriptor_t dwDesc) {
  return {.pass = kiln::cudnn::Pass::backward_filter,
          .handle = handle,
          .x_desc = xDesc,
          .w_desc = dwDesc,
          .convolution_desc = convDesc,
          .y_desc = dyDesc};
}

}  // namespace

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return guarded([&] { kiln::cudnn::get_count(handle, count); });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  return serve(
      Function(cudnnGetConvolutionBackwardFilterAlgorithm_v7),
      [&] {
        get_algorithms(problem(handle, xDesc, dyDesc, convDesc, dwDesc), requestedAlgoCount,
                       returnedAlgoCount, perfResults);
      },
      handle, xDesc, dyDesc, convDesc, dwDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  return serve(
      Function(cudnnFindConvolutionBackwardFilterAlgorithm),
      [&] {
        find_algorithms(problem(handle, xDesc, dyDesc, convDesc, dwDesc), requestedAlgoCount,
                        returnedAlgoCount, perfResults);
      },
      handle, xDesc, dyDesc, convDesc, dwDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithmEx(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, const void* x,
    cudnnTensorDescriptor_t dyDesc, const void* dy, cudnnConvolutionDescriptor_t convDesc,
    cudnnFilterDescriptor_t dwDesc, void* dw, int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionBwdFilterAlgoPerf_t* perfResults, void* workSpace,
    size_t workSpaceSizeInBytes) {
  return serve(
      Function(cudnnFindConvolutionBackwardFilterAlgorithmEx),
      [&] {
        ConvolutionCall call = problem(handle, xDesc, dyDesc, convDesc, dwDesc);
        call.x = kiln::cudnn::given(x, "x");
        call.w = kiln::cudnn::given(dw, "dw");
        call.y = kiln::cudnn::given(dy, "dy");
        find_algorithms(call, requestedAlgoCount, returnedAlgoCount, perfResults);
      },
      handle, xDesc, x, dyDesc, dy, convDesc, dwDesc, dw, requestedAlgoCount, returnedAlgoCount,
      perfResults, workSpace, workSpaceSizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t* sizeInBytes) {
  return serve(
      Function(cudnnGetConvolutionBackwardFilterWorkspaceSize),
      [&] { get_workspace(problem(handle, xDesc, dyDesc, convDesc, dwDesc), algo, sizeInBytes); },
      handle, xDesc, dyDesc, convDesc, dwDesc, algo, sizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc,
    cudnnConvolutionBwdFilterPreference_t preference, size_t memoryLimitInBytes,
    cudnnConvolutionBwdFilterAlgo_t* algo) {
  return serve(
      Function(cudnnGetConvolutionBackwardFilterAlgorithm),
      [&] { get_preferred(problem(handle, xDesc, dyDesc, convDesc, dwDesc), preference, algo); },
      handle, xDesc, dyDesc, convDesc, dwDesc, preference, memoryLimitInBytes, algo);
}
