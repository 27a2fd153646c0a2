#include "cudnn/descriptors/tensor.hpp"
#include "cudnn/descriptors/types.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/status.hpp"

using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::cudnn::guarded;
using kiln::cudnn::Shape;
using kiln::cudnn::shape_of;

namespace {

void set(cudnnFilterStruct& filter, cudnnDataType_t type, cudnnTensorFormat_t format, int rank,
         const int* dims) {
  const Shape shape = kiln::cudnn::dense_shape(format, type, rank, dims, 1, "filterDimA");
  if (kiln::cudnn::served(shape))
    kiln::cudnn::must(kilnSetFilterNdDescriptor(
        filter.kiln.get(), kiln::cudnn::kiln_type(type, "dataType"),
        kiln::cudnn::kiln_format(format, "format"), rank, shape.dims.data()));
  filter.shape = shape;
  renew(filter.twin);
}

}  // namespace

cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* filterDesc) {
  return guarded([&] {
    check_pointer(filterDesc, "filterDesc", "where to store the new descriptor");
    *filterDesc = nullptr;
    *filterDesc = new cudnnFilterStruct;
  });
}

cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t filterDesc) {
  return guarded([&] { kiln::cudnn::destroy(filterDesc, "filterDesc"); });
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc,
                                         cudnnDataType_t dataType, cudnnTensorFormat_t format,
                                         int k, int c, int h, int w) {
  return guarded([&] {
    const int dims[] = {k, c, h, w};
    set(checked(filterDesc, "filterDesc"), dataType, format, 4, dims);
  });
}

cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc,
                                         cudnnDataType_t dataType, cudnnTensorFormat_t format,
                                         int nbDims, const int filterDimA[]) {
  return guarded(
      [&] { set(checked(filterDesc, "filterDesc"), dataType, format, nbDims, filterDimA); });
}

cudnnStatus_t cudnnGetFilter4dDescriptor(cudnnFilterDescriptor_t filterDesc,
                                         cudnnDataType_t* dataType, cudnnTensorFormat_t* format,
                                         int* k, int* c, int* h, int* w) {
  return guarded([&] {
    const Shape& shape = shape_of(filterDesc, "filterDesc");
    if (shape.rank != 4)
      kiln::fail(KILN_STATUS_BAD_PARAM, "filterDesc has ", shape.rank, " dimensions; expected 4");
    if (dataType != nullptr) *dataType = shape.type;
    if (format != nullptr) *format = shape.format;
    int* const dims[] = {k, c, h, w};
    for (int i = 0; i < 4; ++i)
      if (dims[i] != nullptr) *dims[i] = static_cast<int>(shape.dims[i]);
  });
}

cudnnStatus_t cudnnGetFilterNdDescriptor(cudnnFilterDescriptor_t filterDesc, int nbDimsRequested,
                                         cudnnDataType_t* dataType, cudnnTensorFormat_t* format,
                                         int* nbDims, int filterDimA[]) {
  return guarded([&] {
    const Shape& shape = shape_of(filterDesc, "filterDesc");
    if (dataType != nullptr) *dataType = shape.type;
    if (format != nullptr) *format = shape.format;
    if (nbDims != nullptr) *nbDims = shape.rank;
    for (int i = 0; i < shape.rank && i < nbDimsRequested; ++i)
      if (filterDimA != nullptr) filterDimA[i] = static_cast<int>(shape.dims[i]);
  });
}

cudnnStatus_t cudnnGetFilterSizeInBytes(cudnnFilterDescriptor_t filterDesc, size_t* size) {
  return kiln::cudnn::serve(
      kiln::cudnn::Function(cudnnGetFilterSizeInBytes),
      [&] {
        check_pointer(size, "size", "where to store the bytes");
        *size = kiln::cudnn::size_in_bytes(shape_of(filterDesc, "filterDesc"));
      },
      filterDesc, size);
}
