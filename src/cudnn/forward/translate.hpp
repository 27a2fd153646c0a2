// Forwards calls to the real library and replaces Kiln's objects among the arguments by their
// twins.
#pragma once

#include <cudnn.h>

#include <initializer_list>
#include <type_traits>

#include "api/checks.hpp"
#include "cudnn/forward/real_library.hpp"
#include "cudnn/forward/twin.hpp"
#include "cudnn/library/status.hpp"

namespace kiln::cudnn {

// The twin of one of Kiln's objects, made and set if necessary; null for null. Throws on failure.
cudnnHandle_t real_of(cudnnHandle_t handle);
cudnnTensorDescriptor_t real_of(cudnnTensorDescriptor_t descriptor);
cudnnFilterDescriptor_t real_of(cudnnFilterDescriptor_t descriptor);
cudnnConvolutionDescriptor_t real_of(cudnnConvolutionDescriptor_t descriptor);
cudnnPoolingDescriptor_t real_of(cudnnPoolingDescriptor_t descriptor);
cudnnActivationDescriptor_t real_of(cudnnActivationDescriptor_t descriptor);
cudnnOpTensorDescriptor_t real_of(cudnnOpTensorDescriptor_t descriptor);
cudnnReduceTensorDescriptor_t real_of(cudnnReduceTensorDescriptor_t descriptor);
cudnnTensorTransformDescriptor_t real_of(cudnnTensorTransformDescriptor_t descriptor);

// Other arguments are passed on unchanged: numbers, addresses, and objects of kinds that only the
// real library makes.
template <class Other>
Other real_of(Other value) {
  return value;
}

// Copies what the real library has set in the twin to Kiln's descriptor. A tensor without
// dimensions becomes one that was never set. Throws on failure.
void read_back(cudnnTensorDescriptor_t descriptor);

// Destroys the twin, if there is one.
void end_twin(Twin<cudnnHandle_t>& twin) noexcept;
void end_twin(Twin<cudnnTensorDescriptor_t>& twin) noexcept;
void end_twin(Twin<cudnnFilterDescriptor_t>& twin) noexcept;
void end_twin(Twin<cudnnConvolutionDescriptor_t>& twin) noexcept;
void end_twin(Twin<cudnnPoolingDescriptor_t>& twin) noexcept;
void end_twin(Twin<cudnnActivationDescriptor_t>& twin) noexcept;
void end_twin(Twin<cudnnOpTensorDescriptor_t>& twin) noexcept;
void end_twin(Twin<cudnnReduceTensorDescriptor_t>& twin) noexcept;
void end_twin(Twin<cudnnTensorTransformDescriptor_t>& twin) noexcept;

// Implements cudnnDestroy...(); destroying null does nothing.
template <class Descriptor>
void destroy(Descriptor* descriptor, const char* name) {
  if (descriptor == nullptr) return;
  Descriptor& object = api::checked(descriptor, name);
  end_twin(object.twin);
  delete &object;
}

// A forwarded function: the name of the caller that constructs it, and its parameters' types.
template <class... Parameters>
struct Function {
  using Type = cudnnStatus_t(Parameters...);
  Function(Type*, const char* called = __builtin_FUNCTION()) : name(called) {}  // NOLINT
  const char* name;
};

// Calls the function in the real library, which must have it. Keeps the message of a failure.
template <class... Parameters>
cudnnStatus_t forward(Function<Parameters...> function,
                      std::type_identity_t<Parameters>... arguments) noexcept {
  try {
    auto* const real =
        real_function(static_cast<typename Function<Parameters...>::Type*>(nullptr), function.name);
    if (real == nullptr)
      fail(KILN_STATUS_NOT_SUPPORTED,
           "the library that KILN_CUDNN_FORWARD names has no such function");
    return told_by_real(function.name, real(real_of(arguments)...));
  } catch (...) {
    return remember_exception(function.name).status;
  }
}

// The body of a function that Kiln serves. Calls that it refuses as NOT_SUPPORTED are forwarded to
// the real library.
template <class... Parameters, class Body>
cudnnStatus_t serve(Function<Parameters...> function, Body&& body,
                    std::type_identity_t<Parameters>... arguments) noexcept {
  try {
    std::forward<Body>(body)();
    return CUDNN_STATUS_SUCCESS;
  } catch (const Error& error) {
    if (error.status() != KILN_STATUS_NOT_SUPPORTED || !forwards())
      return remember_exception(function.name).status;
  } catch (...) {
    return remember_exception(function.name).status;
  }
  return forward(function, arguments...);
}

// The same for a function that sets the tensor descriptors `written`: those that the real library
// has set are read back.
template <class... Parameters, class Body>
cudnnStatus_t serve_writing(std::initializer_list<cudnnTensorDescriptor_t> written,
                            Function<Parameters...> function, Body&& body,
                            std::type_identity_t<Parameters>... arguments) noexcept {
  bool by_kiln = false;
  const auto noting = [&] {
    body();
    by_kiln = true;
  };
  const cudnnStatus_t status = serve(function, noting, arguments...);
  if (by_kiln || status != CUDNN_STATUS_SUCCESS) return status;
  const auto read = [&] {
    for (cudnnTensorDescriptor_t descriptor : written) read_back(descriptor);
  };
  return guarded(read, function.name);
}

}  // namespace kiln::cudnn
