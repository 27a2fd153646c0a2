#include <algorithm>

#include "cudnn/descriptors/give.hpp"
#include "cudnn/descriptors/layers.hpp"
#include "cudnn/descriptors/types.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/status.hpp"

using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::cudnn::give;
using kiln::cudnn::guarded;
using kiln::cudnn::PoolingFields;
using kiln::cudnn::set_before;

namespace kiln::cudnn {

const cudnnPoolingStruct& set_before(cudnnPoolingDescriptor_t descriptor) {
  const cudnnPoolingStruct& object = checked(descriptor, "poolingDesc");
  if (object.fields.rank == 0)
    fail(KILN_STATUS_BAD_PARAM, "poolingDesc was never set; expected mode, window and strides");
  return object;
}

namespace {

kilnPoolingMode_t kiln_mode(cudnnPoolingMode_t mode) {
  switch (mode) {
    case CUDNN_POOLING_MAX:
    case CUDNN_POOLING_MAX_DETERMINISTIC: return KILN_POOLING_MAX;
    case CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING:
      return KILN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING;
    case CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING:
      return KILN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING;
  }
  fail(KILN_STATUS_BAD_PARAM, "mode is ", static_cast<int>(mode),
       "; expected a cudnnPoolingMode_t, 0 to 3");
}

void set_pooling(cudnnPoolingDescriptor_t descriptor, cudnnPoolingMode_t mode,
                 cudnnNanPropagation_t nan, int rank, const int* window, const int* pad,
                 const int* stride) {
  cudnnPoolingStruct& object = checked(descriptor, "poolingDesc");
  check_pointer(window, "windowDimA", "an array of nbDims windows");
  check_pointer(pad, "paddingA", "an array of nbDims paddings");
  check_pointer(stride, "strideA", "an array of nbDims strides");
  constexpr int most = 3;
  if (rank < 1 || rank > most)
    fail(rank < 1 || rank > CUDNN_DIM_MAX - 2 ? KILN_STATUS_BAD_PARAM : KILN_STATUS_NOT_SUPPORTED,
         "nbDims is ", rank, "; expected 1 to ", most);
  PoolingFields fields;
  fields.rank = rank;
  fields.mode = mode;
  fields.nan = nan;
  std::int64_t windows[most] = {}, pads[most] = {}, strides[most] = {};
  for (int i = 0; i < rank; ++i) {
    if (pad[i] < 0)
      fail(KILN_STATUS_BAD_PARAM, "paddingA[", i, "] is ", pad[i], "; expected at least 0");
    windows[i] = fields.window[i] = window[i];
    pads[i] = fields.pad[i] = pad[i];
    strides[i] = fields.stride[i] = stride[i];
  }
  const auto set_kiln = [&](const KilnPooling& to, int rounding_up) {
    must(kilnSetPoolingNdDescriptor(to.get(), kiln_mode(mode), kiln_nan(nan, "maxpoolingNanOpt"),
                                    rank, windows, pads, nullptr, strides, nullptr));
    must(kilnSetPoolingCeilMode(to.get(), rounding_up));
  };
  set_kiln(object.rounding_down, 0);
  set_kiln(object.rounding_up, 1);
  object.fields = fields;
  renew(object.twin);
}

}  // namespace
}  // namespace kiln::cudnn

cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* poolingDesc) {
  return guarded([&] {
    check_pointer(poolingDesc, "poolingDesc", "where to store the new descriptor");
    *poolingDesc = nullptr;
    *poolingDesc = new cudnnPoolingStruct;
  });
}

cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t poolingDesc) {
  return guarded([&] { kiln::cudnn::destroy(poolingDesc, "poolingDesc"); });
}

cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                                          cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t maxpoolingNanOpt, int windowHeight,
                                          int windowWidth, int verticalPadding,
                                          int horizontalPadding, int verticalStride,
                                          int horizontalStride) {
  return guarded([&] {
    const int window[] = {windowHeight, windowWidth}, pad[] = {verticalPadding, horizontalPadding},
              stride[] = {verticalStride, horizontalStride};
    kiln::cudnn::set_pooling(poolingDesc, mode, maxpoolingNanOpt, 2, window, pad, stride);
  });
}

