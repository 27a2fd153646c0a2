// Queries of algorithms for the gradient of the data.
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/status.hpp"
#include "cudnn/operations/algorithm_query.hpp"

using kiln::cudnn::ConvolutionCall;
using kiln::cudnn::Function;
using kiln::cudnn::guarded;
using kiln::cudnn::serve;

namespace {

ConvolutionCall problem(cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc,
                        cudnnTensorDescriptor_t dyDesc, cudnnConvolutionDescriptor_t convDesc,
                        cudnnTensorDescriptor_t dxDesc) {
  return {.pass = kiln::cudnn::Pass::backward_data,
          .handle = handle,
          .x_desc = dxDesc,
          .w_desc = wDesc,
          .convolution_desc = convDesc,
          .y_desc = dyDesc};
}

}  // namespace

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return guarded([&] { kiln::cudnn::get_count(handle, count); });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  return serve(
      Function(cudnnGetConvolutionBackwardDataAlgorithm_v7),
      [&] {
        get_algorithms(problem(handle, wDesc, dyDesc, convDesc, dxDesc), requestedAlgoCount,
                       returnedAlgoCount, perfResults);
      },
      handle, wDesc, dyDesc, convDesc, dxDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  return serve(
      Function(cudnnFindConvolutionBackwardDataAlgorithm),
      [&] {
        find_algorithms(problem(handle, wDesc, dyDesc, convDesc, dxDesc), requestedAlgoCount,
                        returnedAlgoCount, perfResults);
      },
      handle, wDesc, dyDesc, convDesc, dxDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc, const void* w,
    cudnnTensorDescriptor_t dyDesc, const void* dy, cudnnConvolutionDescriptor_t convDesc,
    cudnnTensorDescriptor_t dxDesc, void* dx, int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t* perfResults, void* workSpace, size_t workSpaceSizeInBytes) {
  return serve(
      Function(cudnnFindConvolutionBackwardDataAlgorithmEx),
      [&] {
        ConvolutionCall call = problem(handle, wDesc, dyDesc, convDesc, dxDesc);
        call.x = kiln::cudnn::given(dx, "dx");
        call.w = kiln::cudnn::given(w, "w");
        call.y = kiln::cudnn::given(dy, "dy");
        find_algorithms(call, requestedAlgoCount, returnedAlgoCount, perfResults);
      },
      handle, wDesc, w, dyDesc, dy, convDesc, dxDesc, dx, requestedAlgoCount, returnedAlgoCount,
      perfResults, workSpace, workSpaceSizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataAlgo_t algo, size_t* sizeInBytes) {
  return serve(
      Function(cudnnGetConvolutionBackwardDataWorkspaceSize),
      [&] { get_workspace(problem(handle, wDesc, dyDesc, convDesc, dxDesc), algo, sizeInBytes); },
      handle, wDesc, dyDesc, convDesc, dxDesc, algo, sizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataPreference_t preference, size_t memoryLimitInBytes,
    cudnnConvolutionBwdDataAlgo_t* algo) {
  return serve(
      Function(cudnnGetConvolutionBackwardDataAlgorithm),
      [&] { get_preferred(problem(handle, wDesc, dyDesc, convDesc, dxDesc), preference, algo); },
      handle, wDesc, dyDesc, convDesc, dxDesc, preference, memoryLimitInBytes, algo);
}
