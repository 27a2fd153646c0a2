#include "cudnn/descriptors/tensor.hpp"

#include <limits>

#include "cudnn/descriptors/types.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/status.hpp"

using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::cudnn::dense_shape;
using kiln::cudnn::Function;
using kiln::cudnn::guarded;
using kiln::cudnn::serve;
using kiln::cudnn::shape_of;
using kiln::cudnn::strided_shape;

namespace kiln::cudnn {

namespace {

// The product. Throws BAD_PARAM if it does not fit into 63 bits.
std::int64_t product(std::int64_t one, std::int64_t other) {
  std::int64_t out = 0;
  if (__builtin_mul_overflow(one, other, &out))
    fail(KILN_STATUS_BAD_PARAM, "sizes multiply to more than 2^63 - 1 elements");
  return out;
}

// Sets the dense strides of the shape's format: in NHWC, channels are innermost.
void fill_dense_strides(Shape& shape) {
  std::int64_t stride = 1;
  const bool channels_last = shape.format == CUDNN_TENSOR_NHWC && shape.rank > 1;
  if (channels_last) {
    shape.strides[1] = 1;
    stride = shape.dims[1];
  }
  for (int i = shape.rank - 1; i >= 0; --i) {
    if (channels_last && i == 1) continue;
    shape.strides[i] = stride;
    stride = product(stride, shape.dims[i]);
  }
}

Shape read(cudnnDataType_t type, int rank, const int* dims, int least, const char* array) {
  check_pointer(dims, array, "an array of nbDims sizes");
  if (rank < 1 || rank > CUDNN_DIM_MAX)
    fail(KILN_STATUS_BAD_PARAM, "nbDims is ", rank, "; expected 1 to ", CUDNN_DIM_MAX);
  name_of(type);  // throws for a number that no type has
  Shape shape;
  shape.type = type;
  shape.rank = rank;
  for (int i = 0; i < rank; ++i) {
    const int bound = i == 0 ? least : 1;
    if (dims[i] < bound)
      fail(KILN_STATUS_BAD_PARAM, array, "[", i, "] is ", dims[i], "; expected at least ", bound);
    shape.dims[i] = dims[i];
  }
  return shape;
}

template <class Descriptor>
Descriptor& set_before(Descriptor* descriptor, const char* name) {
  Descriptor& object = checked(descriptor, name);
  if (object.shape.rank == 0)
    fail(KILN_STATUS_BAD_PARAM, name, " was never set; expected sizes and a type");
  return object;
}

template <class Descriptor>
auto kiln_object(Descriptor* descriptor, const char* name) {
  const Descriptor& object = set_before(descriptor, name);
  check_served(object.shape, name);
  return object.kiln.get();
}

}  // namespace

Shape strided_shape(cudnnDataType_t type, int rank, const int* dims, const int* strides) {
  Shape shape = read(type, rank, dims, 0, "dimA");
  check_pointer(strides, "strideA", "an array of nbDims strides");
  for (int i = 0; i < rank; ++i) {
    if (strides[i] < 0)
      fail(KILN_STATUS_BAD_PARAM, "strideA[", i, "] is ", strides[i], "; expected at least 0");
    shape.strides[i] = strides[i];
  }
  return shape;
}

std::size_t size_in_bytes(const Shape& shape) {
  std::int64_t elements = 1;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape.dims[i] == 0) return 0;
    if (__builtin_add_overflow(elements, product(shape.dims[i] - 1, shape.strides[i]), &elements))
      fail(KILN_STATUS_BAD_PARAM, "the tensor spans more than 2^63 - 1 elements");
  }
  return static_cast<std::size_t>(
      product(elements, static_cast<std::int64_t>(bytes_of(shape.type))));
}

Shape dense_shape(cudnnTensorFormat_t format, cudnnDataType_t type, int rank, const int* dims,
                  int least, const char* array) {
  check_format(format);
  Shape shape = read(type, rank, dims, least, array);
  shape.has_format = 1;
  shape.format = format;
  fill_dense_strides(shape);
  return shape;
}

bool served(const Shape& shape) {
  return computes_with(shape.type) &&
         (shape.has_format == 0 || shape.format != CUDNN_TENSOR_NCHW_VECT_C);
}

void check_served(const Shape& shape, const char* name) {
  if (served(shape)) return;
  kiln_type(shape.type, name);
  kiln_format(shape.format, name);
}

// Checks all values. Shapes that Kiln does not compute with are only stored, for the real library.
void set(cudnnTensorStruct& tensor, const Shape& shape) {
  // cudnnGetTensorNdDescriptor gives strides back in an int.
  for (int i = 0; i < shape.rank; ++i)
    if (shape.strides[i] > std::numeric_limits<int>::max())
      fail(KILN_STATUS_NOT_SUPPORTED, "the stride of dimension ", i, " would be ", shape.strides[i],
           " elements; expected at most ", std::numeric_limits<int>::max());
  if (served(shape))
    must(kilnSetTensorNdDescriptor(tensor.kiln.get(), kiln_type(shape.type, "dataType"), shape.rank,
                                   shape.dims.data(), shape.strides.data()));
  tensor.shape = shape;
  renew(tensor.twin);
}