cudnnStatus_t cudnnSetPoolingNdDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                                          cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t maxpoolingNanOpt, int nbDims,
                                          const int windowDimA[], const int paddingA[],
                                          const int strideA[]) {
  return guarded([&] {
    kiln::cudnn::set_pooling(poolingDesc, mode, maxpoolingNanOpt, nbDims, windowDimA, paddingA,
                             strideA);
  });
}

cudnnStatus_t cudnnGetPooling2dDescriptor(cudnnPoolingDescriptor_t poolingDesc,
                                          cudnnPoolingMode_t* mode,
                                          cudnnNanPropagation_t* maxpoolingNanOpt,
                                          int* windowHeight, int* windowWidth, int* verticalPadding,
                                          int* horizontalPadding, int* verticalStride,
                                          int* horizontalStride) {
  return guarded([&] {
    const PoolingFields& f = set_before(poolingDesc).fields;
    if (f.rank != 2)
      kiln::fail(KILN_STATUS_BAD_PARAM, "poolingDesc has ", f.rank,
                 " spatial dimensions; expected 2");
    give(f.mode, mode);
    give(f.nan, maxpoolingNanOpt);
    give(f.window[0], windowHeight);
    give(f.window[1], windowWidth);
    give(f.pad[0], verticalPadding);
    give(f.pad[1], horizontalPadding);
    give(f.stride[0], verticalStride);
    give(f.stride[1], horizontalStride);
  });
}

cudnnStatus_t cudnnGetPoolingNdDescriptor(cudnnPoolingDescriptor_t poolingDesc, int nbDimsRequested,
                                          cudnnPoolingMode_t* mode,
                                          cudnnNanPropagation_t* maxpoolingNanOpt, int* nbDims,
                                          int windowDimA[], int paddingA[], int strideA[]) {
  return guarded([&] {
    const PoolingFields& f = set_before(poolingDesc).fields;
    give(f.mode, mode);
    give(f.nan, maxpoolingNanOpt);
    give(f.rank, nbDims);
    for (int i = 0; i < f.rank && i < nbDimsRequested; ++i) {
      if (windowDimA != nullptr) windowDimA[i] = f.window[i];
      if (paddingA != nullptr) paddingA[i] = f.pad[i];
      if (strideA != nullptr) strideA[i] = f.stride[i];
    }
  });
}

cudnnStatus_t cudnnGetPooling2dForwardOutputDim(cudnnPoolingDescriptor_t poolingDesc,
                                                cudnnTensorDescriptor_t inputTensorDesc, int* n,
                                                int* c, int* h, int* w) {
  int dims[4] = {};
  const cudnnStatus_t status =
      cudnnGetPoolingNdForwardOutputDim(poolingDesc, inputTensorDesc, 4, dims);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  give(dims[0], n);
  give(dims[1], c);
  give(dims[2], h);
  give(dims[3], w);
  return status;
}

cudnnStatus_t cudnnGetPoolingNdForwardOutputDim(cudnnPoolingDescriptor_t poolingDesc,
                                                cudnnTensorDescriptor_t inputTensorDesc, int nbDims,
                                                int outputTensorDimA[]) {
  return kiln::cudnn::serve(
      kiln::cudnn::Function(cudnnGetPoolingNdForwardOutputDim),
      [&] {
        check_pointer(outputTensorDimA, "outputTensorDimA", "where to store nbDims sizes");
        std::int64_t dims[CUDNN_DIM_MAX] = {};
        kiln::cudnn::must(kilnGetPoolingForwardOutputDim(
            set_before(poolingDesc).rounding_down.get(),
            kiln::cudnn::kiln_of(inputTensorDesc, "inputTensorDesc"), nbDims, dims));
        kiln::cudnn::give_sizes({dims, static_cast<std::size_t>(nbDims)}, outputTensorDimA);
      },
      poolingDesc, inputTensorDesc, nbDims, outputTensorDimA);
}
