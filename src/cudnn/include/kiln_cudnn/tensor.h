/* Tensors: descriptors and operations on elements. Scalars such as alpha and beta are host values:
 * double for tensors of DOUBLE, else float. */
#ifndef KILN_CUDNN_TENSOR_H
#define KILN_CUDNN_TENSOR_H

#include "kiln_cudnn/status.h"
#include "kiln_cudnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tensor descriptors -------------------------------------------------------------------- */

cudnnStatus_t CUDNNWINAPI cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensorDesc);
cudnnStatus_t CUDNNWINAPI cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensorDesc);

/* NCHW_VECT_C can be set, but no operation supports it. */
cudnnStatus_t CUDNNWINAPI cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                                     cudnnTensorFormat_t format,
                                                     cudnnDataType_t dataType, int n, int c, int h,
                                                     int w);
cudnnStatus_t CUDNNWINAPI cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
                                                       cudnnDataType_t dataType, int n, int c,
                                                       int h, int w, int nStride, int cStride,
                                                       int hStride, int wStride);
cudnnStatus_t CUDNNWINAPI cudnnGetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                                     cudnnDataType_t* dataType, int* n, int* c,
                                                     int* h, int* w, int* nStride, int* cStride,
                                                     int* hStride, int* wStride);

/* nbDims is 1 to CUDNN_DIM_MAX; cuDNN itself requires at least 3. */
cudnnStatus_t CUDNNWINAPI cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                                     cudnnDataType_t dataType, int nbDims,
                                                     const int dimA[], const int strideA[]);
cudnnStatus_t CUDNNWINAPI cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
                                                       cudnnTensorFormat_t format,
                                                       cudnnDataType_t dataType, int nbDims,
                                                       const int dimA[]);
/* nbDims is 0 for a descriptor that was never set. */
cudnnStatus_t CUDNNWINAPI cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                                     int nbDimsRequested, cudnnDataType_t* dataType,
                                                     int* nbDims, int dimA[], int strideA[]);
cudnnStatus_t CUDNNWINAPI cudnnGetTensorSizeInBytes(cudnnTensorDescriptor_t tensorDesc,
                                                    size_t* size);

/* ---- transforms ---------------------------------------------------------------------------- */

typedef enum { CUDNN_TRANSFORM_FOLD = 0, CUDNN_TRANSFORM_UNFOLD = 1 } cudnnFoldingDirection_t;

cudnnStatus_t CUDNNWINAPI
cudnnCreateTensorTransformDescriptor(cudnnTensorTransformDescriptor_t* transformDesc);
cudnnStatus_t CUDNNWINAPI
cudnnDestroyTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transformDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t transformDesc, uint32_t nbDims, cudnnTensorFormat_t destFormat,
    const int32_t padBeforeA[], const int32_t padAfterA[], const uint32_t foldA[],
    cudnnFoldingDirection_t direction);
cudnnStatus_t CUDNNWINAPI cudnnGetTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t transformDesc, uint32_t nbDimsRequested,
    cudnnTensorFormat_t* destFormat, int32_t padBeforeA[], int32_t padAfterA[], uint32_t foldA[],
    cudnnFoldingDirection_t* direction);
cudnnStatus_t CUDNNWINAPI cudnnInitTransformDest(cudnnTensorTransformDescriptor_t transformDesc,
                                                 cudnnTensorDescriptor_t srcDesc,
                                                 cudnnTensorDescriptor_t destDesc,
                                                 size_t* destSizeInBytes);

/* y = alpha * x + beta * y, between any strides. */
cudnnStatus_t CUDNNWINAPI cudnnTransformTensor(cudnnHandle_t handle, const void* alpha,
                                               cudnnTensorDescriptor_t xDesc, const void* x,
                                               const void* beta, cudnnTensorDescriptor_t yDesc,
                                               void* y);

/* The same with a transform descriptor, which may pad and change the format. Folding is refused. */
cudnnStatus_t CUDNNWINAPI cudnnTransformTensorEx(cudnnHandle_t handle,
                                                 cudnnTensorTransformDescriptor_t transformDesc,
                                                 const void* alpha, cudnnTensorDescriptor_t srcDesc,
                                                 const void* srcData, const void* beta,
                                                 cudnnTensorDescriptor_t destDesc, void* destData);

/* ---- elements ------------------------------------------------------------------------------ */

/* C = alpha * A + beta * C; dimensions of A with size 1 are broadcast. */
cudnnStatus_t CUDNNWINAPI cudnnAddTensor(cudnnHandle_t handle, const void* alpha,
                                         cudnnTensorDescriptor_t aDesc, const void* A,
                                         const void* beta, cudnnTensorDescriptor_t cDesc, void* C);

