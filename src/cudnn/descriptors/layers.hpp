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
  std::int32_t rank = 0;  // dimensions of space; 0: never set
  cudnnPoolingMode_t mode = CUDNN_POOLING_MAX;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
};

// No padding bytes between the values, as in Shape.
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
  // Kiln descriptors whose sizes of y are rounded down and up; the size of y decides which one is
  // used.
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

// Its Kiln descriptor. Throws BAD_PARAM if it was never set, and NOT_SUPPORTED for SWISH with a
// beta other than 1.
kilnActivationDescriptor_t kiln_of(cudnnActivationDescriptor_t descriptor);

// The object. Throws BAD_PARAM if it is null or was never set.
const cudnnPoolingStruct& set_before(cudnnPoolingDescriptor_t descriptor);
const cudnnActivationStruct& set_before(cudnnActivationDescriptor_t descriptor);

}  // namespace kiln::cudnn
