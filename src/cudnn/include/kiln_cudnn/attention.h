/* Multi-head attention and the CTC loss. Every function refuses, unless KILN_CUDNN_FORWARD names a
 * library that takes it. */
#ifndef KILN_CUDNN_ATTENTION_H
#define KILN_CUDNN_ATTENTION_H

#include "kiln_cudnn/rnn.h"
#include "kiln_cudnn/status.h"
#include "kiln_cudnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- attention ----------------------------------------------------------------------------- */

typedef struct cudnnSeqDataStruct* cudnnSeqDataDescriptor_t;
typedef struct cudnnAttnStruct* cudnnAttnDescriptor_t;

typedef enum {
  CUDNN_SEQDATA_TIME_DIM = 0,
  CUDNN_SEQDATA_BATCH_DIM = 1,
  CUDNN_SEQDATA_BEAM_DIM = 2,
  CUDNN_SEQDATA_VECT_DIM = 3
} cudnnSeqDataAxis_t;

#define CUDNN_SEQDATA_DIM_COUNT 4

typedef unsigned cudnnAttnQueryMap_t;
#define CUDNN_ATTN_QUERYMAP_ALL_TO_ONE 0
#define CUDNN_ATTN_QUERYMAP_ONE_TO_ONE (1U << 0)
#define CUDNN_ATTN_DISABLE_PROJ_BIASES 0
#define CUDNN_ATTN_ENABLE_PROJ_BIASES (1U << 1)

typedef enum {
  CUDNN_MH_ATTN_Q_WEIGHTS = 0,
  CUDNN_MH_ATTN_K_WEIGHTS = 1,
  CUDNN_MH_ATTN_V_WEIGHTS = 2,
  CUDNN_MH_ATTN_O_WEIGHTS = 3,
  CUDNN_MH_ATTN_Q_BIASES = 4,
  CUDNN_MH_ATTN_K_BIASES = 5,
  CUDNN_MH_ATTN_V_BIASES = 6,
  CUDNN_MH_ATTN_O_BIASES = 7
} cudnnMultiHeadAttnWeightKind_t;

#define CUDNN_ATTN_WKIND_COUNT 8

