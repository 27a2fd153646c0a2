#include "cudnn/descriptors/convolution.hpp"

#include <algorithm>
#include <memory>

#include "cudnn/descriptors/give.hpp"
#include "cudnn/descriptors/types.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/status.hpp"

using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::cudnn::ConvolutionFields;
using kiln::cudnn::give;
using kiln::cudnn::guarded;
using kiln::cudnn::kiln_of;
using kiln::cudnn::set_before;

namespace kiln::cudnn {
namespace {

// Sets the geometry from fields whose type Kiln computes with.
void set_geometry(const KilnConvolution& to, const ConvolutionFields& f) {
  std::int64_t pad[most_spatial], stride[most_spatial], dilation[most_spatial];
  std::ranges::copy(f.pad, pad);
  std::ranges::copy(f.stride, stride);
  std::ranges::copy(f.dilation, dilation);
  must(kilnSetConvolutionNdDescriptor(to.get(), f.rank, pad, nullptr, stride, dilation,
                                      kiln_mode(f.mode),
                                      kiln_compute_type(f.compute_type, "computeType")));
}

}  // namespace

void set(const KilnConvolution& to, const ConvolutionFields& f) {
  set_geometry(to, f);
  must(kilnSetConvolutionGroupCount(to.get(), f.groups));
  must(kilnSetConvolutionMathMode(to.get(), kiln_math(f.math)));
}

const cudnnConvolutionStruct& set_before(cudnnConvolutionDescriptor_t descriptor) {
  const cudnnConvolutionStruct& object = checked(descriptor, "convDesc");
  if (object.fields.rank == 0)
    fail(KILN_STATUS_BAD_PARAM,
         "convDesc was never set; expected padding, strides, dilations, mode and type");
  return object;
}

kilnConvolutionDescriptor_t kiln_of(cudnnConvolutionDescriptor_t descriptor) {
  const cudnnConvolutionStruct& object = set_before(descriptor);
  kiln_compute_type(object.fields.compute_type, "convDesc's computeType");
  return object.kiln.get();
}

namespace {

void describe(cudnnConvolutionDescriptor_t descriptor, int rank, const int* pad, const int* stride,
              const int* dilation, cudnnConvolutionMode_t mode, cudnnDataType_t compute_type) {
  cudnnConvolutionStruct& object = checked(descriptor, "convDesc");
  check_pointer(pad, "padA", "an array of arrayLength paddings");
  check_pointer(stride, "filterStrideA", "an array of arrayLength strides");
  check_pointer(dilation, "dilationA", "an array of arrayLength dilations");
  if (rank < 1 || rank > CUDNN_DIM_MAX - 2)
    fail(KILN_STATUS_BAD_PARAM, "arrayLength is ", rank, "; expected 1 to ", CUDNN_DIM_MAX - 2);
  if (rank > most_spatial)
    fail(KILN_STATUS_NOT_SUPPORTED, "arrayLength is ", rank, "; expected 1 to ", most_spatial);
  ConvolutionFields fields = object.fields;
  fields.rank = rank;
  fields.pad = fields.stride = fields.dilation = {};
  for (int i = 0; i < rank; ++i) {
    if (pad[i] < 0)
      fail(KILN_STATUS_BAD_PARAM, "padA[", i, "] is ", pad[i], "; expected at least 0");
    fields.pad[i] = pad[i];
    fields.stride[i] = stride[i];
    fields.dilation[i] = dilation[i];
  }
  fields.mode = mode;
  fields.compute_type = compute_type;
  kiln_mode(mode);
  name_of(compute_type);
  if (computes_with(compute_type)) set_geometry(object.kiln, fields);
  object.fields = fields;
  renew(object.twin);
}

}  // namespace
}  // namespace kiln::cudnn

cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* convDesc) {
  return guarded([&] {
    check_pointer(convDesc, "convDesc", "where to store the new descriptor");
    *convDesc = nullptr;
    auto object = std::make_unique<cudnnConvolutionStruct>();
    kiln::cudnn::must(kilnSetConvolutionMathMode(object->kiln.get(),
                                                 kiln::cudnn::kiln_math(object->fields.math)));
    *convDesc = object.release();
  });
}

cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t convDesc) {
  return guarded([&] { kiln::cudnn::destroy(convDesc, "convDesc"); });
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convDesc, int pad_h,
                                              int pad_w, int u, int v, int dilation_h,
                                              int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t computeType) {
  return guarded([&] {
    const int pad[] = {pad_h, pad_w}, stride[] = {u, v}, dilation[] = {dilation_h, dilation_w};
    kiln::cudnn::describe(convDesc, 2, pad, stride, dilation, mode, computeType);
  });
}

cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convDesc,
                                              int arrayLength, const int padA[],
                                              const int filterStrideA[], const int dilationA[],
                                              cudnnConvolutionMode_t mode,
                                              cudnnDataType_t computeType) {
  return guarded([&] {
    kiln::cudnn::describe(convDesc, arrayLength, padA, filterStrideA, dilationA, mode, computeType);
  });
}

