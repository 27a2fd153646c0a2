// Queries of algorithms for the gradient of the filter.
#include "cudnn/library/status.hpp"
#include "cudnn/operations/algorithm_query.hpp"

using namespace kiln::cudnn;  // NOLINT(google-build-using-namespace): the API follows

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(cudnnHandle_t handle, int* count) {
  return guarded([&] { get_count(handle, count); });
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  return query(Function(cudnnGetConvolutionBackwardFilterAlgorithm_v7), get_algorithms, handle,
               xDesc, dyDesc, convDesc, dwDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
}

cudnnStatus_t cudnnFindConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnConvolutionBwdFilterAlgoPerf_t* perfResults) {
  return query(Function(cudnnFindConvolutionBackwardFilterAlgorithm), find_algorithms, handle,
               xDesc, dyDesc, convDesc, dwDesc, requestedAlgoCount, returnedAlgoCount, perfResults);
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
        find_algorithms(call_of(handle, xDesc, dyDesc, convDesc, dwDesc)
                            .with({.x = given(x, "x"), .w = given(dw, "dw"), .y = given(dy, "dy")}),
                        requestedAlgoCount, returnedAlgoCount, perfResults);
      },
      handle, xDesc, x, dyDesc, dy, convDesc, dwDesc, dw, requestedAlgoCount, returnedAlgoCount,
      perfResults, workSpace, workSpaceSizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc,
    cudnnConvolutionBwdFilterAlgo_t algo, size_t* sizeInBytes) {
  return query(Function(cudnnGetConvolutionBackwardFilterWorkspaceSize), get_workspace, handle,
               xDesc, dyDesc, convDesc, dwDesc, algo, sizeInBytes);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm(
    cudnnHandle_t handle, cudnnTensorDescriptor_t xDesc, cudnnTensorDescriptor_t dyDesc,
    cudnnConvolutionDescriptor_t convDesc, cudnnFilterDescriptor_t dwDesc,
    cudnnConvolutionBwdFilterPreference_t preference, size_t memoryLimitInBytes,
    cudnnConvolutionBwdFilterAlgo_t* algo) {
  return query(Function(cudnnGetConvolutionBackwardFilterAlgorithm), get_preferred, handle, xDesc,
               dyDesc, convDesc, dwDesc, preference, memoryLimitInBytes, algo);
}
