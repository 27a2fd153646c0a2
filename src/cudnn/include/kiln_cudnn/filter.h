/* Filters. NCHW is KCRS, NHWC is KRSC. */
#ifndef KILN_CUDNN_FILTER_H
#define KILN_CUDNN_FILTER_H

#include "kiln_cudnn/status.h"
#include "kiln_cudnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

cudnnStatus_t CUDNNWINAPI cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filterDesc);
cudnnStatus_t CUDNNWINAPI cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filterDesc);
cudnnStatus_t CUDNNWINAPI cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc,
                                                     cudnnDataType_t dataType,
                                                     cudnnTensorFormat_t format, int k, int c,
                                                     int h, int w);
cudnnStatus_t CUDNNWINAPI cudnnGetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc,
                                                     cudnnDataType_t* dataType,
                                                     cudnnTensorFormat_t* format, int* k, int* c,
                                                     int* h, int* w);
cudnnStatus_t CUDNNWINAPI cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc,
                                                     cudnnDataType_t dataType,
                                                     cudnnTensorFormat_t format, int nbDims,
                                                     const int filterDimA[]);
cudnnStatus_t CUDNNWINAPI cudnnGetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc,
                                                     int nbDimsRequested, cudnnDataType_t* dataType,
                                                     cudnnTensorFormat_t* format, int* nbDims,
                                                     int filterDimA[]);
cudnnStatus_t CUDNNWINAPI cudnnGetFilterSizeInBytes(cudnnFilterDescriptor_t filterDesc,
                                                    size_t* size);
cudnnStatus_t CUDNNWINAPI cudnnTransformFilter(cudnnHandle_t handle,
                                               cudnnTensorTransformDescriptor_t transDesc,
                                               const void* alpha, cudnnFilterDescriptor_t srcDesc,
                                               const void* srcData, const void* beta,
                                               cudnnFilterDescriptor_t destDesc, void* destData);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CUDNN_FILTER_H */
