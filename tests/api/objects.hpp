// Owners of the C API's objects, so that a failing check leaks nothing. (kiln.hpp has its own,
// which raii_test.cpp tests.)
#pragma once

#include <cstdint>
#include <vector>

#include "expect.hpp"
#include "test_device.hpp"

namespace test {

using Sizes = std::vector<std::int64_t>;

template <class Pointer, kilnStatus_t (*destroy)(Pointer)>
class Object {
 public:
  explicit Object(kilnStatus_t (*create)(Pointer*)) { succeeds(create(&pointer_)); }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  ~Object() { destroy(pointer_); }
  operator Pointer() const { return pointer_; }

 protected:
  Object() = default;
  Pointer pointer_ = nullptr;
};

struct TensorDesc : Object<kilnTensorDescriptor_t, kilnDestroyTensorDescriptor> {
  TensorDesc() : Object(kilnCreateTensorDescriptor) {}
  TensorDesc(kilnDataType_t type, const Sizes& dims, kilnTensorFormat_t format = KILN_TENSOR_NCHW)
      : TensorDesc() {
    succeeds(kilnSetTensorNdDescriptorEx(*this, format, type, static_cast<int>(dims.size()),
                                         dims.data()));
  }
  TensorDesc(kilnDataType_t type, const Sizes& dims, const Sizes& strides) : TensorDesc() {
    succeeds(kilnSetTensorNdDescriptor(*this, type, static_cast<int>(dims.size()), dims.data(),
                                       strides.data()));
  }
};

struct FilterDesc : Object<kilnFilterDescriptor_t, kilnDestroyFilterDescriptor> {
  FilterDesc() : Object(kilnCreateFilterDescriptor) {}
  FilterDesc(kilnDataType_t type, const Sizes& dims, kilnTensorFormat_t format = KILN_TENSOR_NCHW)
      : FilterDesc() {
    succeeds(
        kilnSetFilterNdDescriptor(*this, type, format, static_cast<int>(dims.size()), dims.data()));
  }
  FilterDesc(kilnDataType_t type, const Sizes& dims, const Sizes& strides) : FilterDesc() {
    succeeds(kilnSetFilterNdDescriptorStrided(*this, type, static_cast<int>(dims.size()),
                                              dims.data(), strides.data()));
  }
};

struct ConvolutionDesc : Object<kilnConvolutionDescriptor_t, kilnDestroyConvolutionDescriptor> {
  ConvolutionDesc() : Object(kilnCreateConvolutionDescriptor) {}
  ConvolutionDesc(const Sizes& pad_before, const Sizes& pad_after, const Sizes& stride,
                  const Sizes& dilation, std::int64_t groups = 1,
                  kilnConvolutionMode_t mode = KILN_CROSS_CORRELATION,
                  kilnDataType_t compute_type = KILN_DATA_FLOAT)
      : ConvolutionDesc() {
    succeeds(kilnSetConvolutionNdDescriptor(*this, static_cast<int>(pad_before.size()),
                                            pad_before.data(), pad_after.data(), stride.data(),
                                            dilation.data(), mode, compute_type));
    succeeds(kilnSetConvolutionGroupCount(*this, groups));
  }
};

// A handle of the device under test.
struct TestHandle : Object<kilnHandle_t, kilnDestroy> {
  TestHandle() { succeeds(kilnCreate(&pointer_, device_kind(), 0)); }
};

struct TestPlan : Object<kilnPlan_t, kilnDestroyPlan> {
  TestPlan(kilnHandle_t handle, kilnTensorDescriptor_t x, kilnFilterDescriptor_t w,
           kilnConvolutionDescriptor_t convolution, kilnTensorDescriptor_t y) {
    succeeds(kilnCreateConvolutionForwardPlan(handle, x, w, convolution, y, &pointer_));
  }
};

}  // namespace test
