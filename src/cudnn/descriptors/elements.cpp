#include "cudnn/descriptors/elements.hpp"

#include "cudnn/descriptors/give.hpp"
#include "cudnn/descriptors/types.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/status.hpp"

using kiln::api::check_pointer;
using kiln::api::checked;
using kiln::cudnn::fields_of;
using kiln::cudnn::give;
using kiln::cudnn::guarded;

namespace kiln::cudnn {
namespace {

template <class Descriptor>
void create(Descriptor** descriptor, const char* name) {
  check_pointer(descriptor, name, "where to store the new descriptor");
  *descriptor = nullptr;
  *descriptor = new Descriptor;
}

// Checks a value of an enumeration that counts from 0.
template <class Enumeration>
void check_within(const char* name, Enumeration value, Enumeration last) {
  if (static_cast<unsigned>(value) > static_cast<unsigned>(last))
    fail(KILN_STATUS_BAD_PARAM, name, " is ", static_cast<int>(value), "; expected 0 to ",
         static_cast<int>(last));
}

template <class Descriptor>
const auto& fields_set_before(Descriptor* descriptor, const char* name, bool is_set) {
  if (!is_set) fail(KILN_STATUS_BAD_PARAM, name, " was never set; expected an operation");
  return descriptor->fields;
}

}  // namespace

const OpTensorFields& fields_of(cudnnOpTensorDescriptor_t descriptor) {
  constexpr auto name = "opTensorDesc";
  return fields_set_before(descriptor, name, checked(descriptor, name).fields.is_set);
}
const ReduceFields& fields_of(cudnnReduceTensorDescriptor_t descriptor) {
  constexpr auto name = "reduceTensorDesc";
  return fields_set_before(descriptor, name, checked(descriptor, name).fields.is_set);
}
const TransformFields& fields_of(cudnnTensorTransformDescriptor_t descriptor) {
  constexpr auto name = "transformDesc";
  return fields_set_before(descriptor, name, checked(descriptor, name).fields.rank != 0);
}

}  // namespace kiln::cudnn

using kiln::cudnn::check_within;

// ---- operations on elements ---------------------------------------------------------------------

cudnnStatus_t cudnnCreateOpTensorDescriptor(cudnnOpTensorDescriptor_t* opTensorDesc) {
  return guarded([&] { kiln::cudnn::create(opTensorDesc, "opTensorDesc"); });
}

cudnnStatus_t cudnnDestroyOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc) {
  return guarded([&] { kiln::cudnn::destroy(opTensorDesc, "opTensorDesc"); });
}

cudnnStatus_t cudnnSetOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc,
                                         cudnnOpTensorOp_t opTensorOp,
                                         cudnnDataType_t opTensorCompType,
                                         cudnnNanPropagation_t opTensorNanOpt) {
  return guarded([&] {
    cudnnOpTensorStruct& object = checked(opTensorDesc, "opTensorDesc");
    check_within("opTensorOp", opTensorOp, CUDNN_OP_TENSOR_NOT);
    kiln::cudnn::name_of(opTensorCompType);
    kiln::cudnn::kiln_nan(opTensorNanOpt, "opTensorNanOpt");
    object.fields = {opTensorOp, opTensorCompType, opTensorNanOpt, true};
    renew(object.twin);
  });
}

cudnnStatus_t cudnnGetOpTensorDescriptor(cudnnOpTensorDescriptor_t opTensorDesc,
                                         cudnnOpTensorOp_t* opTensorOp,
                                         cudnnDataType_t* opTensorCompType,
                                         cudnnNanPropagation_t* opTensorNanOpt) {
  return guarded([&] {
    const kiln::cudnn::OpTensorFields& f = fields_of(opTensorDesc);
    give(f.op, opTensorOp);
    give(f.compute_type, opTensorCompType);
    give(f.nan, opTensorNanOpt);
  });
}

// ---- reductions ---------------------------------------------------------------------------------

cudnnStatus_t cudnnCreateReduceTensorDescriptor(cudnnReduceTensorDescriptor_t* reduceTensorDesc) {
  return guarded([&] { kiln::cudnn::create(reduceTensorDesc, "reduceTensorDesc"); });
}

cudnnStatus_t cudnnDestroyReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduceTensorDesc) {
  return guarded([&] { kiln::cudnn::destroy(reduceTensorDesc, "reduceTensorDesc"); });
}