/* SQRT and NOT read only A: sqrt(alpha1 * A), 1 - alpha1 * A. */
typedef enum {
  CUDNN_OP_TENSOR_ADD = 0,
  CUDNN_OP_TENSOR_MUL = 1,
  CUDNN_OP_TENSOR_MIN = 2,
  CUDNN_OP_TENSOR_MAX = 3,
  CUDNN_OP_TENSOR_SQRT = 4,
  CUDNN_OP_TENSOR_NOT = 5
} cudnnOpTensorOp_t;

cudnnStatus_t CUDNNWINAPI cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t* opTensorDesc);
cudnnStatus_t CUDNNWINAPI cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc,
                                                     cudnnOpTensorOp_t opTensorOp,
                                                     cudnnDataType_t opTensorCompType,
                                                     cudnnNanPropagation_t opTensorNanOpt);
cudnnStatus_t CUDNNWINAPI cudnnGetOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc,
                                                     cudnnOpTensorOp_t* opTensorOp,
                                                     cudnnDataType_t* opTensorCompType,
                                                     cudnnNanPropagation_t* opTensorNanOpt);

/* C = op(alpha1 * A, alpha2 * B) + beta * C. */
cudnnStatus_t CUDNNWINAPI cudnnOpTensor(cudnnHandle_t handle,
                                        cudnnOpTensorDescriptor_t opTensorDesc, const void* alpha1,
                                        cudnnTensorDescriptor_t aDesc, const void* A,
                                        const void* alpha2, cudnnTensorDescriptor_t bDesc,
                                        const void* B, const void* beta,
                                        cudnnTensorDescriptor_t cDesc, void* C);

/* y = *valuePtr, and y = *alpha * y. */
cudnnStatus_t CUDNNWINAPI cudnnSetTensor(cudnnHandle_t handle, cudnnTensorDescriptor_t yDesc,
                                         void* y, const void* valuePtr);
cudnnStatus_t CUDNNWINAPI cudnnScaleTensor(cudnnHandle_t handle, cudnnTensorDescriptor_t yDesc,
                                           void* y, const void* alpha);

/* ---- reductions ---------------------------------------------------------------------------- */

/* FLATTENED_INDICES is refused for MIN, MAX and AMAX, and has no effect on other operations. */
typedef enum {
  CUDNN_REDUCE_TENSOR_NO_INDICES = 0,
  CUDNN_REDUCE_TENSOR_FLATTENED_INDICES = 1
} cudnnReduceTensorIndices_t;

typedef enum {
  CUDNN_32BIT_INDICES = 0,
  CUDNN_64BIT_INDICES = 1,
  CUDNN_16BIT_INDICES = 2,
  CUDNN_8BIT_INDICES = 3
} cudnnIndicesType_t;

cudnnStatus_t CUDNNWINAPI
cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t* reduceTensorDesc);
cudnnStatus_t CUDNNWINAPI
cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduceTensorDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetReduceTensorDescriptor(
    cudnnReduceTensorDescriptor_t reduceTensorDesc, cudnnReduceTensorOp_t reduceTensorOp,
    cudnnDataType_t reduceTensorCompType, cudnnNanPropagation_t reduceTensorNanOpt,
    cudnnReduceTensorIndices_t reduceTensorIndices, cudnnIndicesType_t reduceTensorIndicesType);
cudnnStatus_t CUDNNWINAPI cudnnGetReduceTensorDescriptor(
    cudnnReduceTensorDescriptor_t reduceTensorDesc, cudnnReduceTensorOp_t* reduceTensorOp,
    cudnnDataType_t* reduceTensorCompType, cudnnNanPropagation_t* reduceTensorNanOpt,
    cudnnReduceTensorIndices_t* reduceTensorIndices, cudnnIndicesType_t* reduceTensorIndicesType);

/* Both sizes are 0. Calls that cudnnReduceTensor would refuse are refused. */
cudnnStatus_t CUDNNWINAPI cudnnGetReductionIndicesSize(
    cudnnHandle_t handle, cudnnReduceTensorDescriptor_t reduceTensorDesc,
    cudnnTensorDescriptor_t aDesc, cudnnTensorDescriptor_t cDesc, size_t* sizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnGetReductionWorkspaceSize(
    cudnnHandle_t handle, cudnnReduceTensorDescriptor_t reduceTensorDesc,
    cudnnTensorDescriptor_t aDesc, cudnnTensorDescriptor_t cDesc, size_t* sizeInBytes);

/* C = alpha * reduce(A) + beta * C; MUL_NO_ZEROS is refused. */
cudnnStatus_t CUDNNWINAPI cudnnReduceTensor(cudnnHandle_t handle,
                                            cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                            void* indices, size_t indicesSizeInBytes,
                                            void* workspace, size_t workspaceSizeInBytes,
                                            const void* alpha, cudnnTensorDescriptor_t aDesc,
                                            const void* A, const void* beta,
                                            cudnnTensorDescriptor_t cDesc, void* C);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CUDNN_TENSOR_H */
