// Pooling descriptors, and the sizes of what pooling gives.
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

void set(kilnPoolingStruct& target, kilnPoolingMode_t mode, kilnNanPropagation_t nan, int count,
         const int64_t* window, const int64_t* pad_before, const int64_t* pad_after,
         const int64_t* stride, const int64_t* dilation) {
  if (count < 1 || count > 3)
    kiln::fail(KILN_STATUS_BAD_PARAM, "arrayLength is ", count, "; expected 1, 2 or 3");
  check_pointer(window, "window", "an array of arrayLength values");
  check_pointer(pad_before, "padBefore", "an array of arrayLength values");
  check_pointer(stride, "stride", "an array of arrayLength values");
  kiln::PoolingSpec spec;
  spec.spatial = count;
  spec.mode = mode;
  spec.nan = nan;
  std::copy_n(window, count, spec.window.begin());
  std::copy_n(pad_before, count, spec.pad_before.begin());
  std::copy_n(pad_after != nullptr ? pad_after : pad_before, count, spec.pad_after.begin());
  std::copy_n(stride, count, spec.stride.begin());
  if (dilation != nullptr) std::copy_n(dilation, count, spec.dilation.begin());
  spec.ceil = target.spec.ceil;
  kiln::check_pooling(spec);
  target.spec = spec;
}

}  // namespace

kilnStatus_t kilnCreatePoolingDescriptor(kilnPoolingDescriptor_t* descriptor) {
  return create(descriptor, "descriptor");
}

kilnStatus_t kilnDestroyPoolingDescriptor(kilnPoolingDescriptor_t descriptor) {
  return destroy(descriptor, "descriptor");
}

kilnStatus_t kilnSetPoolingNdDescriptor(kilnPoolingDescriptor_t descriptor, kilnPoolingMode_t mode,
                                        kilnNanPropagation_t nanPropagation, int arrayLength,
                                        const int64_t window[], const int64_t padBefore[],
                                        const int64_t padAfter[], const int64_t stride[],
                                        const int64_t dilation[]) {
  return guarded([&] {
    set(checked(descriptor, "descriptor"), mode, nanPropagation, arrayLength, window, padBefore,
        padAfter, stride, dilation);
  });
}

kilnStatus_t kilnSetPooling2dDescriptor(kilnPoolingDescriptor_t descriptor, kilnPoolingMode_t mode,
                                        kilnNanPropagation_t nanPropagation, int64_t windowH,
                                        int64_t windowW, int64_t padH, int64_t padW,
                                        int64_t strideH, int64_t strideW) {
  return guarded([&] {
    auto& target = checked(descriptor, "descriptor");
    check_range("windowH", windowH, 1);
    check_range("windowW", windowW, 1);
    check_range("padH", padH, -kiln::most_of_field);
    check_range("padW", padW, -kiln::most_of_field);
    check_range("strideH", strideH, 1);
    check_range("strideW", strideW, 1);
    const int64_t window[] = {windowH, windowW}, pad[] = {padH, padW},
                  stride[] = {strideH, strideW};
    set(target, mode, nanPropagation, 2, window, pad, pad, stride, nullptr);
  });
}

kilnStatus_t kilnGetPoolingNdDescriptor(kilnPoolingDescriptor_t descriptor,
                                        int arrayLengthRequested, kilnPoolingMode_t* mode,
                                        kilnNanPropagation_t* nanPropagation, int* arrayLength,
                                        int64_t window[], int64_t padBefore[], int64_t padAfter[],
                                        int64_t stride[], int64_t dilation[]) {
  return guarded([&] {
    const kiln::PoolingSpec& spec = checked(descriptor, "descriptor").spec;
    check_at_least(0, arrayLengthRequested, "arrayLengthRequested");
    if (spec.spatial == 0)
      kiln::fail(KILN_STATUS_NOT_INITIALIZED,
                 "descriptor was created but never set; expected window, padding and stride");
    const auto copy = [&](const kiln::Spatial& from, int64_t* to) {
      if (to != nullptr)
        std::copy_n(from.begin(), std::min(arrayLengthRequested, spec.spatial), to);
    };
    copy(spec.window, window);
    copy(spec.pad_before, padBefore);
    copy(spec.pad_after, padAfter);
    copy(spec.stride, stride);
    copy(spec.dilation, dilation);
    if (arrayLength != nullptr) *arrayLength = spec.spatial;
    if (mode != nullptr) *mode = spec.mode;
    if (nanPropagation != nullptr) *nanPropagation = spec.nan;
  });
}

kilnStatus_t kilnSetPoolingCeilMode(kilnPoolingDescriptor_t descriptor, int ceilMode) {
  return guarded([&] {
    auto& target = checked(descriptor, "descriptor");
    if (ceilMode != 0 && ceilMode != 1)
      kiln::fail(KILN_STATUS_BAD_PARAM, "ceilMode is ", ceilMode,
                 "; expected 0 (sizes rounded down) or 1 (up)");
    target.spec.ceil = ceilMode == 1;
  });
}

kilnStatus_t kilnGetPoolingCeilMode(kilnPoolingDescriptor_t descriptor, int* ceilMode) {
  return guarded([&] {
    const bool ceil = checked(descriptor, "descriptor").spec.ceil;
    check_pointer(ceilMode, "ceilMode", "where to store it");
    *ceilMode = ceil ? 1 : 0;
  });
}

kilnStatus_t kilnGetPoolingForwardOutputDim(kilnPoolingDescriptor_t poolingDesc,
                                            kilnTensorDescriptor_t xDesc, int nbDims,
                                            int64_t dims[]) {
  return guarded([&] {
    const kiln::Tensor& x = checked(xDesc, "xDesc").tensor;
    const kiln::TensorDims sizes =
        kiln::pooling_output_dims(checked(poolingDesc, "poolingDesc").spec, x);
    if (nbDims != x.rank)
      kiln::fail(KILN_STATUS_BAD_PARAM, "nbDims is ", nbDims, "; expected ", x.rank,
                 ", as xDesc has");
    check_pointer(dims, "dims", "an array of nbDims sizes");
    std::copy_n(sizes.begin(), nbDims, dims);
  });
}
