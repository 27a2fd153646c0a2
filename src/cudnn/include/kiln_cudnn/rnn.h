/* Recurrent networks. Every function refuses, unless KILN_CUDNN_FORWARD names a library that takes
 * it. */
#ifndef KILN_CUDNN_RNN_H
#define KILN_CUDNN_RNN_H

#include "kiln_cudnn/status.h"
#include "kiln_cudnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cudnnRNNStruct* cudnnRNNDescriptor_t;
typedef struct cudnnRNNDataStruct* cudnnRNNDataDescriptor_t;

typedef enum {
  CUDNN_RNN_ALGO_STANDARD = 0,
  CUDNN_RNN_ALGO_PERSIST_STATIC = 1,
  CUDNN_RNN_ALGO_PERSIST_DYNAMIC = 2,
  CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H = 3,
  CUDNN_RNN_ALGO_COUNT = 4
} cudnnRNNAlgo_t;

typedef enum { CUDNN_FWD_MODE_INFERENCE = 0, CUDNN_FWD_MODE_TRAINING = 1 } cudnnForwardMode_t;

typedef enum {
  CUDNN_RNN_RELU = 0,
  CUDNN_RNN_TANH = 1,
  CUDNN_LSTM = 2,
  CUDNN_GRU = 3
} cudnnRNNMode_t;

typedef enum {
  CUDNN_RNN_NO_BIAS = 0,
  CUDNN_RNN_SINGLE_INP_BIAS = 1,
  CUDNN_RNN_DOUBLE_BIAS = 2,
  CUDNN_RNN_SINGLE_REC_BIAS = 3
} cudnnRNNBiasMode_t;

typedef enum { CUDNN_UNIDIRECTIONAL = 0, CUDNN_BIDIRECTIONAL = 1 } cudnnDirectionMode_t;

typedef enum { CUDNN_LINEAR_INPUT = 0, CUDNN_SKIP_INPUT = 1 } cudnnRNNInputMode_t;

typedef enum { CUDNN_RNN_CLIP_NONE = 0, CUDNN_RNN_CLIP_MINMAX = 1 } cudnnRNNClipMode_t;

typedef enum {
  CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED = 0,
  CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED = 1,
  CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED = 2
} cudnnRNNDataLayout_t;

typedef enum { CUDNN_WGRAD_MODE_ADD = 0, CUDNN_WGRAD_MODE_SET = 1 } cudnnWgradMode_t;

typedef unsigned cudnnRNNPaddingMode_t;
#define CUDNN_RNN_PADDED_IO_DISABLED 0
#define CUDNN_RNN_PADDED_IO_ENABLED (1U << 0)

cudnnStatus_t CUDNNWINAPI cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* rnnDesc);
cudnnStatus_t CUDNNWINAPI cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t rnnDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetRNNDescriptor_v8(
    cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t algo, cudnnRNNMode_t cellMode,
    cudnnRNNBiasMode_t biasMode, cudnnDirectionMode_t dirMode, cudnnRNNInputMode_t inputMode,
    cudnnDataType_t dataType, cudnnDataType_t mathPrec, cudnnMathType_t mathType, int32_t inputSize,
    int32_t hiddenSize, int32_t projSize, int32_t numLayers, cudnnDropoutDescriptor_t dropoutDesc,
    uint32_t auxFlags);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNDescriptor_v8(
    cudnnRNNDescriptor_t rnnDesc, cudnnRNNAlgo_t* algo, cudnnRNNMode_t* cellMode,
    cudnnRNNBiasMode_t* biasMode, cudnnDirectionMode_t* dirMode, cudnnRNNInputMode_t* inputMode,
    cudnnDataType_t* dataType, cudnnDataType_t* mathPrec, cudnnMathType_t* mathType,
    int32_t* inputSize, int32_t* hiddenSize, int32_t* projSize, int32_t* numLayers,
    cudnnDropoutDescriptor_t* dropoutDesc, uint32_t* auxFlags);
cudnnStatus_t CUDNNWINAPI cudnnRNNSetClip_v8(cudnnRNNDescriptor_t rnnDesc,
                                             cudnnRNNClipMode_t clipMode,
                                             cudnnNanPropagation_t clipNanOpt, double lclip,
                                             double rclip);
