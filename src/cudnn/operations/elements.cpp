// Operations on elements, and reductions.
#include "cudnn/descriptors/elements.hpp"

#include <bit>
#include <cmath>
#include <limits>

#include "cudnn/descriptors/layers.hpp"
#include "cudnn/descriptors/types.hpp"
#include "cudnn/forward/translate.hpp"
#include "cudnn/library/handle.hpp"
#include "cudnn/library/status.hpp"

using kiln::api::check_pointer;
using kiln::cudnn::context_of;
using kiln::cudnn::Function;
using kiln::cudnn::kiln_of;
using kiln::cudnn::must;
using kiln::cudnn::serve;
using kiln::cudnn::shape_of;

namespace {

kilnHandle_t kiln_handle(cudnnHandle_t handle) { return context_of(handle).handle.get(); }

float float_of_half(std::uint16_t bits) {
  constexpr int sign_shift = 15, exponent_shift = 10, exponent_mask = 0x1f, fraction_mask = 0x3ff;
  const int exponent = bits >> exponent_shift & exponent_mask;
  const int fraction = bits & fraction_mask;
  float out = 0;
  if (exponent == exponent_mask)
    out = fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                        : std::numeric_limits<float>::infinity();
  else if (exponent == 0)
    out = std::ldexp(static_cast<float>(fraction), -24);
  else
    out = std::ldexp(static_cast<float>(fraction | (fraction_mask + 1)), exponent - 25);
  return (bits >> sign_shift) != 0 ? -out : out;
}

kilnOpTensorOp_t kiln_op(cudnnOpTensorOp_t op) {
  switch (op) {
    case CUDNN_OP_TENSOR_ADD: return KILN_OP_TENSOR_ADD;
    case CUDNN_OP_TENSOR_MUL: return KILN_OP_TENSOR_MUL;
    case CUDNN_OP_TENSOR_MIN: return KILN_OP_TENSOR_MIN;
    case CUDNN_OP_TENSOR_MAX: return KILN_OP_TENSOR_MAX;
    default: break;
  }
  kiln::fail(KILN_STATUS_BAD_PARAM, "opTensorOp is ", static_cast<int>(op), "; expected 0 to 5");
}

// SQRT and NOT, which have one operand, run as activations: sqrt(alpha1 * a) = sqrt(alpha1) *
// sqrt(a), and NOT is 1 - alpha1 * a.
void run_of_one_operand(cudnnHandle_t handle, cudnnOpTensorOp_t op, const void* alpha1,
                        cudnnTensorDescriptor_t a_desc, const void* a, const void* beta,
                        cudnnTensorDescriptor_t c_desc, void* c) {
  const cudnnDataType_t type = shape_of(c_desc, "cDesc").type;
  const double factor = kiln::cudnn::scalar(alpha1, type, "alpha1");
  const kiln::cudnn::KilnActivation activation;
  const void* alpha = kiln::cudnn::one_of(type);
  const double root = std::sqrt(factor);
  const auto root_in_float = static_cast<float>(root);
  if (op == CUDNN_OP_TENSOR_NOT) {
    must(kilnSetActivationDescriptorEx(activation.get(), KILN_ACTIVATION_LINEAR, -factor, 1));
  } else {
    if (!(factor >= 0))
      kiln::fail(KILN_STATUS_NOT_SUPPORTED, "alpha1 of CUDNN_OP_TENSOR_SQRT is ", factor,
                 "; expected at least 0");
    must(kilnSetActivationDescriptor(activation.get(), KILN_ACTIVATION_SQRT, 0));
    alpha = type == CUDNN_DATA_DOUBLE ? static_cast<const void*>(&root) : &root_in_float;
  }
  must(kilnActivationForward(kiln_handle(handle), activation.get(), alpha, kiln_of(a_desc, "aDesc"),
                             a, beta, kiln_of(c_desc, "cDesc"), c));
}

kilnReduceTensorOp_t kiln_op(cudnnReduceTensorOp_t op) {
  switch (op) {
    case CUDNN_REDUCE_TENSOR_ADD: return KILN_REDUCE_SUM;
    case CUDNN_REDUCE_TENSOR_MUL: return KILN_REDUCE_MUL;
    case CUDNN_REDUCE_TENSOR_MIN: return KILN_REDUCE_MIN;
    case CUDNN_REDUCE_TENSOR_MAX: return KILN_REDUCE_MAX;
    case CUDNN_REDUCE_TENSOR_AMAX: return KILN_REDUCE_AMAX;
    case CUDNN_REDUCE_TENSOR_AVG: return KILN_REDUCE_MEAN;
    case CUDNN_REDUCE_TENSOR_NORM1: return KILN_REDUCE_NORM1;
    case CUDNN_REDUCE_TENSOR_NORM2: return KILN_REDUCE_NORM2;
    case CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS: break;
  }
  kiln::fail(KILN_STATUS_NOT_SUPPORTED,
             "reduceTensorOp is CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS; expected another");
}

// Whether the operation's result is one of the elements, so that it can have indices. For other
// operations the descriptor's request for indices is ignored.
bool has_indices(cudnnReduceTensorOp_t op) {
  return op == CUDNN_REDUCE_TENSOR_MIN || op == CUDNN_REDUCE_TENSOR_MAX ||
         op == CUDNN_REDUCE_TENSOR_AMAX;
}

// The reduction of a descriptor. Throws if Kiln refuses it.
kilnReduceTensorOp_t reduction_of(cudnnReduceTensorDescriptor_t descriptor) {
  const kiln::cudnn::ReduceFields& fields = kiln::cudnn::fields_of(descriptor);
  if (fields.indices != CUDNN_REDUCE_TENSOR_NO_INDICES && has_indices(fields.op))
    kiln::fail(KILN_STATUS_NOT_SUPPORTED,
               "reduceTensorDesc asks for indices; expected CUDNN_REDUCE_TENSOR_NO_INDICES");
  kiln::cudnn::kiln_compute_type(fields.compute_type, "reduceTensorDesc's compute type");
  return kiln_op(fields.op);
}

// cudnnGetReduction...Size: the size is 0.
void no_bytes(cudnnReduceTensorDescriptor_t descriptor, cudnnTensorDescriptor_t a_desc,
              cudnnTensorDescriptor_t c_desc, std::size_t* bytes) {
  check_pointer(bytes, "sizeInBytes", "where to store the bytes");
  reduction_of(descriptor);
  kiln_of(a_desc, "aDesc");
  kiln_of(c_desc, "cDesc");
  *bytes = 0;
}

}  // namespace

cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* alpha, cudnnTensorDescriptor_t aDesc,
                             const void* A, const void* beta, cudnnTensorDescriptor_t cDesc,
                             void* C) {
  return serve(
      Function(cudnnAddTensor),
      [&] {
        must(kilnAddTensor(kiln_handle(handle), alpha, kiln_of(aDesc, "aDesc"), A, beta,
                           kiln_of(cDesc, "cDesc"), C));
      },
      handle, alpha, aDesc, A, beta, cDesc, C);
}

cudnnStatus_t cudnnOpTensor(cudnnHandle_t handle, cudnnOpTensorDescriptor_t opTensorDesc,
                            const void* alpha1, cudnnTensorDescriptor_t aDesc, const void* A,
                            const void* alpha2, cudnnTensorDescriptor_t bDesc, const void* B,
                            const void* beta, cudnnTensorDescriptor_t cDesc, void* C) {
  return serve(
      Function(cudnnOpTensor),
      [&] {
        const kiln::cudnn::OpTensorFields& fields = kiln::cudnn::fields_of(opTensorDesc);
        kiln::cudnn::kiln_compute_type(fields.compute_type, "opTensorDesc's compute type");
        if (fields.op == CUDNN_OP_TENSOR_SQRT || fields.op == CUDNN_OP_TENSOR_NOT)
          return run_of_one_operand(handle, fields.op, alpha1, aDesc, A, beta, cDesc, C);
        must(kilnOpTensor(kiln_handle(handle), kiln_op(fields.op), alpha1, kiln_of(aDesc, "aDesc"),
                          A, alpha2, kiln_of(bDesc, "bDesc"), B, beta, kiln_of(cDesc, "cDesc"), C));
      },
      handle, opTensorDesc, alpha1, aDesc, A, alpha2, bDesc, B, beta, cDesc, C);
}

