/* The graph API. Every function refuses (NOT_SUPPORTED), unless KILN_CUDNN_FORWARD names a library
 * that takes it. */
#ifndef KILN_CUDNN_BACKEND_H
#define KILN_CUDNN_BACKEND_H

#include "kiln_cudnn/backend_attributes.h"
#include "kiln_cudnn/backend_enumerations.h"
#include "kiln_cudnn/status.h"
#include "kiln_cudnn/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void* cudnnBackendDescriptor_t;

cudnnStatus_t CUDNNWINAPI cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                                                       cudnnBackendDescriptor_t* descriptor);
cudnnStatus_t CUDNNWINAPI cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t CUDNNWINAPI cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t CUDNNWINAPI cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor);
cudnnStatus_t CUDNNWINAPI cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t attributeName,
                                                   cudnnBackendAttributeType_t attributeType,
                                                   int64_t elementCount,
                                                   const void* arrayOfElements);
cudnnStatus_t CUDNNWINAPI cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t attributeName,
                                                   cudnnBackendAttributeType_t attributeType,
                                                   int64_t requestedElementCount,
                                                   int64_t* elementCount, void* arrayOfElements);
cudnnStatus_t CUDNNWINAPI cudnnGetExecutionPlanWorkspaceSize(cudnnHandle_t handle,
                                                             cudnnBackendDescriptor_t executionPlan,
                                                             cudnnBackendDescriptor_t variantPack,
                                                             size_t* workspaceSizeInBytes);
cudnnStatus_t CUDNNWINAPI cudnnBackendExecute(cudnnHandle_t handle,
                                              cudnnBackendDescriptor_t executionPlan,
                                              cudnnBackendDescriptor_t variantPack);
cudnnStatus_t CUDNNWINAPI cudnnBackendPopulateCudaGraph(cudnnHandle_t handle,
                                                        cudnnBackendDescriptor_t executionPlan,
                                                        cudnnBackendDescriptor_t variantPack,
                                                        cudaGraph_t graph);
cudnnStatus_t CUDNNWINAPI cudnnBackendUpdateCudaGraph(cudnnHandle_t handle,
                                                      cudnnBackendDescriptor_t executionPlan,
                                                      cudnnBackendDescriptor_t variantPack,
                                                      cudaGraph_t graph);

#ifdef __cplusplus
}
#endif

#endif /* KILN_CUDNN_BACKEND_H */