cudnnStatus_t CUDNNWINAPI cudnnRNNGetClip_v8(cudnnRNNDescriptor_t rnnDesc,
                                             cudnnRNNClipMode_t* clipMode,
                                             cudnnNanPropagation_t* clipNanOpt, double* lclip,
                                             double* rclip);
cudnnStatus_t CUDNNWINAPI cudnnRNNSetClip_v9(cudnnRNNDescriptor_t rnnDesc,
                                             cudnnRNNClipMode_t clipMode, double lclip,
                                             double rclip);
cudnnStatus_t CUDNNWINAPI cudnnRNNGetClip_v9(cudnnRNNDescriptor_t rnnDesc,
                                             cudnnRNNClipMode_t* clipMode, double* lclip,
                                             double* rclip);
cudnnStatus_t CUDNNWINAPI cudnnBuildRNNDynamic(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                               int miniBatch);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNTempSpaceSizes(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnForwardMode_t fwdMode,
    cudnnRNNDataDescriptor_t xDesc, size_t* workSpaceSize, size_t* reserveSpaceSize);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle,
                                                     cudnnRNNDescriptor_t rnnDesc,
                                                     size_t* weightSpaceSize);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNWeightParams(cudnnHandle_t handle,
                                                  cudnnRNNDescriptor_t rnnDesc, int32_t pseudoLayer,
                                                  size_t weightSpaceSize, const void* weightSpace,
                                                  int32_t linLayerID, cudnnTensorDescriptor_t mDesc,
                                                  void** mAddr, cudnnTensorDescriptor_t bDesc,
                                                  void** bAddr);
cudnnStatus_t CUDNNWINAPI cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* rnnDataDesc);
cudnnStatus_t CUDNNWINAPI cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc,
                                                    cudnnDataType_t dataType,
                                                    cudnnRNNDataLayout_t layout, int maxSeqLength,
                                                    int batchSize, int vectorSize,
                                                    const int seqLengthArray[], void* paddingFill);
cudnnStatus_t CUDNNWINAPI cudnnGetRNNDataDescriptor(cudnnRNNDataDescriptor_t rnnDataDesc,
                                                    cudnnDataType_t* dataType,
                                                    cudnnRNNDataLayout_t* layout, int* maxSeqLength,
                                                    int* batchSize, int* vectorSize,
                                                    int arrayLengthRequested, int seqLengthArray[],
                                                    void* paddingFill);
cudnnStatus_t CUDNNWINAPI cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc,
                                          cudnnForwardMode_t fwdMode, const int32_t* devSeqLengths,
                                          cudnnRNNDataDescriptor_t xDesc, const void* x,
                                          cudnnRNNDataDescriptor_t yDesc, void* y,
                                          cudnnTensorDescriptor_t hDesc, const void* hx, void* hy,
                                          cudnnTensorDescriptor_t cDesc, const void* cx, void* cy,
                                          size_t weightSpaceSize, const void* weightSpace,
                                          size_t workSpaceSize, void* workSpace,
                                          size_t reserveSpaceSize, void* reserveSpace);
cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, const int32_t* devSeqLengths,
    cudnnRNNDataDescriptor_t yDesc, const void* y, const void* dy, cudnnRNNDataDescriptor_t xDesc,
    void* dx, cudnnTensorDescriptor_t hDesc, const void* hx, const void* dhy, void* dhx,
    cudnnTensorDescriptor_t cDesc, const void* cx, const void* dcy, void* dcx,
    size_t weightSpaceSize, const void* weightSpace, size_t workSpaceSize, void* workSpace,
    size_t reserveSpaceSize, void* reserveSpace);
cudnnStatus_t CUDNNWINAPI cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t rnnDesc, cudnnWgradMode_t addGrad,
    const int32_t* devSeqLengths, cudnnRNNDataDescriptor_t xDesc, const void* x,
    cudnnTensorDescriptor_t hDesc, const void* hx, cudnnRNNDataDescriptor_t yDesc, const void* y,
    size_t weightSpaceSize, void* dweightSpace, size_t workSpaceSize, void* workSpace,
    size_t reserveSpaceSize, void* reserveSpace);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CUDNN_RNN_H */
