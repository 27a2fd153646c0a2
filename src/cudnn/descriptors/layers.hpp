// Descriptors of pooling and activation.
#pragma once

#include "cudnn/descriptors/tensor.hpp"

namespace kiln::cudnn {

using KilnPooling =
    Object<kilnPoolingDescriptor_t, kilnCreatePoolingDescriptor, kilnDestroyPoolingDescriptor>;
using KilnActivation = Object<kilnActivationDescriptor_t, kilnCreateActivationDescriptor,
                              kilnDestroyActivationDescriptor>;

struct PoolingFields {
  std::array<std::int32_t, 3> window{}, pad{}, stride{};
  std::int32_t rank = 0;  // of space; 0: never set
  cudnnPoolingMode_t mode = CUDNN_POOLING_MAX;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
};

// No padding between the values, as Shape.
struct ActivationFields {
  double coef = 0, swish_beta = 1;
  cudnnActivationMode_t mode = CUDNN_ACTIVATION_RELU;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  std::int32_t is_set = 0;
  std::int32_t has_swish_beta = 0;
};

}  // namespace kiln::cudnn

struct cudnnPoolingStruct {
  static constexpr auto kind = "a pooling descriptor", creator = "cudnnCreatePoolingDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b636405;
  kiln::api::Mark mark{mark_value};
  kiln::cudnn::PoolingFields fields;
  // The sizes of y are rounded down; a program that says sizes rounded up gets the other.
  kiln::cudnn::KilnPooling rounding_down, rounding_up;
  kiln::cudnn::Twin<cudnnPoolingDescriptor_t> twin;
};

struct cudnnActivationStruct {
  static constexpr auto kind = "an activation descriptor",
                        creator = "cudnnCreateActivationDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b636406;
  kiln::api::Mark mark{mark_value};
  kiln::cudnn::ActivationFields fields;
  kiln::cudnn::KilnActivation kiln;
  kiln::cudnn::Twin<cudnnActivationDescriptor_t> twin;
};

namespace kiln::cudnn {

// Kiln's own. Throws BAD_PARAM if it was never set, NOT_SUPPORTED of SWISH with a beta but 1.
kilnActivationDescriptor_t kiln_of(cudnnActivationDescriptor_t descriptor);

// The object that was set before. Throws BAD_PARAM.
const cudnnPoolingStruct& set_before(cudnnPoolingDescriptor_t descriptor);
const cudnnActivationStruct& set_before(cudnnActivationDescriptor_t descriptor);

}  // namespace kiln::cudnn