const Shape& shape_of(cudnnTensorDescriptor_t descriptor, const char* name) {
  return set_before(descriptor, name).shape;
}
const Shape& shape_of(cudnnFilterDescriptor_t descriptor, const char* name) {
  return set_before(descriptor, name).shape;
}

kilnTensorDescriptor_t kiln_of(cudnnTensorDescriptor_t descriptor, const char* name) {
  return kiln_object(descriptor, name);
}
kilnFilterDescriptor_t kiln_of(cudnnFilterDescriptor_t descriptor, const char* name) {
  return kiln_object(descriptor, name);
}

}  // namespace kiln::cudnn

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* tensorDesc) {
  return guarded([&] {
    check_pointer(tensorDesc, "tensorDesc", "where to store the new descriptor");
    *tensorDesc = nullptr;
    *tensorDesc = new cudnnTensorStruct;
  });
}

cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t tensorDesc) {
  return guarded([&] { kiln::cudnn::destroy(tensorDesc, "tensorDesc"); });
}

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                         cudnnTensorFormat_t format, cudnnDataType_t dataType,
                                         int n, int c, int h, int w) {
  return guarded([&] {
    const int dims[] = {n, c, h, w};
    set(checked(tensorDesc, "tensorDesc"), dense_shape(format, dataType, 4, dims, 0, "dimA"));
  });
}

cudnnStatus_t cudnnSetTensor4dDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
                                           cudnnDataType_t dataType, int n, int c, int h, int w,
                                           int nStride, int cStride, int hStride, int wStride) {
  return guarded([&] {
    const int dims[] = {n, c, h, w}, strides[] = {nStride, cStride, hStride, wStride};
    set(checked(tensorDesc, "tensorDesc"), strided_shape(dataType, 4, dims, strides));
  });
}

cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                         cudnnDataType_t dataType, int nbDims, const int dimA[],
                                         const int strideA[]) {
  return guarded([&] {
    set(checked(tensorDesc, "tensorDesc"), strided_shape(dataType, nbDims, dimA, strideA));
  });
}

cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t tensorDesc,
                                           cudnnTensorFormat_t format, cudnnDataType_t dataType,
                                           int nbDims, const int dimA[]) {
  return guarded([&] {
    set(checked(tensorDesc, "tensorDesc"), dense_shape(format, dataType, nbDims, dimA, 0, "dimA"));
  });
}

cudnnStatus_t cudnnGetTensor4dDescriptor(cudnnTensorDescriptor_t tensorDesc,
                                         cudnnDataType_t* dataType, int* n, int* c, int* h, int* w,
                                         int* nStride, int* cStride, int* hStride, int* wStride) {
  return guarded([&] {
    const kiln::cudnn::Shape& shape = shape_of(tensorDesc, "tensorDesc");
    if (shape.rank != 4)
      kiln::fail(KILN_STATUS_BAD_PARAM, "tensorDesc has ", shape.rank, " dimensions; expected 4");
    if (dataType != nullptr) *dataType = shape.type;
    int* const dims[] = {n, c, h, w};
    int* const strides[] = {nStride, cStride, hStride, wStride};
    for (int i = 0; i < 4; ++i) {
      if (dims[i] != nullptr) *dims[i] = static_cast<int>(shape.dims[i]);
      if (strides[i] != nullptr) *strides[i] = static_cast<int>(shape.strides[i]);
    }
  });
}

cudnnStatus_t cudnnGetTensorNdDescriptor(cudnnTensorDescriptor_t tensorDesc, int nbDimsRequested,
                                         cudnnDataType_t* dataType, int* nbDims, int dimA[],
                                         int strideA[]) {
  return guarded([&] {
    // A tensor without dimensions is accepted: the real library describes absent tensors so.
    const kiln::cudnn::Shape& shape = checked(tensorDesc, "tensorDesc").shape;
    if (dataType != nullptr) *dataType = shape.type;
    if (nbDims != nullptr) *nbDims = shape.rank;
    for (int i = 0; i < shape.rank && i < nbDimsRequested; ++i) {
      if (dimA != nullptr) dimA[i] = static_cast<int>(shape.dims[i]);
      if (strideA != nullptr) strideA[i] = static_cast<int>(shape.strides[i]);
    }
  });
}

cudnnStatus_t cudnnGetTensorSizeInBytes(cudnnTensorDescriptor_t tensorDesc, size_t* size) {
  return serve(
      Function(cudnnGetTensorSizeInBytes),
      [&] {
        check_pointer(size, "size", "where to store the bytes");
        *size = kiln::cudnn::size_in_bytes(shape_of(tensorDesc, "tensorDesc"));
      },
      tensorDesc, size);
}
