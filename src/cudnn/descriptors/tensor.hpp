// Tensor and filter descriptors.
#pragma once

#include <cudnn.h>

#include <array>
#include <cstdint>

#include "api/checks.hpp"
#include "cudnn/forward/twin.hpp"
#include "kiln/base.hpp"

namespace kiln::cudnn {

// Owns one object of Kiln's C API.
template <class Pointer, kilnStatus_t (*create)(Pointer*), kilnStatus_t (*destroy)(Pointer)>
class Object : public Owner<Pointer, destroy> {
 public:
  Object() : Owner<Pointer, destroy>(Owner<Pointer, destroy>::created(create)) {}
};
using KilnTensor =
    Object<kilnTensorDescriptor_t, kilnCreateTensorDescriptor, kilnDestroyTensorDescriptor>;
using KilnFilter =
    Object<kilnFilterDescriptor_t, kilnCreateFilterDescriptor, kilnDestroyFilterDescriptor>;

// The shape that the program set, whether or not Kiln computes with it. No padding bytes between
// the values, so that shapes are compared and hashed as bytes.
struct Shape {
  std::array<std::int64_t, CUDNN_DIM_MAX> dims{}, strides{};
  std::int32_t rank = 0;  // 0: never set, or set to no dimensions by the real library
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int32_t has_format =
      0;  // set by format, and so is the twin: strides alone cannot say VECT_C
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
};

// Bytes from the first addressed element to the end of the last one.
std::size_t size_in_bytes(const Shape& shape);

}  // namespace kiln::cudnn

struct cudnnTensorStruct {
  static constexpr auto kind = "a tensor descriptor", creator = "cudnnCreateTensorDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b636402;
  kiln::api::Mark mark{mark_value};
  kiln::cudnn::Shape shape;
  kiln::cudnn::KilnTensor kiln;  // set if served(shape)
  kiln::cudnn::Twin<cudnnTensorDescriptor_t> twin;
};

struct cudnnFilterStruct {
  static constexpr auto kind = "a filter descriptor", creator = "cudnnCreateFilterDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b636403;
  kiln::api::Mark mark{mark_value};
  kiln::cudnn::Shape shape;
  kiln::cudnn::KilnFilter kiln;
  kiln::cudnn::Twin<cudnnFilterDescriptor_t> twin;
};

namespace kiln::cudnn {

// The shape behind a descriptor. Throws BAD_PARAM if it was never set.
const Shape& shape_of(cudnnTensorDescriptor_t descriptor, const char* name);
const Shape& shape_of(cudnnFilterDescriptor_t descriptor, const char* name);

// Its Kiln descriptor. Throws as shape_of(), and NOT_SUPPORTED if Kiln does not compute with the
// type or the format.
kilnTensorDescriptor_t kiln_of(cudnnTensorDescriptor_t descriptor, const char* name);
kilnFilterDescriptor_t kiln_of(cudnnFilterDescriptor_t descriptor, const char* name);

// The shape with the dense strides of a format. `least`: the smallest allowed first size; `array`:
// the name of `dims` in messages. Throws BAD_PARAM.
Shape dense_shape(cudnnTensorFormat_t format, cudnnDataType_t type, int rank, const int* dims,
                  int least, const char* array);

// The shape with the caller's strides. Throws BAD_PARAM.
Shape strided_shape(cudnnDataType_t type, int rank, const int* dims, const int* strides);

// Whether Kiln computes with the type and format. The second function throws NOT_SUPPORTED if not.
bool served(const Shape& shape);
void check_served(const Shape& shape, const char* name);

// Sets a descriptor. If it throws, the descriptor is unchanged.
void set(cudnnTensorStruct& tensor, const Shape& shape);

}  // namespace kiln::cudnn