cudnnStatus_t CUDNNWINAPI cudnnCreateSeqDataDescriptor(cudnnSeqDataDescriptor_t* seqDataDesc);
cudnnStatus_t CUDNNWINAPI cudnnDestroySeqDataDescriptor(cudnnSeqDataDescriptor_t seqDataDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetSeqDataDescriptor(cudnnSeqDataDescriptor_t seqDataDesc,
                                                    cudnnDataType_t dataType, int nbDims,
                                                    const int dimA[],
                                                    const cudnnSeqDataAxis_t axes[],
                                                    size_t seqLengthArraySize,
                                                    const int seqLengthArray[], void* paddingFill);
cudnnStatus_t CUDNNWINAPI cudnnGetSeqDataDescriptor(
    cudnnSeqDataDescriptor_t seqDataDesc, cudnnDataType_t* dataType, int* nbDims,
    int nbDimsRequested, int dimA[], cudnnSeqDataAxis_t axes[], size_t* seqLengthArraySize,
    size_t seqLengthSizeRequested, int seqLengthArray[], void* paddingFill);
cudnnStatus_t CUDNNWINAPI cudnnCreateAttnDescriptor(cudnnAttnDescriptor_t* attnDesc);
cudnnStatus_t CUDNNWINAPI cudnnDestroyAttnDescriptor(cudnnAttnDescriptor_t attnDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetAttnDescriptor(
    cudnnAttnDescriptor_t attnDesc, unsigned attnMode, int nHeads, double smScaler,
    cudnnDataType_t dataType, cudnnDataType_t computePrec, cudnnMathType_t mathType,
    cudnnDropoutDescriptor_t attnDropoutDesc, cudnnDropoutDescriptor_t postDropoutDesc, int qSize,
    int kSize, int vSize, int qProjSize, int kProjSize, int vProjSize, int oProjSize,
    int qoMaxSeqLength, int kvMaxSeqLength, int maxBatchSize, int maxBeamSize);
cudnnStatus_t CUDNNWINAPI cudnnGetAttnDescriptor(
    cudnnAttnDescriptor_t attnDesc, unsigned* attnMode, int* nHeads, double* smScaler,
    cudnnDataType_t* dataType, cudnnDataType_t* computePrec, cudnnMathType_t* mathType,
    cudnnDropoutDescriptor_t* attnDropoutDesc, cudnnDropoutDescriptor_t* postDropoutDesc,
    int* qSize, int* kSize, int* vSize, int* qProjSize, int* kProjSize, int* vProjSize,
    int* oProjSize, int* qoMaxSeqLength, int* kvMaxSeqLength, int* maxBatchSize, int* maxBeamSize);
cudnnStatus_t CUDNNWINAPI cudnnGetMultiHeadAttnBuffers(cudnnHandle_t handle,
                                                       cudnnAttnDescriptor_t attnDesc,
                                                       size_t* weightSizeInBytes,
                                                       size_t* workSpaceSizeInBytes,
                                                       size_t* reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnGetMultiHeadAttnWeights(
    cudnnHandle_t handle, cudnnAttnDescriptor_t attnDesc, cudnnMultiHeadAttnWeightKind_t wKind,
    size_t weightSizeInBytes, const void* weights, cudnnTensorDescriptor_t wDesc, void** wAddr);
cudnnStatus_t CUDNNWINAPI cudnnMultiHeadAttnForward(
    cudnnHandle_t handle, cudnnAttnDescriptor_t attnDesc, int currIdx, const int loWinIdx[],
    const int hiWinIdx[], const int* devSeqLengthsQO, const int* devSeqLengthsKV,
    cudnnSeqDataDescriptor_t qDesc, const void* queries, const void* residuals,
    cudnnSeqDataDescriptor_t kDesc, const void* keys, cudnnSeqDataDescriptor_t vDesc,
    const void* values, cudnnSeqDataDescriptor_t oDesc, void* out, size_t weightSizeInBytes,
    const void* weights, size_t workSpaceSizeInBytes, void* workSpace,
    size_t reserveSpaceSizeInBytes, void* reserveSpace);
cudnnStatus_t CUDNNWINAPI cudnnMultiHeadAttnBackwardData(
    cudnnHandle_t handle, cudnnAttnDescriptor_t attnDesc, const int loWinIdx[],
    const int hiWinIdx[], const int* devSeqLengthsDQDO, const int* devSeqLengthsDKDV,
    cudnnSeqDataDescriptor_t doDesc, const void* dout, cudnnSeqDataDescriptor_t dqDesc,
    void* dqueries, const void* queries, cudnnSeqDataDescriptor_t dkDesc, void* dkeys,
    const void* keys, cudnnSeqDataDescriptor_t dvDesc, void* dvalues, const void* values,
    size_t weightSizeInBytes, const void* weights, size_t workSpaceSizeInBytes, void* workSpace,
    size_t reserveSpaceSizeInBytes, void* reserveSpace);
cudnnStatus_t CUDNNWINAPI cudnnMultiHeadAttnBackwardWeights(
    cudnnHandle_t handle, cudnnAttnDescriptor_t attnDesc, cudnnWgradMode_t addGrad,
    cudnnSeqDataDescriptor_t qDesc, const void* queries, cudnnSeqDataDescriptor_t kDesc,
    const void* keys, cudnnSeqDataDescriptor_t vDesc, const void* values,
    cudnnSeqDataDescriptor_t doDesc, const void* dout, size_t weightSizeInBytes,
    const void* weights, void* dweights, size_t workSpaceSizeInBytes, void* workSpace,
    size_t reserveSpaceSizeInBytes, void* reserveSpace);

/* ---- CTC loss ------------------------------------------------------------------------------ */

typedef enum {
  CUDNN_CTC_LOSS_ALGO_DETERMINISTIC = 0,
  CUDNN_CTC_LOSS_ALGO_NON_DETERMINISTIC = 1
} cudnnCTCLossAlgo_t;

typedef enum {
  CUDNN_LOSS_NORMALIZATION_NONE = 0,
  CUDNN_LOSS_NORMALIZATION_SOFTMAX = 1
} cudnnLossNormalizationMode_t;

cudnnStatus_t CUDNNWINAPI cudnnCreateCTCLossDescriptor(cudnnCTCLossDescriptor_t* ctcLossDesc);
cudnnStatus_t CUDNNWINAPI cudnnDestroyCTCLossDescriptor(cudnnCTCLossDescriptor_t ctcLossDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptor(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                    cudnnDataType_t compType);
cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                      cudnnDataType_t compType,
                                                      cudnnLossNormalizationMode_t normMode,
                                                      cudnnNanPropagation_t gradMode);
cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                       cudnnDataType_t compType,
                                                       cudnnLossNormalizationMode_t normMode,
                                                       cudnnNanPropagation_t gradMode,
                                                       int maxLabelLength);
cudnnStatus_t CUDNNWINAPI cudnnSetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                       cudnnDataType_t compType,
                                                       cudnnLossNormalizationMode_t normMode,
                                                       cudnnCTCGradMode_t ctcGradMode,
                                                       int maxLabelLength);
cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptor(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                    cudnnDataType_t* compType);
cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptorEx(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                      cudnnDataType_t* compType,
                                                      cudnnLossNormalizationMode_t* normMode,
                                                      cudnnNanPropagation_t* gradMode);
cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptor_v8(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                       cudnnDataType_t* compType,
                                                       cudnnLossNormalizationMode_t* normMode,
                                                       cudnnNanPropagation_t* gradMode,
                                                       int* maxLabelLength);
cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossDescriptor_v9(cudnnCTCLossDescriptor_t ctcLossDesc,
                                                       cudnnDataType_t* compType,
                                                       cudnnLossNormalizationMode_t* normMode,
                                                       cudnnCTCGradMode_t* ctcGradMode,
                                                       int* maxLabelLength);
cudnnStatus_t CUDNNWINAPI cudnnCTCLoss(cudnnHandle_t handle, cudnnTensorDescriptor_t probsDesc,
                                       const void* probs, const int* hostLabels,
                                       const int* hostLabelLengths, const int* hostInputLengths,
                                       void* costs, cudnnTensorDescriptor_t gradientsDesc,
                                       void* gradients, cudnnCTCLossAlgo_t algo,
                                       cudnnCTCLossDescriptor_t ctcLossDesc, void* workspace,
                                       size_t workSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnCTCLoss_v8(cudnnHandle_t handle, cudnnCTCLossAlgo_t algo,
                                          cudnnCTCLossDescriptor_t ctcLossDesc,
                                          cudnnTensorDescriptor_t probsDesc, const void* probs,
                                          const int* labels, const int* labelLengths,
                                          const int* inputLengths, void* costs,
                                          cudnnTensorDescriptor_t gradientsDesc, void* gradients,
                                          size_t workSpaceSizeInBytes, void* workspace);
cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t probsDesc, cudnnTensorDescriptor_t gradientsDesc,
    const int* labels, const int* labelLengths, const int* inputLengths, cudnnCTCLossAlgo_t algo,
    cudnnCTCLossDescriptor_t ctcLossDesc, size_t* sizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnGetCTCLossWorkspaceSize_v8(
    cudnnHandle_t handle, cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t ctcLossDesc,
    cudnnTensorDescriptor_t probsDesc, cudnnTensorDescriptor_t gradientsDesc, size_t* sizeInBytes);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CUDNN_ATTENTION_H */
