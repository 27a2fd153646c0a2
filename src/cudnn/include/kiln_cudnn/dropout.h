/* Dropout and spatial transformers. Every function refuses, unless KILN_CUDNN_FORWARD names a
 * library that takes it. */
#ifndef KILN_CUDNN_DROPOUT_H
#define KILN_CUDNN_DROPOUT_H

#include "kiln_cudnn/status.h"
#include "kiln_cudnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

cudnnStatus_t CUDNNWINAPI cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* dropoutDesc);
cudnnStatus_t CUDNNWINAPI cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc);
cudnnStatus_t CUDNNWINAPI cudnnDropoutGetStatesSize(cudnnHandle_t handle, size_t* sizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnDropoutGetReserveSpaceSize(cudnnTensorDescriptor_t xdesc,
                                                          size_t* sizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
                                                    cudnnHandle_t handle, float dropout,
                                                    void* states, size_t stateSizeInBytes,
                                                    unsigned long long seed);
cudnnStatus_t CUDNNWINAPI cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
                                                        cudnnHandle_t handle, float dropout,
                                                        void* states, size_t stateSizeInBytes,
                                                        unsigned long long seed);
cudnnStatus_t CUDNNWINAPI cudnnGetDropoutDescriptor(cudnnDropoutDescriptor_t dropoutDesc,
                                                    cudnnHandle_t handle, float* dropout,
                                                    void** states, unsigned long long* seed);
cudnnStatus_t CUDNNWINAPI cudnnDropoutForward(cudnnHandle_t handle,
                                              cudnnDropoutDescriptor_t dropoutDesc,
                                              cudnnTensorDescriptor_t xdesc, const void* x,
                                              cudnnTensorDescriptor_t ydesc, void* y,
                                              void* reserveSpace, size_t reserveSpaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnDropoutBackward(cudnnHandle_t handle,
                                               cudnnDropoutDescriptor_t dropoutDesc,
                                               cudnnTensorDescriptor_t dydesc, const void* dy,
                                               cudnnTensorDescriptor_t dxdesc, void* dx,
                                               void* reserveSpace, size_t reserveSpaceSizeInBytes);

typedef enum { CUDNN_SAMPLER_BILINEAR = 0 } cudnnSamplerType_t;

cudnnStatus_t CUDNNWINAPI
cudnnCreateSpatialTransformerDescriptor(cudnnSpatialTransformerDescriptor_t* stDesc);
cudnnStatus_t CUDNNWINAPI
cudnnDestroySpatialTransformerDescriptor(cudnnSpatialTransformerDescriptor_t stDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetSpatialTransformerNdDescriptor(
    cudnnSpatialTransformerDescriptor_t stDesc, cudnnSamplerType_t samplerType,
    cudnnDataType_t dataType, int nbDims, const int dimA[]);
cudnnStatus_t CUDNNWINAPI
cudnnSpatialTfGridGeneratorForward(cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t stDesc,
                                   const void* theta, void* grid);
cudnnStatus_t CUDNNWINAPI cudnnSpatialTfGridGeneratorBackward(
    cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t stDesc, const void* dgrid,
    void* dtheta);
cudnnStatus_t CUDNNWINAPI cudnnSpatialTfSamplerForward(cudnnHandle_t handle,
                                                       cudnnSpatialTransformerDescriptor_t stDesc,
                                                       const void* alpha,
                                                       cudnnTensorDescriptor_t xDesc, const void* x,
                                                       const void* grid, const void* beta,
                                                       cudnnTensorDescriptor_t yDesc, void* y);
cudnnStatus_t CUDNNWINAPI cudnnSpatialTfSamplerBackward(
    cudnnHandle_t handle, cudnnSpatialTransformerDescriptor_t stDesc, const void* alpha,
    cudnnTensorDescriptor_t xDesc, const void* x, const void* beta, cudnnTensorDescriptor_t dxDesc,
    void* dx, const void* alphaDgrid, cudnnTensorDescriptor_t dyDesc, const void* dy,
    const void* grid, const void* betaDgrid, void* dgrid);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CUDNN_DROPOUT_H */
