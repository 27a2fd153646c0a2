// Makes twins by the real library's functions and sets them as Kiln's objects are set.
#include "cudnn/descriptors/convolution.hpp"
#include "cudnn/descriptors/elements.hpp"
#include "cudnn/descriptors/layers.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/handle.hpp"

namespace kiln::cudnn {
namespace {

// Calls a function of the real library. Throws if the function is missing or fails.
#define KILN_REAL(function, ...)                                                   \
  call_real(real_function(static_cast<decltype(&::function)>(nullptr), #function), \
            #function __VA_OPT__(, ) __VA_ARGS__)

template <class... Parameters>
void call_real(cudnnStatus_t (*real)(Parameters...), const char* name,
               std::type_identity_t<Parameters>... arguments) {
  if (real == nullptr)
    fail(KILN_STATUS_NOT_SUPPORTED, "the library that KILN_CUDNN_FORWARD names has no ", name);
  const cudnnStatus_t status = real(arguments...);
  if (status != CUDNN_STATUS_SUCCESS)
    fail(KILN_STATUS_NOT_SUPPORTED, "the library that KILN_CUDNN_FORWARD names gives status ",
         static_cast<int>(status), " for ", name);
}

// Calls make(&real) the first time, and set(real) if the object has changed since it was last set.
template <class Object, class Make, class Set>
Object twin_of(Twin<Object>& twin, const Make& make, const Set& set) {
  const auto locked = twin.lock.lock();
  if (twin.real == nullptr) make(&twin.real);
  if (!twin.current.load(std::memory_order_relaxed)) {
    set(twin.real);
    twin.current.store(true, std::memory_order_relaxed);
  }
  return twin.real;
}

template <class Object, class Destroy>
void end(Twin<Object>& twin, Destroy* real_destroy) noexcept {
  if (twin.real != nullptr && real_destroy != nullptr) real_destroy(twin.real);
  twin.real = nullptr;
}

template <class Array>
std::array<int, CUDNN_DIM_MAX> ints_of(const Array& values) {
  std::array<int, CUDNN_DIM_MAX> out{};
  for (std::size_t i = 0; i < values.size(); ++i) out[i] = static_cast<int>(values[i]);
  return out;
}

}  // namespace

cudnnHandle_t real_of(cudnnHandle_t handle) {
  if (handle == nullptr) return nullptr;
  cudnnContext& object = context_of(handle);
  return twin_of(
      object.twin, [](cudnnHandle_t* real) { KILN_REAL(cudnnCreate, real); },
      [&](cudnnHandle_t real) {
        KILN_REAL(cudnnSetStream, real, static_cast<cudaStream_t>(object.stream));
      });
}

cudnnTensorDescriptor_t real_of(cudnnTensorDescriptor_t descriptor) {
  if (descriptor == nullptr) return nullptr;
  cudnnTensorStruct& object = api::checked(descriptor, "a tensor descriptor");
  return twin_of(
      object.twin,
      [](cudnnTensorDescriptor_t* real) { KILN_REAL(cudnnCreateTensorDescriptor, real); },
      [&](cudnnTensorDescriptor_t real) {
        const Shape& s = object.shape;
        if (s.rank == 0) return;  // never set: the real library sets it, or reports the error
        const auto dims = ints_of(s.dims), strides = ints_of(s.strides);
        if (s.has_format != 0 && s.rank == 4)
          KILN_REAL(cudnnSetTensor4dDescriptor, real, s.format, s.type, dims[0], dims[1], dims[2],
                    dims[3]);
        else if (s.has_format != 0)
          KILN_REAL(cudnnSetTensorNdDescriptorEx, real, s.format, s.type, s.rank, dims.data());
        else
          KILN_REAL(cudnnSetTensorNdDescriptor, real, s.type, s.rank, dims.data(), strides.data());
      });
}

cudnnFilterDescriptor_t real_of(cudnnFilterDescriptor_t descriptor) {
  if (descriptor == nullptr) return nullptr;
  cudnnFilterStruct& object = api::checked(descriptor, "a filter descriptor");
  return twin_of(
      object.twin,
      [](cudnnFilterDescriptor_t* real) { KILN_REAL(cudnnCreateFilterDescriptor, real); },
      [&](cudnnFilterDescriptor_t real) {
        const Shape& s = object.shape;
        if (s.rank == 0) return;
        const auto dims = ints_of(s.dims);
        KILN_REAL(cudnnSetFilterNdDescriptor, real, s.type, s.format, s.rank, dims.data());
      });
}

cudnnConvolutionDescriptor_t real_of(cudnnConvolutionDescriptor_t descriptor) {
  if (descriptor == nullptr) return nullptr;
  cudnnConvolutionStruct& object = api::checked(descriptor, "convDesc");
  return twin_of(
      object.twin,
      [](cudnnConvolutionDescriptor_t* real) { KILN_REAL(cudnnCreateConvolutionDescriptor, real); },
      [&](cudnnConvolutionDescriptor_t real) {
        const ConvolutionFields& f = object.fields;
        if (f.rank == 0) return;
        KILN_REAL(cudnnSetConvolutionNdDescriptor, real, f.rank, f.pad.data(), f.stride.data(),
                  f.dilation.data(), f.mode, f.compute_type);
        KILN_REAL(cudnnSetConvolutionGroupCount, real, f.groups);
        KILN_REAL(cudnnSetConvolutionMathType, real, f.math);
        KILN_REAL(cudnnSetConvolutionReorderType, real, f.reorder);
      });
}

cudnnPoolingDescriptor_t real_of(cudnnPoolingDescriptor_t descriptor) {
  if (descriptor == nullptr) return nullptr;
  cudnnPoolingStruct& object = api::checked(descriptor, "poolingDesc");
  return twin_of(
      object.twin,
      [](cudnnPoolingDescriptor_t* real) { KILN_REAL(cudnnCreatePoolingDescriptor, real); },
      [&](cudnnPoolingDescriptor_t real) {
        const PoolingFields& f = object.fields;
        if (f.rank == 0) return;
        KILN_REAL(cudnnSetPoolingNdDescriptor, real, f.mode, f.nan, f.rank, f.window.data(),
                  f.pad.data(), f.stride.data());
      });
}

cudnnActivationDescriptor_t real_of(cudnnActivationDescriptor_t descriptor) {
  if (descriptor == nullptr) return nullptr;
  cudnnActivationStruct& object = api::checked(descriptor, "activationDesc");
  return twin_of(
      object.twin,
      [](cudnnActivationDescriptor_t* real) { KILN_REAL(cudnnCreateActivationDescriptor, real); },
      [&](cudnnActivationDescriptor_t real) {
        const ActivationFields& f = object.fields;
        if (f.is_set == 0) return;
        KILN_REAL(cudnnSetActivationDescriptor, real, f.mode, f.nan, f.coef);
        if (f.has_swish_beta != 0)
          KILN_REAL(cudnnSetActivationDescriptorSwishBeta, real, f.swish_beta);
      });
}

cudnnOpTensorDescriptor_t real_of(cudnnOpTensorDescriptor_t descriptor) {
  if (descriptor == nullptr) return nullptr;
  cudnnOpTensorStruct& object = api::checked(descriptor, "opTensorDesc");
  return twin_of(
      object.twin,
      [](cudnnOpTensorDescriptor_t* real) { KILN_REAL(cudnnCreateOpTensorDescriptor, real); },
      [&](cudnnOpTensorDescriptor_t real) {
        const OpTensorFields& f = object.fields;
        if (f.is_set) KILN_REAL(cudnnSetOpTensorDescriptor, real, f.op, f.compute_type, f.nan);
      });
}

cudnnReduceTensorDescriptor_t real_of(cudnnReduceTensorDescriptor_t descriptor) {
  if (descriptor == nullptr) return nullptr;
  cudnnReduceTensorStruct& object = api::checked(descriptor, "reduceTensorDesc");
  return twin_of(
      object.twin,
      [](cudnnReduceTensorDescriptor_t* real) {
        KILN_REAL(cudnnCreateReduceTensorDescriptor, real);
      },
      [&](cudnnReduceTensorDescriptor_t real) {
        const ReduceFields& f = object.fields;
        if (f.is_set)
          KILN_REAL(cudnnSetReduceTensorDescriptor, real, f.op, f.compute_type, f.nan, f.indices,
                    f.indices_type);
      });
}

cudnnTensorTransformDescriptor_t real_of(cudnnTensorTransformDescriptor_t descriptor) {
  if (descriptor == nullptr) return nullptr;
  cudnnTensorTransformStruct& object = api::checked(descriptor, "transformDesc");
  return twin_of(
      object.twin,
      [](cudnnTensorTransformDescriptor_t* real) {
        KILN_REAL(cudnnCreateTensorTransformDescriptor, real);
      },
      [&](cudnnTensorTransformDescriptor_t real) {
        const TransformFields& f = object.fields;
        if (f.rank != 0)
          KILN_REAL(cudnnSetTensorTransformDescriptor, real, f.rank, f.format, f.pad_before.data(),
                    f.pad_after.data(), f.fold.data(), f.direction);
      });
}

void read_back(cudnnTensorDescriptor_t descriptor) {
  auto* const real = real_of(descriptor);
  auto* const get = real_function(cudnnGetTensorNdDescriptor, "cudnnGetTensorNdDescriptor");
  if (real == nullptr || get == nullptr) return;
  cudnnDataType_t type{};
  int rank = 0, dims[CUDNN_DIM_MAX] = {}, strides[CUDNN_DIM_MAX] = {};
  if (get(real, CUDNN_DIM_MAX, &type, &rank, dims, strides) != CUDNN_STATUS_SUCCESS) return;
  if (rank == 0) {
    descriptor->shape = {.type = type};
  } else {
    set(*descriptor, strided_shape(type, rank, dims, strides));
  }
  // The twin is current, because it is the source; it may have more than shape and strides.
  descriptor->twin.current.store(true, std::memory_order_relaxed);
}

#define KILN_END(Object, function)                                                      \
  void end_twin(Twin<Object>& twin) noexcept {                                          \
    if (twin.real != nullptr)                                                           \
      end(twin, real_function(static_cast<decltype(&::function)>(nullptr), #function)); \
  }
KILN_END(cudnnHandle_t, cudnnDestroy)
KILN_END(cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor)
KILN_END(cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor)
KILN_END(cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor)
KILN_END(cudnnPoolingDescriptor_t, cudnnDestroyPoolingDescriptor)
KILN_END(cudnnActivationDescriptor_t, cudnnDestroyActivationDescriptor)
KILN_END(cudnnOpTensorDescriptor_t, cudnnDestroyOpTensorDescriptor)
KILN_END(cudnnReduceTensorDescriptor_t, cudnnDestroyReduceTensorDescriptor)
KILN_END(cudnnTensorTransformDescriptor_t, cudnnDestroyTensorTransformDescriptor)

}  // namespace kiln::cudnn
