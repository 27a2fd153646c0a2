/* Functions of recurrent networks that version 9 removed, and algorithm descriptors. Every function
 * refuses. */
#ifndef KILN_CUDNN_REMOVED_RNN_H
#define KILN_CUDNN_REMOVED_RNN_H

#include "cudnn_adv.h"
#include "cudnn_cnn.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cudnnPersistentRNNPlan* cudnnPersistentRNNPlan_t;
typedef struct cudnnAlgorithmStruct* cudnnAlgorithmDescriptor_t;
typedef struct cudnnAlgorithmPerformanceStruct* cudnnAlgorithmPerformance_t;

typedef struct cudnnAlgorithmUnionStruct {
  union Algorithm {
    cudnnConvolutionFwdAlgo_t convFwdAlgo;
    cudnnConvolutionBwdFilterAlgo_t convBwdFilterAlgo;
    cudnnConvolutionBwdDataAlgo_t convBwdDataAlgo;
    cudnnRNNAlgo_t RNNAlgo;
    cudnnCTCLossAlgo_t CTCLossAlgo;
  } algo;
} cudnnAlgorithm_t;

cudnnStatus_t CUDNNWINAPI cudnnCreateAlgorithmDescriptor(cudnnAlgorithmDescriptor_t* algoDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetAlgorithmDescriptor(cudnnAlgorithmDescriptor_t algoDesc,
                                                      cudnnAlgorithm_t algorithm);
cudnnStatus_t CUDNNWINAPI cudnnGetAlgorithmDescriptor(cudnnAlgorithmDescriptor_t algoDesc,
                                                      cudnnAlgorithm_t* algorithm);
cudnnStatus_t CUDNNWINAPI cudnnCopyAlgorithmDescriptor(cudnnAlgorithmDescriptor_t src,
                                                       cudnnAlgorithmDescriptor_t dest);
cudnnStatus_t CUDNNWINAPI cudnnDestroyAlgorithmDescriptor(cudnnAlgorithmDescriptor_t algoDesc);
cudnnStatus_t CUDNNWINAPI cudnnCreateAlgorithmPerformance(cudnnAlgorithmPerformance_t* algoPerf,
                                                          int numberToCreate);
cudnnStatus_t CUDNNWINAPI cudnnSetAlgorithmPerformance(cudnnAlgorithmPerformance_t algoPerf,
                                                       cudnnAlgorithmDescriptor_t algoDesc,
                                                       cudnnStatus_t status, float time,
                                                       size_t memory);
cudnnStatus_t CUDNNWINAPI cudnnGetAlgorithmPerformance(cudnnAlgorithmPerformance_t algoPerf,
                                                       cudnnAlgorithmDescriptor_t* algoDesc,
                                                       cudnnStatus_t* status, float* time,
                                                       size_t* memory);
cudnnStatus_t CUDNNWINAPI cudnnDestroyAlgorithmPerformance(cudnnAlgorithmPerformance_t* algoPerf,
                                                           int numberToDestroy);
cudnnStatus_t CUDNNWINAPI cudnnGetAlgorithmSpaceSize(cudnnHandle_t handle,
                                                     cudnnAlgorithmDescriptor_t algoDesc,
                                                     size_t* algoSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnSaveAlgorithm(cudnnHandle_t handle,
                                             cudnnAlgorithmDescriptor_t algoDesc, void* algoSpace,
                                             size_t algoSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnRestoreAlgorithm(cudnnHandle_t handle, const void* algoSpace,
                                                size_t algoSpaceSizeInBytes,
                                                cudnnAlgorithmDescriptor_t algoDesc);

cudnnStatus_t CUDNNWINAPI
cudnnSetRNNDescriptor_v6(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int hiddenSize,
                         int numLayers, cudnnDropoutDescriptor_t dropoutDesc,
                         cudnnRNNInputMode_t inputMode, cudnnDirectionMode_t direction,
                         cudnnRNNMode_t cellMode, cudnnRNNAlgo_t algo, cudnnDataType_t mathPrec);
cudnnStatus_t CUDNNWINAPI
cudnnGetRNNDescriptor_v6(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int* hiddenSize,
                         int* numLayers, cudnnDropoutDescriptor_t* dropoutDesc,
                         cudnnRNNInputMode_t* inputMode, cudnnDirectionMode_t* direction,
                         cudnnRNNMode_t* cellMode, cudnnRNNAlgo_t* algo, cudnnDataType_t* mathPrec);
cudnnStatus_t CUDNNWINAPI cudnnSetRNNMatrixMathType(cudnnRNNDescriptor_t rnnDesc,
                                                    cudnnMathType_t mType);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNMatrixMathType(cudnnRNNDescriptor_t rnnDesc,
                                                    cudnnMathType_t* mType);
cudnnStatus_t CUDNNWINAPI cudnnSetRNNBiasMode(cudnnRNNDescriptor_t rnnDesc,
                                              cudnnRNNBiasMode_t biasMode);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNBiasMode(cudnnRNNDescriptor_t rnnDesc,
                                              cudnnRNNBiasMode_t* biasMode);
cudnnStatus_t CUDNNWINAPI cudnnRNNSetClip(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                          cudnnRNNClipMode_t clipMode,
                                          cudnnNanPropagation_t clipNanOpt, double lclip,
                                          double rclip);
cudnnStatus_t CUDNNWINAPI cudnnRNNGetClip(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                          cudnnRNNClipMode_t* clipMode,
                                          cudnnNanPropagation_t* clipNanOpt, double* lclip,
                                          double* rclip);
cudnnStatus_t CUDNNWINAPI cudnnSetRNNProjectionLayers(cudnnHandle_t handle,
                                                      cudnnRNNDescriptor_t rnnDesc, int recProjSize,
                                                      int outProjSize);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNProjectionLayers(cudnnHandle_t handle,
                                                      cudnnRNNDescriptor_t rnnDesc,
                                                      int* recProjSize, int* outProjSize);
cudnnStatus_t CUDNNWINAPI cudnnCreatePersistentRNNPlan(cudnnRNNDescriptor_t rnnDesc, int minibatch,
                                                       cudnnDataType_t dataType,
                                                       cudnnPersistentRNNPlan_t* plan);
cudnnStatus_t CUDNNWINAPI cudnnDestroyPersistentRNNPlan(cudnnPersistentRNNPlan_t plan);
cudnnStatus_t CUDNNWINAPI cudnnSetPersistentRNNPlan(cudnnRNNDescriptor_t rnnDesc,
                                                    cudnnPersistentRNNPlan_t plan);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNWorkspaceSize(cudnnHandle_t handle,
                                                   cudnnRNNDescriptor_t rnnDesc, int seqLength,
                                                   const cudnnTensorDescriptor_t* xDesc,
                                                   size_t* sizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNTrainingReserveSize(cudnnHandle_t handle,
                                                         cudnnRNNDescriptor_t rnnDesc,
                                                         int seqLength,
                                                         const cudnnTensorDescriptor_t* xDesc,
                                                         size_t* sizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNParamsSize(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                cudnnTensorDescriptor_t xDesc, size_t* sizeInBytes,
                                                cudnnDataType_t dataType);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNLinLayerMatrixParams(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int pseudoLayer,
    cudnnTensorDescriptor_t xDesc, cudnnFilterDescriptor_t wDesc, const void* w, int linLayerID,
    cudnnFilterDescriptor_t linLayerMatDesc, void** linLayerMat);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNLinLayerBiasParams(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int pseudoLayer,
    cudnnTensorDescriptor_t xDesc, cudnnFilterDescriptor_t wDesc, const void* w, int linLayerID,
    cudnnFilterDescriptor_t linLayerBiasDesc, void** linLayerBias);
cudnnStatus_t CUDNNWINAPI cudnnRNNForwardInference(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int seqLength,
    const cudnnTensorDescriptor_t* xDesc, const void* x, cudnnTensorDescriptor_t hxDesc,
    const void* hx, cudnnTensorDescriptor_t cxDesc, const void* cx, cudnnFilterDescriptor_t wDesc,
    const void* w, const cudnnTensorDescriptor_t* yDesc, void* y, cudnnTensorDescriptor_t hyDesc,
    void* hy, cudnnTensorDescriptor_t cyDesc, void* cy, void* workSpace,
    size_t workSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnSetRNNPaddingMode(cudnnRNNDescriptor_t rnnDesc,
                                                 unsigned paddingMode);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNPaddingMode(cudnnRNNDescriptor_t rnnDesc,
                                                 unsigned* paddingMode);
cudnnStatus_t CUDNNWINAPI cudnnRNNForwardInferenceEx(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnRNNDataDescriptor_t xDesc,
    const void* x, cudnnTensorDescriptor_t hxDesc, const void* hx, cudnnTensorDescriptor_t cxDesc,
    const void* cx, cudnnFilterDescriptor_t wDesc, const void* w, cudnnRNNDataDescriptor_t yDesc,
    void* y, cudnnTensorDescriptor_t hyDesc, void* hy, cudnnTensorDescriptor_t cyDesc, void* cy,
    cudnnRNNDataDescriptor_t kDesc, const void* keys, cudnnRNNDataDescriptor_t cDesc,
    const void* cAttn, cudnnRNNDataDescriptor_t iDesc, const void* iAttn,
    cudnnRNNDataDescriptor_t qDesc, const void* queries, void* workSpace,
    size_t workSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnSetRNNAlgorithmDescriptor(cudnnHandle_t handle,
                                                         cudnnRNNDescriptor_t rnnDesc,
                                                         cudnnAlgorithmDescriptor_t algoDesc);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNForwardInferenceAlgorithmMaxCount(cudnnHandle_t handle,
                                                                       cudnnRNNDescriptor_t rnnDesc,
                                                                       int* count);
cudnnStatus_t CUDNNWINAPI cudnnFindRNNForwardInferenceAlgorithmEx(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int seqLength,
    const cudnnTensorDescriptor_t* xDesc, const void* x, cudnnTensorDescriptor_t hxDesc,
    const void* hx, cudnnTensorDescriptor_t cxDesc, const void* cx, cudnnFilterDescriptor_t wDesc,
    const void* w, const cudnnTensorDescriptor_t* yDesc, void* y, cudnnTensorDescriptor_t hyDesc,
    void* hy, cudnnTensorDescriptor_t cyDesc, void* cy, float findIntensity, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnAlgorithmPerformance_t* perfResults, void* workspace,
    size_t workSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnRNNForwardTraining(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int seqLength,
    const cudnnTensorDescriptor_t* xDesc, const void* x, cudnnTensorDescriptor_t hxDesc,
    const void* hx, cudnnTensorDescriptor_t cxDesc, const void* cx, cudnnFilterDescriptor_t wDesc,
    const void* w, const cudnnTensorDescriptor_t* yDesc, void* y, cudnnTensorDescriptor_t hyDesc,
    void* hy, cudnnTensorDescriptor_t cyDesc, void* cy, void* workSpace,
    size_t workSpaceSizeInBytes, void* reserveSpace, size_t reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardData(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int seqLength,
    const cudnnTensorDescriptor_t* yDesc, const void* y, const cudnnTensorDescriptor_t* dyDesc,
    const void* dy, cudnnTensorDescriptor_t dhyDesc, const void* dhy,
    cudnnTensorDescriptor_t dcyDesc, const void* dcy, cudnnFilterDescriptor_t wDesc, const void* w,
    cudnnTensorDescriptor_t hxDesc, const void* hx, cudnnTensorDescriptor_t cxDesc, const void* cx,
    const cudnnTensorDescriptor_t* dxDesc, void* dx, cudnnTensorDescriptor_t dhxDesc, void* dhx,
    cudnnTensorDescriptor_t dcxDesc, void* dcx, void* workSpace, size_t workSpaceSizeInBytes,
    void* reserveSpace, size_t reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardWeights(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int seqLength,
    const cudnnTensorDescriptor_t* xDesc, const void* x, cudnnTensorDescriptor_t hxDesc,
    const void* hx, const cudnnTensorDescriptor_t* yDesc, const void* y, void* workSpace,
    size_t workSpaceSizeInBytes, cudnnFilterDescriptor_t dwDesc, void* dw, void* reserveSpace,
    size_t reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnRNNForwardTrainingEx(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnRNNDataDescriptor_t xDesc,
    const void* x, cudnnTensorDescriptor_t hxDesc, const void* hx, cudnnTensorDescriptor_t cxDesc,
    const void* cx, cudnnFilterDescriptor_t wDesc, const void* w, cudnnRNNDataDescriptor_t yDesc,
    void* y, cudnnTensorDescriptor_t hyDesc, void* hy, cudnnTensorDescriptor_t cyDesc, void* cy,
    cudnnRNNDataDescriptor_t kDesc, const void* keys, cudnnRNNDataDescriptor_t cDesc,
    const void* cAttn, cudnnRNNDataDescriptor_t iDesc, const void* iAttn,
    cudnnRNNDataDescriptor_t qDesc, const void* queries, void* workSpace,
    size_t workSpaceSizeInBytes, void* reserveSpace, size_t reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardDataEx(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnRNNDataDescriptor_t yDesc,
    const void* y, cudnnRNNDataDescriptor_t dyDesc, const void* dy, cudnnRNNDataDescriptor_t dcDesc,
    const void* dcAttn, cudnnTensorDescriptor_t dhyDesc, const void* dhy,
    cudnnTensorDescriptor_t dcyDesc, const void* dcy, cudnnFilterDescriptor_t wDesc, const void* w,
    cudnnTensorDescriptor_t hxDesc, const void* hx, cudnnTensorDescriptor_t cxDesc, const void* cx,
    cudnnRNNDataDescriptor_t dxDesc, void* dx, cudnnTensorDescriptor_t dhxDesc, void* dhx,
    cudnnTensorDescriptor_t dcxDesc, void* dcx, cudnnRNNDataDescriptor_t dkDesc, void* dkeys,
    void* workSpace, size_t workSpaceSizeInBytes, void* reserveSpace,
    size_t reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardWeightsEx(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnRNNDataDescriptor_t xDesc,
    const void* x, cudnnTensorDescriptor_t hxDesc, const void* hx, cudnnRNNDataDescriptor_t yDesc,
    const void* y, void* workSpace, size_t workSpaceSizeInBytes, cudnnFilterDescriptor_t dwDesc,
    void* dw, void* reserveSpace, size_t reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNForwardTrainingAlgorithmMaxCount(cudnnHandle_t handle,
                                                                      cudnnRNNDescriptor_t rnnDesc,
                                                                      int* count);
cudnnStatus_t CUDNNWINAPI cudnnFindRNNForwardTrainingAlgorithmEx(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int seqLength,
    const cudnnTensorDescriptor_t* xDesc, const void* x, cudnnTensorDescriptor_t hxDesc,
    const void* hx, cudnnTensorDescriptor_t cxDesc, const void* cx, cudnnFilterDescriptor_t wDesc,
    const void* w, const cudnnTensorDescriptor_t* yDesc, void* y, cudnnTensorDescriptor_t hyDesc,
    void* hy, cudnnTensorDescriptor_t cyDesc, void* cy, float findIntensity, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnAlgorithmPerformance_t* perfResults, void* workspace,
    size_t workSpaceSizeInBytes, void* reserveSpace, size_t reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNBackwardDataAlgorithmMaxCount(cudnnHandle_t handle,
                                                                   cudnnRNNDescriptor_t rnnDesc,
                                                                   int* count);
cudnnStatus_t CUDNNWINAPI cudnnFindRNNBackwardDataAlgorithmEx(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int seqLength,
    const cudnnTensorDescriptor_t* yDesc, const void* y, const cudnnTensorDescriptor_t* dyDesc,
    const void* dy, cudnnTensorDescriptor_t dhyDesc, const void* dhy,
    cudnnTensorDescriptor_t dcyDesc, const void* dcy, cudnnFilterDescriptor_t wDesc, const void* w,
    cudnnTensorDescriptor_t hxDesc, const void* hx, cudnnTensorDescriptor_t cxDesc, const void* cx,
    const cudnnTensorDescriptor_t* dxDesc, void* dx, cudnnTensorDescriptor_t dhxDesc, void* dhx,
    cudnnTensorDescriptor_t dcxDesc, void* dcx, float findIntensity, int requestedAlgoCount,
    int* returnedAlgoCount, cudnnAlgorithmPerformance_t* perfResults, void* workspace,
    size_t workSpaceSizeInBytes, void* reserveSpace, size_t reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNBackwardWeightsAlgorithmMaxCount(cudnnHandle_t handle,
                                                                      cudnnRNNDescriptor_t rnnDesc,
                                                                      int* count);
cudnnStatus_t CUDNNWINAPI cudnnFindRNNBackwardWeightsAlgorithmEx(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, int seqLength,
    const cudnnTensorDescriptor_t* xDesc, const void* x, cudnnTensorDescriptor_t hxDesc,
    const void* hx, const cudnnTensorDescriptor_t* yDesc, const void* y, float findIntensity,
    int requestedAlgoCount, int* returnedAlgoCount, cudnnAlgorithmPerformance_t* perfResults,
    void* workspace, size_t workSpaceSizeInBytes, cudnnFilterDescriptor_t dwDesc, void* dw,
    void* reserveSpace, size_t reserveSpaceSizeInBytes);

cudnnStatus_t CUDNNWINAPI cudnnSetRNNDescriptor_v5(cudnnRNNDescriptor_t rnnDesc, int hiddenSize,
                                                   int numLayers,
                                                   cudnnDropoutDescriptor_t dropoutDesc,
                                                   cudnnRNNInputMode_t inputMode,
                                                   cudnnDirectionMode_t direction,
                                                   cudnnRNNMode_t mode, cudnnDataType_t mathPrec);
cudnnStatus_t CUDNNWINAPI cudnnSetRNNDescriptor(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                int hiddenSize, int numLayers,
                                                cudnnDropoutDescriptor_t dropoutDesc,
                                                cudnnRNNInputMode_t inputMode,
                                                cudnnDirectionMode_t direction, cudnnRNNMode_t mode,
                                                cudnnRNNAlgo_t algo, cudnnDataType_t mathPrec);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNDescriptor(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                                int* hiddenSize, int* numLayers,
                                                cudnnDropoutDescriptor_t* dropoutDesc,
                                                cudnnRNNInputMode_t* inputMode,
                                                cudnnDirectionMode_t* direction,
                                                cudnnRNNMode_t* mode, cudnnRNNAlgo_t* algo,
                                                cudnnDataType_t* mathPrec);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CUDNN_REMOVED_RNN_H */