cudnnStatus_t cudnnSetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                             cudnnReduceTensorOp_t reduceTensorOp,
                                             cudnnDataType_t reduceTensorCompType,
                                             cudnnNanPropagation_t reduceTensorNanOpt,
                                             cudnnReduceTensorIndices_t reduceTensorIndices,
                                             cudnnIndicesType_t reduceTensorIndicesType) {
  return guarded([&] {
    cudnnReduceTensorStruct& object = checked(reduceTensorDesc, "reduceTensorDesc");
    check_within("reduceTensorOp", reduceTensorOp, CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS);
    kiln::cudnn::name_of(reduceTensorCompType);
    kiln::cudnn::kiln_nan(reduceTensorNanOpt, "reduceTensorNanOpt");
    check_within("reduceTensorIndices", reduceTensorIndices, CUDNN_REDUCE_TENSOR_FLATTENED_INDICES);
    check_within("reduceTensorIndicesType", reduceTensorIndicesType, CUDNN_8BIT_INDICES);
    object.fields = {reduceTensorOp,      reduceTensorCompType,    reduceTensorNanOpt,
                     reduceTensorIndices, reduceTensorIndicesType, true};
    renew(object.twin);
  });
}

cudnnStatus_t cudnnGetReduceTensorDescriptor(cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                             cudnnReduceTensorOp_t* reduceTensorOp,
                                             cudnnDataType_t* reduceTensorCompType,
                                             cudnnNanPropagation_t* reduceTensorNanOpt,
                                             cudnnReduceTensorIndices_t* reduceTensorIndices,
                                             cudnnIndicesType_t* reduceTensorIndicesType) {
  return guarded([&] {
    const kiln::cudnn::ReduceFields& f = fields_of(reduceTensorDesc);
    give(f.op, reduceTensorOp);
    give(f.compute_type, reduceTensorCompType);
    give(f.nan, reduceTensorNanOpt);
    give(f.indices, reduceTensorIndices);
    give(f.indices_type, reduceTensorIndicesType);
  });
}

// ---- transforms ---------------------------------------------------------------------------------

cudnnStatus_t cudnnCreateTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t* transformDesc) {
  return guarded([&] { kiln::cudnn::create(transformDesc, "transformDesc"); });
}

cudnnStatus_t cudnnDestroyTensorTransformDescriptor(
    cudnnTensorTransformDescriptor_t transformDesc) {
  return guarded([&] { kiln::cudnn::destroy(transformDesc, "transformDesc"); });
}

cudnnStatus_t cudnnSetTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transformDesc,
                                                uint32_t nbDims, cudnnTensorFormat_t destFormat,
                                                const int32_t padBeforeA[],
                                                const int32_t padAfterA[], const uint32_t foldA[],
                                                cudnnFoldingDirection_t direction) {
  return guarded([&] {
    cudnnTensorTransformStruct& object = checked(transformDesc, "transformDesc");
    if (nbDims < 3 || nbDims > CUDNN_DIM_MAX)
      kiln::fail(KILN_STATUS_BAD_PARAM, "nbDims is ", nbDims, "; expected 3 to ", CUDNN_DIM_MAX);
    kiln::cudnn::check_format(destFormat);
    check_within("direction", direction, CUDNN_TRANSFORM_UNFOLD);
    kiln::cudnn::TransformFields fields;
    fields.rank = nbDims;
    fields.format = destFormat;
    fields.direction = direction;
    fields.fold.fill(1);
    for (std::uint32_t i = 0; i < nbDims; ++i) {
      if (padBeforeA != nullptr) fields.pad_before[i] = padBeforeA[i];
      if (padAfterA != nullptr) fields.pad_after[i] = padAfterA[i];
      if (foldA != nullptr && i + 2 < nbDims) fields.fold[i] = foldA[i];
    }
    object.fields = fields;
    renew(object.twin);
  });
}

cudnnStatus_t cudnnGetTensorTransformDescriptor(cudnnTensorTransformDescriptor_t transformDesc,
                                                uint32_t nbDimsRequested,
                                                cudnnTensorFormat_t* destFormat,
                                                int32_t padBeforeA[], int32_t padAfterA[],
                                                uint32_t foldA[],
                                                cudnnFoldingDirection_t* direction) {
  return guarded([&] {
    const kiln::cudnn::TransformFields& f = fields_of(transformDesc);
    give(f.format, destFormat);
    give(f.direction, direction);
    for (std::uint32_t i = 0; i < f.rank && i < nbDimsRequested; ++i) {
      if (padBeforeA != nullptr) padBeforeA[i] = f.pad_before[i];
      if (padAfterA != nullptr) padAfterA[i] = f.pad_after[i];
      if (foldA != nullptr && i + 2 < f.rank) foldA[i] = f.fold[i];
    }
  });
}
