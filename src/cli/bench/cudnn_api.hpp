// The part of cuDNN's legacy C interface (versions 8 and 9) that is called here. Descriptors are
// opaque pointers; enumerations are passed as int.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/peer.hpp"

namespace kiln::cli::bench::cudnn {

using Handle = void*;
using Descriptor = void*;

// X(name, parameters): functions that return a status.
// clang-format off
#define KILN_CUDNN_FUNCTIONS(X)                                                                    \
  X(cudnnCreate, (Handle*))                                                                        \
  X(cudnnDestroy, (Handle))                                                                        \
  X(cudnnCreateTensorDescriptor, (Descriptor*))                                                    \
  X(cudnnDestroyTensorDescriptor, (Descriptor))                                                    \
  X(cudnnSetTensor4dDescriptor, (Descriptor, int format, int type, int n, int c, int h, int w))    \
  X(cudnnCreateFilterDescriptor, (Descriptor*))                                                    \
  X(cudnnDestroyFilterDescriptor, (Descriptor))                                                    \
  X(cudnnSetFilter4dDescriptor, (Descriptor, int type, int format, int k, int c, int h, int w))    \
  X(cudnnCreateConvolutionDescriptor, (Descriptor*))                                               \
  X(cudnnDestroyConvolutionDescriptor, (Descriptor))                                               \
  X(cudnnSetConvolution2dDescriptor, (Descriptor, int pad_h, int pad_w, int stride_h,              \
      int stride_w, int dilation_h, int dilation_w, int mode, int compute_type))                   \
  X(cudnnSetConvolutionMathType, (Descriptor, int math))                                           \
  X(cudnnSetConvolutionGroupCount, (Descriptor, int groups))                                       \
  X(cudnnGetConvolutionForwardWorkspaceSize, (Handle, Descriptor x, Descriptor w,                  \
      Descriptor convolution, Descriptor y, int algorithm, std::size_t* bytes))                    \
  X(cudnnGetConvolutionBackwardDataWorkspaceSize, (Handle, Descriptor w, Descriptor dy,            \
      Descriptor convolution, Descriptor dx, int algorithm, std::size_t* bytes))                   \
  X(cudnnGetConvolutionBackwardFilterWorkspaceSize, (Handle, Descriptor x, Descriptor dy,          \
      Descriptor convolution, Descriptor dw, int algorithm, std::size_t* bytes))                   \
  X(cudnnConvolutionForward, (Handle, const void* alpha, Descriptor, const void* x, Descriptor,    \
      const void* w, Descriptor convolution, int algorithm, void* workspace, std::size_t bytes,    \
      const void* beta, Descriptor, void* y))                                                      \
  X(cudnnConvolutionBackwardData, (Handle, const void* alpha, Descriptor, const void* w,           \
      Descriptor, const void* dy, Descriptor convolution, int algorithm, void* workspace,          \
      std::size_t bytes, const void* beta, Descriptor, void* dx))                                  \
  X(cudnnConvolutionBackwardFilter, (Handle, const void* alpha, Descriptor, const void* x,         \
      Descriptor, const void* dy, Descriptor convolution, int algorithm, void* workspace,          \
      std::size_t bytes, const void* beta, Descriptor, void* dw))                                  \
  X(cudnnConvolutionBackwardBias, (Handle, const void* alpha, Descriptor, const void* dy,          \
      const void* beta, Descriptor, void* db))                                                     \
  X(cudnnCreatePoolingDescriptor, (Descriptor*))                                                   \
  X(cudnnDestroyPoolingDescriptor, (Descriptor))                                                   \
  X(cudnnSetPooling2dDescriptor, (Descriptor, int mode, int nan, int window_h, int window_w,       \
      int pad_h, int pad_w, int stride_h, int stride_w))                                           \
  X(cudnnPoolingForward, (Handle, Descriptor pooling, const void* alpha, Descriptor,               \
      const void* x, const void* beta, Descriptor, void* y))                                       \
  X(cudnnPoolingBackward, (Handle, Descriptor pooling, const void* alpha, Descriptor,              \
      const void* y, Descriptor, const void* dy, Descriptor, const void* x, const void* beta,      \
      Descriptor, void* dx))                                                                       \
  X(cudnnCreateActivationDescriptor, (Descriptor*))                                                \
  X(cudnnDestroyActivationDescriptor, (Descriptor))                                                \
  X(cudnnSetActivationDescriptor, (Descriptor, int mode, int nan, double coefficient))             \
  X(cudnnActivationForward, (Handle, Descriptor activation, const void* alpha, Descriptor,         \
      const void* x, const void* beta, Descriptor, void* y))                                       \
  X(cudnnActivationBackward, (Handle, Descriptor activation, const void* alpha, Descriptor,        \
      const void* y, Descriptor, const void* dy, Descriptor, const void* x, const void* beta,      \
      Descriptor, void* dx))                                                                       \
  X(cudnnSoftmaxForward, (Handle, int algorithm, int mode, const void* alpha, Descriptor,          \
      const void* x, const void* beta, Descriptor, void* y))                                       \
  X(cudnnSoftmaxBackward, (Handle, int algorithm, int mode, const void* alpha, Descriptor,         \
      const void* y, Descriptor, const void* dy, const void* beta, Descriptor, void* dx))          \
  X(cudnnTransformTensor, (Handle, const void* alpha, Descriptor, const void* x,                   \
      const void* beta, Descriptor, void* y))                                                      \
  X(cudnnAddTensor, (Handle, const void* alpha, Descriptor, const void* a, const void* beta,       \
      Descriptor, void* c))                                                                        \
  X(cudnnScaleTensor, (Handle, Descriptor, void* y, const void* alpha))                            \
  X(cudnnCreateReduceTensorDescriptor, (Descriptor*))                                              \
  X(cudnnDestroyReduceTensorDescriptor, (Descriptor))                                              \
  X(cudnnSetReduceTensorDescriptor, (Descriptor, int operation, int compute_type, int nan,         \
      int indices, int indices_type))                                                              \
  X(cudnnGetReductionWorkspaceSize, (Handle, Descriptor reduction, Descriptor a, Descriptor c,     \
      std::size_t* bytes))                                                                         \
  X(cudnnReduceTensor, (Handle, Descriptor reduction, void* indices, std::size_t indices_bytes,    \
      void* workspace, std::size_t bytes, const void* alpha, Descriptor, const void* a,            \
      const void* beta, Descriptor, void* c))
// clang-format on

struct Api {
#define KILN_DECLARE(name, parameters) int(*name) parameters = nullptr;
  KILN_CUDNN_FUNCTIONS(KILN_DECLARE)
#undef KILN_DECLARE
  std::size_t (*cudnnGetVersion)() = nullptr;
  const char* (*cudnnGetErrorString)(int) = nullptr;

