// Descriptors of operations on elements, reductions and transforms.
#pragma once

#include "cudnn/descriptors/tensor.hpp"

namespace kiln::cudnn {

struct OpTensorFields {
  cudnnOpTensorOp_t op = CUDNN_OP_TENSOR_ADD;
  cudnnDataType_t compute_type = CUDNN_DATA_FLOAT;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  bool is_set = false;
};

struct ReduceFields {
  cudnnReduceTensorOp_t op = CUDNN_REDUCE_TENSOR_ADD;
  cudnnDataType_t compute_type = CUDNN_DATA_FLOAT;
  cudnnNanPropagation_t nan = CUDNN_NOT_PROPAGATE_NAN;
  cudnnReduceTensorIndices_t indices = CUDNN_REDUCE_TENSOR_NO_INDICES;
  cudnnIndicesType_t indices_type = CUDNN_32BIT_INDICES;
  bool is_set = false;
};

struct TransformFields {
  std::array<std::int32_t, CUDNN_DIM_MAX> pad_before{}, pad_after{};
  std::array<std::uint32_t, CUDNN_DIM_MAX> fold{};
  std::uint32_t rank = 0;  // 0: never set
  cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW;
  cudnnFoldingDirection_t direction = CUDNN_TRANSFORM_FOLD;
};

}  // namespace kiln::cudnn

struct cudnnOpTensorStruct {
  static constexpr auto kind = "a descriptor", creator = "cudnnCreateOpTensorDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b636407;
  kiln::api::Mark mark{mark_value};
  kiln::cudnn::OpTensorFields fields;
  kiln::cudnn::Twin<cudnnOpTensorDescriptor_t> twin;
};

struct cudnnReduceTensorStruct {
  static constexpr auto kind = "a descriptor", creator = "cudnnCreateReduceTensorDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b636408;
  kiln::api::Mark mark{mark_value};
  kiln::cudnn::ReduceFields fields;
  kiln::cudnn::Twin<cudnnReduceTensorDescriptor_t> twin;
};

struct cudnnTensorTransformStruct {
  static constexpr auto kind = "a descriptor", creator = "cudnnCreateTensorTransformDescriptor";
  static constexpr std::uint32_t mark_value = 0x6b636409;
  kiln::api::Mark mark{mark_value};
  kiln::cudnn::TransformFields fields;
  kiln::cudnn::Twin<cudnnTensorTransformDescriptor_t> twin;
};

namespace kiln::cudnn {

// The fields of a descriptor. Throw BAD_PARAM if it is null or was never set.
const OpTensorFields& fields_of(cudnnOpTensorDescriptor_t descriptor);
const ReduceFields& fields_of(cudnnReduceTensorDescriptor_t descriptor);
const TransformFields& fields_of(cudnnTensorTransformDescriptor_t descriptor);

}  // namespace kiln::cudnn
