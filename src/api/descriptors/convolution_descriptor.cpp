// Convolution descriptors, and the sizes of what a convolution gives.
#include <algorithm>

#include "api/api.hpp"

using kiln::api::check_at_least;
using kiln::api::check_pointer;
using kiln::api::check_range;
using kiln::api::checked;
using kiln::api::create;
using kiln::api::destroy;
using kiln::api::guarded;

namespace {

// Groups, the math mode and the alignment are set on their own, before or after everything else.
void set(kilnConvolutionStruct& target, int count, const int64_t* pad_before,
         const int64_t* pad_after, const int64_t* stride, const int64_t* dilation,
         kilnConvolutionMode_t mode, kilnDataType_t compute_type) {
  if (count < 1 || count > 3) {
    kiln::fail(KILN_STATUS_BAD_PARAM, "arrayLength is ", count, "; expected 1, 2 or 3");
  }
  check_pointer(pad_before, "padBefore", "an array of arrayLength values");
  check_pointer(stride, "stride", "an array of arrayLength values");
  check_pointer(dilation, "dilation", "an array of arrayLength values");
  kiln::ConvolutionSpec spec;
  spec.spatial = count;
  std::copy_n(pad_before, count, spec.pad_before.begin());
  std::copy_n(pad_after != nullptr ? pad_after : pad_before, count, spec.pad_after.begin());
  std::copy_n(stride, count, spec.stride.begin());
  std::copy_n(dilation, count, spec.dilation.begin());
  spec.groups = target.spec.groups;
  spec.math = target.spec.math;
  spec.alignment = target.spec.alignment;
  spec.mode = mode;
  spec.compute_type = compute_type;
  kiln::check_convolution(spec);
  target.spec = spec;
}

kiln::TensorDims output_dims(kilnConvolutionDescriptor_t convolution, kilnTensorDescriptor_t x,
                             kilnFilterDescriptor_t w, int rank) {
  const kiln::ConvolutionSpec& spec = checked(convolution, "convDesc").spec;
  const kiln::Tensor& x_tensor = checked(x, "xDesc").tensor;
  const kiln::TensorDims dims =
      kiln::forward_output_dims(spec, x_tensor, checked(w, "wDesc").tensor);
  if (rank != x_tensor.rank) {
    kiln::fail(KILN_STATUS_BAD_PARAM, "nbDims is ", rank, "; expected ", x_tensor.rank,
               ", as xDesc has");
  }
  return dims;
}

}  // namespace

kilnStatus_t kilnCreateConvolutionDescriptor(kilnConvolutionDescriptor_t* descriptor) {
  return create(descriptor, "descriptor");
}

kilnStatus_t kilnDestroyConvolutionDescriptor(kilnConvolutionDescriptor_t descriptor) {
  return destroy(descriptor, "descriptor");
}

kilnStatus_t kilnSetConvolutionNdDescriptor(kilnConvolutionDescriptor_t descriptor, int arrayLength,
                                            const int64_t padBefore[], const int64_t padAfter[],
                                            const int64_t stride[], const int64_t dilation[],
                                            kilnConvolutionMode_t mode,
                                            kilnDataType_t computeType) {
  return guarded([&] {
    set(checked(descriptor, "descriptor"), arrayLength, padBefore, padAfter, stride, dilation, mode,
        computeType);
  });
}

kilnStatus_t kilnSetConvolution2dDescriptor(kilnConvolutionDescriptor_t descriptor, int64_t padH,
                                            int64_t padW, int64_t strideH, int64_t strideW,
                                            int64_t dilationH, int64_t dilationW,
                                            kilnConvolutionMode_t mode,
                                            kilnDataType_t computeType) {
  return guarded([&] {
    auto& target = checked(descriptor, "descriptor");
    check_range("padH", padH, -kiln::most_of_field);
    check_range("padW", padW, -kiln::most_of_field);
    check_range("strideH", strideH, 1);
    check_range("strideW", strideW, 1);
    check_range("dilationH", dilationH, 1);
    check_range("dilationW", dilationW, 1);
    const int64_t pad[] = {padH, padW}, stride[] = {strideH, strideW},
                  dilation[] = {dilationH, dilationW};
    set(target, 2, pad, pad, stride, dilation, mode, computeType);
  });
}

kilnStatus_t kilnGetConvolutionNdDescriptor(kilnConvolutionDescriptor_t descriptor,
                                            int arrayLengthRequested, int* arrayLength,
                                            int64_t padBefore[], int64_t padAfter[],
                                            int64_t stride[], int64_t dilation[],
                                            kilnConvolutionMode_t* mode,
                                            kilnDataType_t* computeType) {
  return guarded([&] {
    const kiln::ConvolutionSpec& spec = checked(descriptor, "descriptor").spec;
    check_at_least(0, arrayLengthRequested, "arrayLengthRequested");
    if (spec.spatial == 0) {
      kiln::fail(KILN_STATUS_NOT_INITIALIZED,
                 "descriptor was created but never set; expected padding, stride and dilation");
    }
    const auto copy = [&](const kiln::Spatial& from, int64_t* to) {
      if (to != nullptr) {
        std::copy_n(from.begin(), std::min(arrayLengthRequested, spec.spatial), to);
      }
    };
    copy(spec.pad_before, padBefore);
    copy(spec.pad_after, padAfter);
    copy(spec.stride, stride);
    copy(spec.dilation, dilation);
    if (arrayLength != nullptr) *arrayLength = spec.spatial;
    if (mode != nullptr) *mode = spec.mode;
    if (computeType != nullptr) *computeType = spec.compute_type;
  });
}

