/* Layers without weights: pooling, activation, softmax. */
#ifndef KILN_CUDNN_LAYERS_H
#define KILN_CUDNN_LAYERS_H

#include "kiln_cudnn/status.h"
#include "kiln_cudnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- pooling ------------------------------------------------------------------------------- */

/* All modes are deterministic, MAX as well as MAX_DETERMINISTIC. */
typedef enum {
  CUDNN_POOLING_MAX = 0,
  CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING = 1,
  CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING = 2,
  CUDNN_POOLING_MAX_DETERMINISTIC = 3
} cudnnPoolingMode_t;

cudnnStatus_t CUDNNWINAPI cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* poolingDesc);
cudnnStatus_t CUDNNWINAPI cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t poolingDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                                                      cudnnPoolingMode_t mode,
                                                      cudnnNanPropagation_t maxpoolingNanOpt,
                                                      int windowHeight, int windowWidth,
                                                      int verticalPadding, int horizontalPadding,
                                                      int verticalStride, int horizontalStride);
cudnnStatus_t CUDNNWINAPI cudnnGetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                                                      cudnnPoolingMode_t* mode,
                                                      cudnnNanPropagation_t* maxpoolingNanOpt,
                                                      int* windowHeight, int* windowWidth,
                                                      int* verticalPadding, int* horizontalPadding,
                                                      int* verticalStride, int* horizontalStride);
cudnnStatus_t CUDNNWINAPI cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                                                      cudnnPoolingMode_t mode,
                                                      cudnnNanPropagation_t maxpoolingNanOpt,
                                                      int nbDims, const int windowDimA[],
                                                      const int paddingA[], const int strideA[]);
cudnnStatus_t CUDNNWINAPI cudnnGetPoolingNdDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                                                      int nbDimsRequested, cudnnPoolingMode_t* mode,
                                                      cudnnNanPropagation_t* maxpoolingNanOpt,
                                                      int* nbDims, int windowDimA[], int paddingA[],
                                                      int strideA[]);
cudnnStatus_t CUDNNWINAPI cudnnGetPooling2dForwardOutputDim(cudnnPoolingDescriptor_t poolingDesc,
                                                            cudnnTensorDescriptor_t inputTensorDesc,
                                                            int* n, int* c, int* h, int* w);
cudnnStatus_t CUDNNWINAPI cudnnGetPoolingNdForwardOutputDim(cudnnPoolingDescriptor_t poolingDesc,
                                                            cudnnTensorDescriptor_t inputTensorDesc,
                                                            int nbDims, int outputTensorDimA[]);
cudnnStatus_t CUDNNWINAPI cudnnPoolingForward(cudnnHandle_t handle,
                                              cudnnPoolingDescriptor_t poolingDesc,
                                              const void* alpha, cudnnTensorDescriptor_t xDesc,
                                              const void* x, const void* beta,
                                              cudnnTensorDescriptor_t yDesc, void* y);
cudnnStatus_t CUDNNWINAPI cudnnPoolingBackward(cudnnHandle_t handle,
                                               cudnnPoolingDescriptor_t poolingDesc,
                                               const void* alpha, cudnnTensorDescriptor_t yDesc,
                                               const void* y, cudnnTensorDescriptor_t dyDesc,
                                               const void* dy, cudnnTensorDescriptor_t xDesc,
                                               const void* x, const void* beta,
                                               cudnnTensorDescriptor_t dxDesc, void* dx);

/* ---- activation ---------------------------------------------------------------------------- */

cudnnStatus_t CUDNNWINAPI
cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* activationDesc);
cudnnStatus_t CUDNNWINAPI
cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t activationDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetActivationDescriptor(cudnnActivationDescriptor_t activationDesc,
                                                       cudnnActivationMode_t mode,
                                                       cudnnNanPropagation_t reluNanOpt,
                                                       double coef);
cudnnStatus_t CUDNNWINAPI cudnnGetActivationDescriptor(cudnnActivationDescriptor_t activationDesc,
                                                       cudnnActivationMode_t* mode,
                                                       cudnnNanPropagation_t* reluNanOpt,
                                                       double* coef);
cudnnStatus_t CUDNNWINAPI cudnnSetActivationDescriptorSwishBeta(
    cudnnActivationDescriptor_t activationDesc, double swish_beta);
cudnnStatus_t CUDNNWINAPI cudnnGetActivationDescriptorSwishBeta(
    cudnnActivationDescriptor_t activationDesc, double* swish_beta);
cudnnStatus_t CUDNNWINAPI cudnnActivationForward(cudnnHandle_t handle,
                                                 cudnnActivationDescriptor_t activationDesc,
                                                 const void* alpha, cudnnTensorDescriptor_t xDesc,
                                                 const void* x, const void* beta,
                                                 cudnnTensorDescriptor_t yDesc, void* y);
cudnnStatus_t CUDNNWINAPI cudnnActivationBackward(cudnnHandle_t handle,
                                                  cudnnActivationDescriptor_t activationDesc,
                                                  const void* alpha, cudnnTensorDescriptor_t yDesc,
                                                  const void* y, cudnnTensorDescriptor_t dyDesc,
                                                  const void* dy, cudnnTensorDescriptor_t xDesc,
                                                  const void* x, const void* beta,
                                                  cudnnTensorDescriptor_t dxDesc, void* dx);

/* ---- softmax ------------------------------------------------------------------------------- */

typedef enum {
  CUDNN_SOFTMAX_FAST = 0,
  CUDNN_SOFTMAX_ACCURATE = 1,
  CUDNN_SOFTMAX_LOG = 2
} cudnnSoftmaxAlgorithm_t;

typedef enum { CUDNN_SOFTMAX_MODE_INSTANCE = 0, CUDNN_SOFTMAX_MODE_CHANNEL = 1 } cudnnSoftmaxMode_t;

cudnnStatus_t CUDNNWINAPI cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                              cudnnSoftmaxMode_t mode, const void* alpha,
                                              cudnnTensorDescriptor_t xDesc, const void* x,
                                              const void* beta, cudnnTensorDescriptor_t yDesc,
                                              void* y);
cudnnStatus_t CUDNNWINAPI cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                               cudnnSoftmaxMode_t mode, const void* alpha,
                                               cudnnTensorDescriptor_t yDesc, const void* y,
                                               cudnnTensorDescriptor_t dyDesc, const void* dy,
                                               const void* beta, cudnnTensorDescriptor_t dxDesc,
                                               void* dx);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CUDNN_LAYERS_H */