cudnnStatus_t cudnnGetConvolution2dDescriptor(cudnnConvolutionDescriptor_t convDesc, int* pad_h,
                                              int* pad_w, int* u, int* v, int* dilation_h,
                                              int* dilation_w, cudnnConvolutionMode_t* mode,
                                              cudnnDataType_t* computeType) {
  return guarded([&] {
    const ConvolutionFields& f = set_before(convDesc).fields;
    if (f.rank != 2)
      kiln::fail(KILN_STATUS_BAD_PARAM, "convDesc has ", f.rank, " spatial dimensions; expected 2");
    give(f.pad[0], pad_h);
    give(f.pad[1], pad_w);
    give(f.stride[0], u);
    give(f.stride[1], v);
    give(f.dilation[0], dilation_h);
    give(f.dilation[1], dilation_w);
    give(f.mode, mode);
    give(f.compute_type, computeType);
  });
}

cudnnStatus_t cudnnGetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t convDesc,
                                              int arrayLengthRequested, int* arrayLength,
                                              int padA[], int strideA[], int dilationA[],
                                              cudnnConvolutionMode_t* mode,
                                              cudnnDataType_t* computeType) {
  return guarded([&] {
    const ConvolutionFields& f = set_before(convDesc).fields;
    give(f.rank, arrayLength);
    for (int i = 0; i < f.rank && i < arrayLengthRequested; ++i) {
      if (padA != nullptr) padA[i] = f.pad[i];
      if (strideA != nullptr) strideA[i] = f.stride[i];
      if (dilationA != nullptr) dilationA[i] = f.dilation[i];
    }
    give(f.mode, mode);
    give(f.compute_type, computeType);
  });
}

cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc, int groupCount) {
  return guarded([&] {
    cudnnConvolutionStruct& object = checked(convDesc, "convDesc");
    kiln::cudnn::must(kilnSetConvolutionGroupCount(object.kiln.get(), groupCount));
    object.fields.groups = groupCount;
    renew(object.twin);
  });
}

cudnnStatus_t cudnnGetConvolutionGroupCount(cudnnConvolutionDescriptor_t convDesc,
                                            int* groupCount) {
  return guarded([&] { give(checked(convDesc, "convDesc").fields.groups, groupCount); });
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc,
                                          cudnnMathType_t mathType) {
  return guarded([&] {
    cudnnConvolutionStruct& object = checked(convDesc, "convDesc");
    kiln::cudnn::must(
        kilnSetConvolutionMathMode(object.kiln.get(), kiln::cudnn::kiln_math(mathType)));
    object.fields.math = mathType;
    renew(object.twin);
  });
}

cudnnStatus_t cudnnGetConvolutionMathType(cudnnConvolutionDescriptor_t convDesc,
                                          cudnnMathType_t* mathType) {
  return guarded([&] { give(checked(convDesc, "convDesc").fields.math, mathType); });
}

// Kiln does not reorder filters, so both values are accepted and have no effect.
cudnnStatus_t cudnnSetConvolutionReorderType(cudnnConvolutionDescriptor_t convDesc,
                                             cudnnReorderType_t reorderType) {
  return guarded([&] {
    if (reorderType != CUDNN_DEFAULT_REORDER && reorderType != CUDNN_NO_REORDER)
      kiln::fail(KILN_STATUS_BAD_PARAM, "reorderType is ", static_cast<int>(reorderType),
                 "; expected CUDNN_DEFAULT_REORDER or CUDNN_NO_REORDER");
    cudnnConvolutionStruct& object = checked(convDesc, "convDesc");
    object.fields.reorder = reorderType;
    renew(object.twin);
  });
}

cudnnStatus_t cudnnGetConvolutionReorderType(cudnnConvolutionDescriptor_t convDesc,
                                             cudnnReorderType_t* reorderType) {
  return guarded([&] { give(checked(convDesc, "convDesc").fields.reorder, reorderType); });
}

cudnnStatus_t cudnnGetConvolution2dForwardOutputDim(cudnnConvolutionDescriptor_t convDesc,
                                                    cudnnTensorDescriptor_t inputTensorDesc,
                                                    cudnnFilterDescriptor_t filterDesc, int* n,
                                                    int* c, int* h, int* w) {
  int dims[4] = {};
  const cudnnStatus_t status =
      cudnnGetConvolutionNdForwardOutputDim(convDesc, inputTensorDesc, filterDesc, 4, dims);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  give(dims[0], n);
  give(dims[1], c);
  give(dims[2], h);
  give(dims[3], w);
  return status;
}

cudnnStatus_t cudnnGetConvolutionNdForwardOutputDim(cudnnConvolutionDescriptor_t convDesc,
                                                    cudnnTensorDescriptor_t inputTensorDesc,
                                                    cudnnFilterDescriptor_t filterDesc, int nbDims,
                                                    int tensorOutputDimA[]) {
  return kiln::cudnn::serve(
      kiln::cudnn::Function(cudnnGetConvolutionNdForwardOutputDim),
      [&] {
        check_pointer(tensorOutputDimA, "tensorOutputDimA", "where to store nbDims sizes");
        std::int64_t dims[CUDNN_DIM_MAX] = {};
        kiln::cudnn::must(kilnGetConvolutionForwardOutputDim(
            kiln_of(convDesc), kiln_of(inputTensorDesc, "inputTensorDesc"),
            kiln_of(filterDesc, "filterDesc"), nbDims, dims));
        kiln::cudnn::give_sizes({dims, static_cast<std::size_t>(nbDims)}, tensorOutputDimA);
      },
      convDesc, inputTensorDesc, filterDesc, nbDims, tensorOutputDimA);
}