kilnStatus_t kilnSetConvolutionGroupCount(kilnConvolutionDescriptor_t descriptor,
                                          int64_t groupCount) {
  return guarded([&] {
    auto& target = checked(descriptor, "descriptor");
    check_at_least(1, groupCount, "groupCount");
    target.spec.groups = groupCount;
  });
}

kilnStatus_t kilnGetConvolutionGroupCount(kilnConvolutionDescriptor_t descriptor,
                                          int64_t* groupCount) {
  return guarded([&] {
    auto& source = checked(descriptor, "descriptor");
    check_pointer(groupCount, "groupCount", "where to store the count");
    *groupCount = source.spec.groups;
  });
}

kilnStatus_t kilnSetConvolutionMathMode(kilnConvolutionDescriptor_t descriptor,
                                        kilnMathMode_t mathMode) {
  return guarded([&] {
    auto& target = checked(descriptor, "descriptor");
    kiln::check_math(mathMode);
    target.spec.math = mathMode;
  });
}

kilnStatus_t kilnGetConvolutionMathMode(kilnConvolutionDescriptor_t descriptor,
                                        kilnMathMode_t* mathMode) {
  return guarded([&] {
    auto& source = checked(descriptor, "descriptor");
    check_pointer(mathMode, "mathMode", "where to store the mode");
    *mathMode = source.spec.math;
  });
}

kilnStatus_t kilnSetConvolutionAlignment(kilnConvolutionDescriptor_t descriptor,
                                         int64_t alignment) {
  return guarded([&] {
    auto& target = checked(descriptor, "descriptor");
    kiln::check_alignment(alignment);
    target.spec.alignment = alignment;
  });
}

kilnStatus_t kilnGetConvolutionAlignment(kilnConvolutionDescriptor_t descriptor,
                                         int64_t* alignment) {
  return guarded([&] {
    auto& source = checked(descriptor, "descriptor");
    check_pointer(alignment, "alignment", "where to store the alignment");
    *alignment = source.spec.alignment;
  });
}

kilnStatus_t kilnGetConvolutionForwardOutputDim(kilnConvolutionDescriptor_t convDesc,
                                                kilnTensorDescriptor_t xDesc,
                                                kilnFilterDescriptor_t wDesc, int nbDims,
                                                int64_t dims[]) {
  return guarded([&] {
    const kiln::TensorDims sizes = output_dims(convDesc, xDesc, wDesc, nbDims);
    check_pointer(dims, "dims", "an array of nbDims sizes");
    std::copy_n(sizes.begin(), nbDims, dims);
  });
}

kilnStatus_t kilnGetConvolution2dForwardOutputDim(kilnConvolutionDescriptor_t convDesc,
                                                  kilnTensorDescriptor_t xDesc,
                                                  kilnFilterDescriptor_t wDesc, int64_t* n,
                                                  int64_t* k, int64_t* p, int64_t* q) {
  return guarded([&] {
    const kiln::Tensor& x = checked(xDesc, "xDesc").tensor;
    if (x.rank != 0 && x.rank != 4) {
      kiln::fail(KILN_STATUS_BAD_PARAM, "xDesc has ", x.rank,
                 " dimensions; expected 4, for a convolution in two dimensions of space");
    }
    const kiln::TensorDims sizes = output_dims(convDesc, xDesc, wDesc, 4);
    check_pointer(n, "n", "where to store the size");
    check_pointer(k, "k", "where to store the size");
    check_pointer(p, "p", "where to store the size");
    check_pointer(q, "q", "where to store the size");
    *n = sizes[0];
    *k = sizes[1];
    *p = sizes[2];
    *q = sizes[3];
  });
}

kilnStatus_t kilnGetConvolutionTransposedOutputDim(kilnConvolutionDescriptor_t convDesc,
                                                   kilnTensorDescriptor_t xDesc,
                                                   kilnFilterDescriptor_t wDesc,
                                                   const int64_t outputPadding[], int nbDims,
                                                   int64_t dims[]) {
  return guarded([&] {
    const kiln::Tensor& x = checked(xDesc, "xDesc").tensor;
    const kiln::TensorDims sizes = kiln::transposed_output_dims(
        checked(convDesc, "convDesc").spec, x, checked(wDesc, "wDesc").tensor, outputPadding);
    if (nbDims != x.rank) {
      kiln::fail(KILN_STATUS_BAD_PARAM, "nbDims is ", nbDims, "; expected ", x.rank,
                 ", as xDesc has");
    }
    check_pointer(dims, "dims", "an array of nbDims sizes");
    std::copy_n(sizes.begin(), nbDims, dims);
  });
}
