/* Causal convolutions over one dimension. Every function refuses, unless KILN_CUDNN_FORWARD names a
 * library that takes it. */
#ifndef KILN_CUDNN_CAUSAL_CONVOLUTION_H
#define KILN_CUDNN_CAUSAL_CONVOLUTION_H

#include "kiln_cudnn/status.h"
#include "kiln_cudnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  CUDNN_CAUSAL_CONV1D_ACTIVATION_IDENTITY = 0,
  CUDNN_CAUSAL_CONV1D_ACTIVATION_SILU = 1
} cudnnCausalConv1dActivation_t;

cudnnStatus_t CUDNNWINAPI cudnnSubquadraticOpsVersionCheck(void);
cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dForward(cudaStream_t stream, const void* x,
                                                   const void* weight, const void* bias, void* y,
                                                   int batch, int dim, int seqLen, int kernelSize,
                                                   cudnnDataType_t dataType,
                                                   cudnnCausalConv1dActivation_t activation);
cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dBackward(
    cudaStream_t stream, const void* x, const void* weight, const void* bias, const void* dy,
    void* dx, void* dweight, void* dbias, int batch, int dim, int seqLen, int kernelSize,
    cudnnDataType_t dataType, cudnnDataType_t dwDataType, cudnnCausalConv1dActivation_t activation);
cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dNwhForward(cudaStream_t stream, const void* x,
                                                      const void* weight, const void* bias, void* y,
                                                      int batch, int dim, int seqLen,
                                                      int kernelSize, cudnnDataType_t dataType,
                                                      cudnnCausalConv1dActivation_t activation);
cudnnStatus_t CUDNNWINAPI cudnnCausalConv1dNwhBackward(
    cudaStream_t stream, const void* x, const void* weight, const void* bias, const void* dy,
    void* dx, void* dweight, void* dbias, int batch, int dim, int seqLen, int kernelSize,
    cudnnDataType_t dataType, cudnnDataType_t dwDataType, cudnnCausalConv1dActivation_t activation);
cudnnStatus_t CUDNNWINAPI cudnnB2BCausalConv1dForward(
    cudaStream_t stream, const void* x, const void* weightsProj, const void* weightsMixer,
    const void* skipBias, void* y, void* yGated, int batch, int dim, int seqLen, int kernelSizeProj,
    int kernelSizeMixer, cudnnDataType_t dataType);
cudnnStatus_t CUDNNWINAPI cudnnB2BCausalConv1dBackward(
    cudaStream_t stream, const void* x, const void* weightsProj, const void* weightsMixer,
    const void* skipBias, const void* y, const void* dy, void* dx, void* dweightsProj,
    void* dweightsMixer, void* dskipBias, int batch, int dim, int seqLen, int kernelSizeProj,
    int kernelSizeMixer, cudnnDataType_t dataType, cudnnDataType_t dwDataType);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CUDNN_CAUSAL_CONVOLUTION_H */
