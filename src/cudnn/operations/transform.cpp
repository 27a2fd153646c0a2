// Transforms of tensors and filters between layouts.
#include <array>
#include <cstdint>

#include "core/hexadecimal.hpp"
#include "cudnn/descriptors/elements.hpp"
#include "cudnn/descriptors/types.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/handle.hpp"
#include "cudnn/library/status.hpp"

using kiln::api::checked;
using kiln::cudnn::context_of;
using kiln::cudnn::Function;
using kiln::cudnn::kiln_of;
using kiln::cudnn::KilnTensor;
using kiln::cudnn::must;
using kiln::cudnn::serve;
using kiln::cudnn::serve_writing;
using kiln::cudnn::Shape;
using kiln::cudnn::shape_of;
using kiln::cudnn::TransformFields;

namespace {

kilnHandle_t kiln_handle(cudnnHandle_t handle) { return context_of(handle).handle.get(); }

// Throws NOT_SUPPORTED for folding. Padding and changes of layout are served.
void check_served(const TransformFields& f) {
  for (std::uint32_t i = 0; i < f.rank; ++i) {
    if (f.fold[i] > 1)
      kiln::fail(KILN_STATUS_NOT_SUPPORTED, "foldA[", i, "] is ", f.fold[i],
                 "; expected 1, no folding");
    if (f.pad_before[i] < 0 || f.pad_after[i] < 0)
      kiln::fail(KILN_STATUS_NOT_SUPPORTED, "padding ", i, " is ", f.pad_before[i], " before and ",
                 f.pad_after[i], " after; expected at least 0");
  }
}

bool pads(const TransformFields& f) {
  for (std::uint32_t i = 0; i < f.rank; ++i)
    if (f.pad_before[i] != 0 || f.pad_after[i] != 0) return true;
  return false;
}

// Throws BAD_PARAM if the address of a tensor with elements is null or misaligned.
void check_address(const void* data, const Shape& shape, const char* name) {
  if (size_in_bytes(shape) == 0) return;
  kiln::api::check_pointer(data, name, "the address of a tensor");
  const std::size_t element = kiln::cudnn::bytes_of(shape.type);
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (address % element != 0)
    kiln::fail(KILN_STATUS_BAD_PARAM, name, " is at ", kiln::hexadecimal(address),
               "; expected a multiple of ", element);
}

// Checks everything that Kiln would refuse later: the destination is filled with zeros first, so a
// later failure would leave it changed.
void check_operands(const void* alpha, const Shape& source, const void* source_data,
                    const Shape& dest, const void* dest_data) {
  kiln::api::check_pointer(alpha, "alpha", "the address of a host value");
  check_address(source_data, source, "srcData");
  check_address(dest_data, dest, "destData");
  const auto from = reinterpret_cast<std::uintptr_t>(source_data);
  const auto to = reinterpret_cast<std::uintptr_t>(dest_data);
  if (from < to + size_in_bytes(dest) && to < from + size_in_bytes(source))
    kiln::fail(KILN_STATUS_BAD_PARAM,
               "srcData overlaps destData; expected tensors apart from each other");
}

std::int64_t padded(const TransformFields& f, const Shape& source, int i) {
  return source.dims[i] + f.pad_before[i] + f.pad_after[i];
}

// Without padding, dest = alpha * source + beta * dest. With padding, dest = alpha * source inside
// the padding, which is filled with zeros.
void transform(cudnnHandle_t handle, const TransformFields& f, const void* alpha,
               const Shape& source, const void* source_data, const void* beta, const Shape& dest,
               void* dest_data) {
  check_served(f);
  kiln::cudnn::check_served(source, "srcDesc");
  kiln::cudnn::check_served(dest, "destDesc");
  for (int i = 0; i < source.rank; ++i)
    if (source.rank != dest.rank || static_cast<int>(f.rank) != source.rank ||
        dest.dims[i] != padded(f, source, i))
      kiln::fail(KILN_STATUS_BAD_PARAM,
                 "destDesc does not have the sizes that cudnnInitTransformDest "
                 "gives; size ",
                 i, " is ", dest.dims[i]);
  const KilnTensor from, to, middle;
  const auto set = [](const KilnTensor& tensor, const Shape& shape, const std::int64_t* dims,
                      const char* name) {
    must(kilnSetTensorNdDescriptor(tensor.get(), kiln::cudnn::kiln_type(shape.type, name),
                                   shape.rank, dims, shape.strides.data()));
  };
  set(from, source, source.dims.data(), "srcDesc");
  set(to, dest, dest.dims.data(), "destDesc");
  if (!pads(f)) {
    must(kilnTransformTensor(kiln_handle(handle), alpha, from.get(), source_data, beta, to.get(),
                             dest_data));
    return;
  }
  const bool in_double = dest.type == CUDNN_DATA_DOUBLE || source.type == CUDNN_DATA_DOUBLE;
  if (kiln::cudnn::scalar(beta, in_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, "beta") != 0)
    kiln::fail(KILN_STATUS_NOT_SUPPORTED, "beta is not 0; expected 0 of a transform that pads");
  check_operands(alpha, source, source_data, dest, dest_data);
  static constexpr double zero = 0;  // its bytes are also a float's 0
  must(kilnSetTensor(kiln_handle(handle), to.get(), dest_data, &zero));
  set(middle, dest, source.dims.data(), "destDesc");
  std::int64_t offset = 0;
  for (int i = 0; i < dest.rank; ++i) offset += f.pad_before[i] * dest.strides[i];
  auto* const first = static_cast<std::byte*>(dest_data) +
                      static_cast<std::size_t>(offset) * kiln::cudnn::bytes_of(dest.type);
  must(kilnTransformTensor(kiln_handle(handle), alpha, from.get(), source_data, &zero, middle.get(),
                           first));
}

}  // namespace

