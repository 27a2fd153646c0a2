// Queries of algorithms for the gradient of the data.
#include "cudnn/library/status.hpp"
#include "cudnn/operations/algorithm_query.hpp"

using namespace kiln::cudnn;  // NOLINT(google-build-using-namespace): the API follows

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return guarded([&] { get_count(handle, count); });
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  return query(Function(cudnnGetConvolutionBackwardDataAlgorithm_v7), get_algorithms, handle, wDesc,
               dyDesc, convDesc, dxDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdDataAlgoPerf_t* perfResults) {
  return query(Function(cudnnFindConvolutionBackwardDataAlgorithm), find_algorithms, handle, wDesc,
               dyDesc, convDesc, dxDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc, const void* w,
    cudnnTensorDescriptor_t dyDesc, const void* dy, cudnnConvolutionDescriptor_t convDesc,
    cudnnTensorDescriptor_t dxDesc, void* dx, int requestedAlgoCount, int* returnedAlgoCount,
    cudnnConvolutionBwdDataAlgoPerf_t* perfResults, void* workSpace, size_t workSpaceSizeInBytes) {
  return serve(
      Function(cudnnFindConvolutionBackwardDataAlgorithmEx),
      [&] {
        find_algorithms(call_of(handle, wDesc, dyDesc, convDesc, dxDesc)
                            .with({.x = given(dx, "dx"), .w = given(w, "w"), .y = given(dy, "dy")}),
                        requestedAlgoCount, returnedAlgoCount, perfResults);
      },
      handle, wDesc, w, dyDesc, dy, convDesc, dxDesc, dx, requestedAlgoCount, returnedAlgoCount,
      perfResults, workSpace, workSpaceSizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataAlgo_t algo, size_t* sizeInBytes) {
  return query(Function(cudnnGetConvolutionBackwardDataWorkspaceSize), get_workspace, handle, wDesc,
               dyDesc, convDesc, dxDesc, algo, sizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm(
    cudnnHandle_t handle, cudnnFilterDescriptor_t wDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnTensorDescriptor_t dxDesc,
    cudnnConvolutionBwdDataPreference_t preference, size_t memoryLimitInBytes,
    cudnnConvolutionBwdDataAlgo_t* algo) {
  return query(Function(cudnnGetConvolutionBackwardDataAlgorithm), get_preferred, handle, wDesc,
               dyDesc, convDesc, dxDesc, preference, memoryLimitInBytes, algo);
}