  explicit Api(const SharedLibrary& library);

  // Throws EXECUTION_FAILED (NOT_SUPPORTED where cuDNN says that) with the call and the status.
  void check(int status, const char* call) const;
};

constexpr int nchw = 0, nhwc = 1;                  // cudnnTensorFormat_t
constexpr int tensor_op_math = 1, fma_math = 3;    // cudnnMathType_t
constexpr int default_math = 0;                    //
constexpr int flipped = 0, cross_correlation = 1;  // cudnnConvolutionMode_t
constexpr int no_nan = 0, propagate_nan = 1;       // cudnnNanPropagation_t

int type_number(DataType type);  // cudnnDataType_t

// A descriptor, destroyed with the object.
class Owned {
 public:
  using Create = int (*)(Descriptor*);
  using Destroy = int (*)(Descriptor);
  Owned(const Api& api, Create create, Destroy destroy, const char* call) : destroy_(destroy) {
    api.check(create(&descriptor_), call);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { destroy_(descriptor_); }
  Descriptor get() const { return descriptor_; }

 private:
  Descriptor descriptor_ = nullptr;
  Destroy destroy_;
};
using Shared = std::shared_ptr<const Owned>;

// The objects that all calls of cuDNN need.
struct Context {
  Device& device;
  const Api& api;
  Handle handle;
  std::unique_ptr<DeviceBuffer> workspace, saved;  // of the current case

  // Pointers to alpha 1 and to `value` in the type that cuDNN wants for tensors of `type`; valid
  // as long as the program runs.
  static const void* scalar(DataType type, double value);
  // The descriptor of an operand with at most two dimensions of space. `layout` decides the format
  // if the strides fit several.
  Shared tensor(const Operand& operand, const std::string& layout) const;
  void need_workspace(std::size_t bytes);
};

std::vector<Contestant> convolution_contestants(Context& context, const Case& item,
                                                const ConvolutionProblem& problem,
                                                Operands& operands);
std::vector<Contestant> memory_bound_contestants(Context& context, const Case& item,
                                                 Operands& operands);

}  // namespace kiln::cli::bench::cudnn
