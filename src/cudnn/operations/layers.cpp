// Pooling, activation and softmax.
#include "cudnn/descriptors/layers.hpp"

#include <algorithm>

#include "cudnn/forward/translate.hpp"
#include "cudnn/library/handle.hpp"
#include "cudnn/library/status.hpp"

using kiln::cudnn::context_of;
using kiln::cudnn::Function;
using kiln::cudnn::kiln_of;
using kiln::cudnn::must;
using kiln::cudnn::serve;

namespace {

kilnHandle_t kiln_handle(cudnnHandle_t handle) { return context_of(handle).handle.get(); }

// The Kiln descriptor that rounds as y's sizes need: cuDNN accepts sizes of y rounded down or up.
kilnPoolingDescriptor_t pooling_for(cudnnPoolingDescriptor_t pooling, kilnTensorDescriptor_t x,
                                    cudnnTensorDescriptor_t y, const char* y_name) {
  const cudnnPoolingStruct& object = kiln::cudnn::set_before(pooling);
  const kiln::cudnn::Shape& shape = kiln::cudnn::shape_of(y, y_name);
  std::int64_t dims[CUDNN_DIM_MAX] = {};
  const kilnStatus_t status =
      kilnGetPoolingForwardOutputDim(object.rounding_up.get(), x, shape.rank, dims);
  const bool rounded_up =
      status == KILN_STATUS_SUCCESS && std::equal(dims, dims + shape.rank, shape.dims.begin());
  // If both roundings give the same sizes, either descriptor gives the same results.
  return rounded_up ? object.rounding_up.get() : object.rounding_down.get();
}

kilnSoftmaxAlgorithm_t kiln_algorithm(cudnnSoftmaxAlgorithm_t algorithm) {
  switch (algorithm) {
    case CUDNN_SOFTMAX_FAST: return KILN_SOFTMAX_FAST;
    case CUDNN_SOFTMAX_ACCURATE: return KILN_SOFTMAX_ACCURATE;
    case CUDNN_SOFTMAX_LOG: return KILN_SOFTMAX_LOG;
  }
  kiln::fail(KILN_STATUS_BAD_PARAM, "algo is ", static_cast<int>(algorithm),
             "; expected CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_ACCURATE or CUDNN_SOFTMAX_LOG");
}

kilnSoftmaxMode_t kiln_mode(cudnnSoftmaxMode_t mode) {
  switch (mode) {
    case CUDNN_SOFTMAX_MODE_INSTANCE: return KILN_SOFTMAX_MODE_INSTANCE;
    case CUDNN_SOFTMAX_MODE_CHANNEL: return KILN_SOFTMAX_MODE_CHANNEL;
  }
  kiln::fail(KILN_STATUS_BAD_PARAM, "mode is ", static_cast<int>(mode),
             "; expected CUDNN_SOFTMAX_MODE_INSTANCE or CUDNN_SOFTMAX_MODE_CHANNEL");
}

}  // namespace

cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t poolingDesc,
                                  const void* alpha, cudnnTensorDescriptor_t xDesc, const void* x,
                                  const void* beta, cudnnTensorDescriptor_t yDesc, void* y) {
  return serve(
      Function(cudnnPoolingForward),
      [&] {
        auto* const kiln_x = kiln_of(xDesc, "xDesc");
        must(kilnPoolingForward(kiln_handle(handle),
                                pooling_for(poolingDesc, kiln_x, yDesc, "yDesc"), alpha, kiln_x, x,
                                beta, kiln_of(yDesc, "yDesc"), y));
      },
      handle, poolingDesc, alpha, xDesc, x, beta, yDesc, y);
}

cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t poolingDesc,
                                   const void* alpha, cudnnTensorDescriptor_t yDesc, const void* y,
                                   cudnnTensorDescriptor_t dyDesc, const void* dy,
                                   cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                   cudnnTensorDescriptor_t dxDesc, void* dx) {
  return serve(
      Function(cudnnPoolingBackward),
      [&] {
        const cudnnPoolingMode_t mode = kiln::cudnn::set_before(poolingDesc).fields.mode;
        const bool of_maximum =
            mode == CUDNN_POOLING_MAX || mode == CUDNN_POOLING_MAX_DETERMINISTIC;
        auto* const kiln_dx = kiln_of(dxDesc, "dxDesc");
        // The gradient of average pooling does not read x, so x may be dx itself.
        must(kilnPoolingBackward(
            kiln_handle(handle), pooling_for(poolingDesc, kiln_dx, dyDesc, "dyDesc"), alpha,
            kiln_of(dyDesc, "dyDesc"), dy, of_maximum ? kiln_of(xDesc, "xDesc") : nullptr,
            of_maximum ? x : nullptr, beta, kiln_dx, dx));
      },
      handle, poolingDesc, alpha, yDesc, y, dyDesc, dy, xDesc, x, beta, dxDesc, dx);
}

cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle,
                                     cudnnActivationDescriptor_t activationDesc, const void* alpha,
                                     cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                     cudnnTensorDescriptor_t yDesc, void* y) {
  return serve(
      Function(cudnnActivationForward),
      [&] {
        must(kilnActivationForward(kiln_handle(handle), kiln_of(activationDesc), alpha,
                                   kiln_of(xDesc, "xDesc"), x, beta, kiln_of(yDesc, "yDesc"), y));
      },
      handle, activationDesc, alpha, xDesc, x, beta, yDesc, y);
}

cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle,
                                      cudnnActivationDescriptor_t activationDesc, const void* alpha,
                                      cudnnTensorDescriptor_t yDesc, const void* y,
                                      cudnnTensorDescriptor_t dyDesc, const void* dy,
                                      cudnnTensorDescriptor_t xDesc, const void* x,
                                      const void* beta, cudnnTensorDescriptor_t dxDesc, void* dx) {
  return serve(
      Function(cudnnActivationBackward),
      [&] {
        auto* const activation = kiln_of(activationDesc);
        // The derivative is computed from y, or from x for SWISH. The other one is not read, so dx
        // may overwrite it.
        const bool from_x = activationDesc->fields.mode == CUDNN_ACTIVATION_SWISH;
        must(kilnActivationBackward(kiln_handle(handle), activation, alpha,
                                    from_x ? nullptr : kiln_of(yDesc, "yDesc"),
                                    from_x ? nullptr : y, kiln_of(dyDesc, "dyDesc"), dy,
                                    from_x ? kiln_of(xDesc, "xDesc") : nullptr,
                                    from_x ? x : nullptr, beta, kiln_of(dxDesc, "dxDesc"), dx));
      },
      handle, activationDesc, alpha, yDesc, y, dyDesc, dy, xDesc, x, beta, dxDesc, dx);
}

cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                  cudnnSoftmaxMode_t mode, const void* alpha,
                                  cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                  cudnnTensorDescriptor_t yDesc, void* y) {
  return serve(
      Function(cudnnSoftmaxForward),
      [&] {
        must(kilnSoftmaxForward(kiln_handle(handle), kiln_algorithm(algo), kiln_mode(mode), alpha,
                                kiln_of(xDesc, "xDesc"), x, beta, kiln_of(yDesc, "yDesc"), y));
      },
      handle, algo, mode, alpha, xDesc, x, beta, yDesc, y);
}

cudnnStatus_t cudnnSoftmaxBackward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algo,
                                   cudnnSoftmaxMode_t mode, const void* alpha,
                                   cudnnTensorDescriptor_t yDesc, const void* y,
                                   cudnnTensorDescriptor_t dyDesc, const void* dy, const void* beta,
                                   cudnnTensorDescriptor_t dxDesc, void* dx) {
  return serve(
      Function(cudnnSoftmaxBackward),
      [&] {
        must(kilnSoftmaxBackward(kiln_handle(handle), kiln_algorithm(algo), kiln_mode(mode), alpha,
                                 kiln_of(yDesc, "yDesc"), y, kiln_of(dyDesc, "dyDesc"), dy, beta,
                                 kiln_of(dxDesc, "dxDesc"), dx));
      },
      handle, algo, mode, alpha, yDesc, y, dyDesc, dy, beta, dxDesc, dx);
}