cudnnStatus_t cudnnTransformTensor(cudnnHandle_t handle, const void* alpha,
                                   cudnnTensorDescriptor_t xDesc, const void* x, const void* beta,
                                   cudnnTensorDescriptor_t yDesc, void* y) {
  return serve(
      Function(cudnnTransformTensor),
      [&] {
        must(kilnTransformTensor(kiln_handle(handle), alpha, kiln_of(xDesc, "xDesc"), x, beta,
                                 kiln_of(yDesc, "yDesc"), y));
      },
      handle, alpha, xDesc, x, beta, yDesc, y);
}

cudnnStatus_t cudnnInitTransformDest(cudnnTensorTransformDescriptor_t transformDesc,
                                     cudnnTensorDescriptor_t srcDesc,
                                     cudnnTensorDescriptor_t destDesc, size_t* destSizeInBytes) {
  return serve_writing(
      {destDesc}, Function(cudnnInitTransformDest),
      [&] {
        const TransformFields& f = kiln::cudnn::fields_of(transformDesc);
        const Shape& source = shape_of(srcDesc, "srcDesc");
        cudnnTensorStruct& dest = checked(destDesc, "destDesc");
        check_served(f);
        if (static_cast<int>(f.rank) != source.rank)
          kiln::fail(KILN_STATUS_BAD_PARAM, "srcDesc has ", source.rank, " dimensions; expected ",
                     f.rank, ", those of transformDesc");
        std::array<int, CUDNN_DIM_MAX> dims{};
        for (int i = 0; i < source.rank; ++i) dims[i] = static_cast<int>(padded(f, source, i));
        const Shape shape =
            kiln::cudnn::dense_shape(f.format, source.type, source.rank, dims.data(), 0, "dimA");
        const std::size_t bytes = destSizeInBytes != nullptr ? size_in_bytes(shape) : 0;
        set(dest, shape);
        if (destSizeInBytes != nullptr) *destSizeInBytes = bytes;
      },
      transformDesc, srcDesc, destDesc, destSizeInBytes);
}

cudnnStatus_t cudnnTransformTensorEx(cudnnHandle_t handle,
                                     cudnnTensorTransformDescriptor_t transformDesc,
                                     const void* alpha, cudnnTensorDescriptor_t srcDesc,
                                     const void* srcData, const void* beta,
                                     cudnnTensorDescriptor_t destDesc, void* destData) {
  return serve(
      Function(cudnnTransformTensorEx),
      [&] {
        transform(handle, kiln::cudnn::fields_of(transformDesc), alpha,
                  shape_of(srcDesc, "srcDesc"), srcData, beta, shape_of(destDesc, "destDesc"),
                  destData);
      },
      handle, transformDesc, alpha, srcDesc, srcData, beta, destDesc, destData);
}

cudnnStatus_t cudnnTransformFilter(cudnnHandle_t handle,
                                   cudnnTensorTransformDescriptor_t transformDesc,
                                   const void* alpha, cudnnFilterDescriptor_t srcDesc,
                                   const void* srcData, const void* beta,
                                   cudnnFilterDescriptor_t destDesc, void* destData) {
  return serve(
      Function(cudnnTransformFilter),
      [&] {
        transform(handle, kiln::cudnn::fields_of(transformDesc), alpha,
                  shape_of(srcDesc, "srcDesc"), srcData, beta, shape_of(destDesc, "destDesc"),
                  destData);
      },
      handle, transformDesc, alpha, srcDesc, srcData, beta, destDesc, destData);
}
