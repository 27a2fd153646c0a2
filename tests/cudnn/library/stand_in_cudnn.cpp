// A library with some of cuDNN's functions, whose objects are its own: it would crash on Kiln's.
#include <cudnn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iterator>

struct cudnnContext {
  std::uint32_t mark = 1;
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
  std::uint32_t mark = 2;
  int rank = 0, dims[CUDNN_DIM_MAX] = {};
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
};
struct cudnnLRNStruct {
  std::uint32_t mark = 3;
};
struct cudnnTensorTransformStruct {
  std::uint32_t mark = 4, fold = 1;
};

namespace {
int living = 0;
}

extern "C" {

// How many objects there are.
int standInLiving() { return living; }

size_t cudnnGetVersion() { return 91234; }
void cudnnGetLastErrorString(char* message, size_t size) {
  std::snprintf(message, size, "the stand-in says no");
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  ++living;
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  --living;
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* descriptor) {
  ++living;
  *descriptor = new cudnnTensorStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t descriptor) {
  --living;
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t descriptor,
                                         cudnnTensorFormat_t format, cudnnDataType_t type, int n,
                                         int c, int h, int w) {
  *descriptor = {2, 4, {n, c, h, w}, type, format};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t descriptor, int,
                                         cudnnDataType_t* type, int* rank, int dims[],
                                         int strides[]) {
  *type = descriptor->type;
  *rank = descriptor->rank;
  int stride = 1;
  for (int i = descriptor->rank - 1; i >= 0; --i) {
    dims[i] = descriptor->dims[i];
    strides[i] = stride;
    stride *= dims[i];
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateLRNDescriptor(cudnnLRNDescriptor_t* descriptor) {
  *descriptor = new cudnnLRNStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyLRNDescriptor(cudnnLRNDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}
// Writes what it was given: marks, the stream, channels, type and format of x.
cudnnStatus_t cudnnLRNCrossChannelForward(cudnnHandle_t handle, cudnnLRNDescriptor_t lrn,
                                          cudnnLRNMode_t, const void*,
                                          cudnnTensorDescriptor_t x_desc, const void*, const void*,
                                          cudnnTensorDescriptor_t, void* y) {
  const std::int64_t seen[] = {
      handle->mark,    lrn->mark,    x_desc->mark,  reinterpret_cast<std::intptr_t>(handle->stream),
      x_desc->dims[1], x_desc->type, x_desc->format};
  std::copy(std::begin(seen), std::end(seen), static_cast<std::int64_t*>(y));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDeriveBNTensorDescriptor(cudnnTensorDescriptor_t derived,
                                            cudnnTensorDescriptor_t x, cudnnBatchNormMode_t) {
  return cudnnSetTensor4dDescriptor(derived, CUDNN_TENSOR_NCHW, x->type, 1, x->dims[1], 1, 1);
}
// A matrix that is absent, and its bias.
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t, cudnnRNNDescriptor_t, int32_t, size_t,
                                      const void*, int32_t, cudnnTensorDescriptor_t matrix, void**,
                                      cudnnTensorDescriptor_t bias, void**) {
  *matrix = {};
  return cudnnSetTensor4dDescriptor(bias, CUDNN_TENSOR_NCHW, CUDNN_DATA_HALF, 1, 1, 6, 1);
}
cudnnStatus_t cudnnGetTensorSizeInBytes(cudnnTensorDescriptor_t descriptor, size_t* size) {
  *size = 1000 + static_cast<size_t>(descriptor->dims[1]);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateTensorTransformDescriptor(cudnnTensorTransformDescriptor_t* descriptor) {
  *descriptor = new cudnnTensorTransformStruct;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroyTensorTransformDescriptor(cudnnTensorTransformDescriptor_t descriptor) {
  delete descriptor;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetTensorTransformDescriptor(cudnnTensorTransformDescriptor_t descriptor,
                                                uint32_t, cudnnTensorFormat_t, const int32_t[],
                                                const int32_t[], const uint32_t fold[],
                                                cudnnFoldingDirection_t) {
  descriptor->fold = fold[0];
  return CUDNN_STATUS_SUCCESS;
}
// Folds the height into the channels.
cudnnStatus_t cudnnInitTransformDest(cudnnTensorTransformDescriptor_t transform,
                                     cudnnTensorDescriptor_t x, cudnnTensorDescriptor_t dest,
                                     size_t* bytes) {
  const int fold = static_cast<int>(transform->fold);
  *bytes = 4321;
  return cudnnSetTensor4dDescriptor(dest, CUDNN_TENSOR_NCHW, x->type, x->dims[0], x->dims[1] * fold,
                                    x->dims[2] / fold, x->dims[3]);
}
// Of FLOAT tensors Kiln's own is called.
cudnnStatus_t cudnnAddTensor(cudnnHandle_t, const void*, cudnnTensorDescriptor_t a, const void*,
                             const void*, cudnnTensorDescriptor_t, void*) {
  return a->type == CUDNN_DATA_INT8 ? CUDNN_STATUS_EXECUTION_FAILED : CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t,
                                       cudnnBackendAttributeType_t, int64_t, const void* elements) {
  const bool is_mine = (*static_cast<const cudnnHandle_t*>(elements))->mark == 1;
  return is_mine ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
}