// The value has the tensor's type, not the type of scalars.
cudnnStatus_t cudnnSetTensor(cudnnHandle_t handle, cudnnTensorDescriptor_t yDesc, void* y,
                             const void* valuePtr) {
  return serve(
      Function(cudnnSetTensor),
      [&] {
        check_pointer(valuePtr, "valuePtr", "the address of a host value of y's type");
        auto* const kiln_y = kiln_of(yDesc, "yDesc");
        const cudnnDataType_t type = yDesc->shape.type;
        float in_float = 0;
        const void* value = &in_float;
        if (type == CUDNN_DATA_HALF)
          in_float = float_of_half(*static_cast<const std::uint16_t*>(valuePtr));
        else if (type == CUDNN_DATA_BFLOAT16)
          in_float = std::bit_cast<float>(
              std::uint32_t{*static_cast<const std::uint16_t*>(valuePtr)} << 16);
        else
          value = valuePtr;
        must(kilnSetTensor(kiln_handle(handle), kiln_y, y, value));
      },
      handle, yDesc, y, valuePtr);
}

cudnnStatus_t cudnnScaleTensor(cudnnHandle_t handle, cudnnTensorDescriptor_t yDesc, void* y,
                               const void* alpha) {
  return serve(
      Function(cudnnScaleTensor),
      [&] { must(kilnScaleTensor(kiln_handle(handle), kiln_of(yDesc, "yDesc"), y, alpha)); },
      handle, yDesc, y, alpha);
}

cudnnStatus_t cudnnGetReductionIndicesSize(cudnnHandle_t handle,
                                           cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                           cudnnTensorDescriptor_t aDesc,
                                           cudnnTensorDescriptor_t cDesc, size_t* sizeInBytes) {
  return serve(
      Function(cudnnGetReductionIndicesSize),
      [&] { no_bytes(reduceTensorDesc, aDesc, cDesc, sizeInBytes); }, handle, reduceTensorDesc,
      aDesc, cDesc, sizeInBytes);
}

cudnnStatus_t cudnnGetReductionWorkspaceSize(cudnnHandle_t handle,
                                             cudnnReduceTensorDescriptor_t reduceTensorDesc,
                                             cudnnTensorDescriptor_t aDesc,
                                             cudnnTensorDescriptor_t cDesc, size_t* sizeInBytes) {
  return serve(
      Function(cudnnGetReductionWorkspaceSize),
      [&] { no_bytes(reduceTensorDesc, aDesc, cDesc, sizeInBytes); }, handle, reduceTensorDesc,
      aDesc, cDesc, sizeInBytes);
}

cudnnStatus_t cudnnReduceTensor(cudnnHandle_t handle,
                                cudnnReduceTensorDescriptor_t reduceTensorDesc, void* indices,
                                size_t indicesSizeInBytes, void* workspace,
                                size_t workspaceSizeInBytes, const void* alpha,
                                cudnnTensorDescriptor_t aDesc, const void* A, const void* beta,
                                cudnnTensorDescriptor_t cDesc, void* C) {
  return serve(
      Function(cudnnReduceTensor),
      [&] {
        must(kilnReduceTensor(kiln_handle(handle), reduction_of(reduceTensorDesc), alpha,
                              kiln_of(aDesc, "aDesc"), A, beta, kiln_of(cDesc, "cDesc"), C));
      },
      handle, reduceTensorDesc, indices, indicesSizeInBytes, workspace, workspaceSizeInBytes, alpha,
      aDesc, A, beta, cDesc, C);
}
