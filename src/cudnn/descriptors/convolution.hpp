// Convolution descriptors.
#pragma once

#include "cudnn/descriptors/tensor.hpp"

namespace kiln::cudnn {

using KilnConvolution = Object<kilnConvolutionDescriptor_t, kilnCreateConvolutionDescriptor,
                               kilnDestroyConvolutionDescriptor>;

inline constexpr int most_spatial = 3;

// What the program set. No padding bytes between the values, as in Shape.
struct ConvolutionFields {
  std::array<std::int32_t, most_spatial> pad{}, stride{}, dilation{};
  std::int32_t rank = 0;  // dimensions of space; 0: never set
  cudnnConvolutionMode_t mode = CUDNN_CONVOLUTION;
  cudnnDataType_t compute_type = CUDNN_DATA_FLOAT;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  std::int32_t groups = 1;
  cudnnReorderType_t reorder = CUDNN_DEFAULT_REORDER;
};

}  // namespace kiln::cudnn

struct cudnnConvolutionStruct {
  static constexpr auto kind = "a convolution descriptor",
                        creator = "cudnnCreateConvolutionDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b636404;
  kiln::api::Mark mark{mark_value};
  kiln::cudnn::ConvolutionFields fields;
  kiln::cudnn::KilnConvolution kiln;  // set if Kiln computes with the type
  kiln::cudnn::Twin<cudnnConvolutionDescriptor_t> twin;
};

namespace kiln::cudnn {

// Sets a Kiln descriptor from the fields.
void set(const KilnConvolution& to, const ConvolutionFields& fields);

// The descriptor. Throws BAD_PARAM if it is null or was never set.
const cudnnConvolutionStruct& set_before(cudnnConvolutionDescriptor_t descriptor);

// Its Kiln descriptor. Throws as set_before(), and NOT_SUPPORTED if Kiln does not compute with the
// type.
kilnConvolutionDescriptor_t kiln_of(cudnnConvolutionDescriptor_t descriptor);

}  // namespace kiln::cudnn
