// Objects of the cuDNN API that end with their scope, and how calls are checked.
#pragma once

#include <cudnn.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

namespace kiln_test {

inline std::string last_sentence() {
  char text[1024] = "";
  cudnnGetLastErrorString(text, sizeof text);
  return text;
}

#define KILN_OK(call)                                                                \
  do {                                                                               \
    const cudnnStatus_t status_of_call = (call);                                     \
    BOOST_REQUIRE_MESSAGE(                                                           \
        status_of_call == CUDNN_STATUS_SUCCESS,                                      \
        #call << " gives " << status_of_call << ": " << kiln_test::last_sentence()); \
  } while (false)

// A call that is refused, with a sentence that has `part`.
#define KILN_REFUSES(status, part, call)                                           \
  do {                                                                             \
    BOOST_TEST(static_cast<int>(call) == static_cast<int>(status));                \
    BOOST_TEST(kiln_test::last_sentence().find(part) != std::string::npos,         \
               "expected \"" << (part) << "\" in " << kiln_test::last_sentence()); \
  } while (false)

template <class Object, cudnnStatus_t (*create)(Object*), cudnnStatus_t (*destroy)(Object)>
class Owned {
 public:
  Owned() { KILN_OK(create(&object_)); }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { destroy(object_); }
  operator Object() const { return object_; }  // NOLINT(google-explicit-constructor)

 private:
  Object object_ = nullptr;
};
using Handle = Owned<cudnnHandle_t, cudnnCreate, cudnnDestroy>;
using Filter =
    Owned<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using Convolution = Owned<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
                          cudnnDestroyConvolutionDescriptor>;
using Pooling =
    Owned<cudnnPoolingDescriptor_t, cudnnCreatePoolingDescriptor, cudnnDestroyPoolingDescriptor>;
using Activation = Owned<cudnnActivationDescriptor_t, cudnnCreateActivationDescriptor,
                         cudnnDestroyActivationDescriptor>;
using OpTensor =
    Owned<cudnnOpTensorDescriptor_t, cudnnCreateOpTensorDescriptor, cudnnDestroyOpTensorDescriptor>;
using Reduction = Owned<cudnnReduceTensorDescriptor_t, cudnnCreateReduceTensorDescriptor,
                        cudnnDestroyReduceTensorDescriptor>;
using Transform = Owned<cudnnTensorTransformDescriptor_t, cudnnCreateTensorTransformDescriptor,
                        cudnnDestroyTensorTransformDescriptor>;

class Tensor : public Owned<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor,
                            cudnnDestroyTensorDescriptor> {
 public:
  Tensor() = default;
  explicit Tensor(std::vector<int> dims, cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW,
                  cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    KILN_OK(cudnnSetTensorNdDescriptorEx(*this, format, type, static_cast<int>(dims.size()),
                                         dims.data()));
  }
};

using Floats = std::vector<float>;
constexpr float zero = 0, one = 1;

}  // namespace kiln_test
