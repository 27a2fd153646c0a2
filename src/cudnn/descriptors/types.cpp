#include "cudnn/descriptors/types.hpp"

#include <iterator>

#include "api/checks.hpp"
#include "core/error.hpp"
#include "cudnn/library/settings.hpp"

namespace kiln::cudnn {
namespace {

struct DataType {
  const char* name;
  std::size_t bytes;  // 0: several elements share a byte, or an element is a vector
};
// Indexed by the type's number.
constexpr DataType data_types[] = {
    {"FLOAT", 4},         {"DOUBLE", 8},   {"HALF", 2},
    {"INT8", 1},          {"INT32", 4},    {"INT8x4", 0},
    {"UINT8", 1},         {"UINT8x4", 0},  {"INT8x32", 0},
    {"BFLOAT16", 2},      {"INT64", 8},    {"BOOLEAN", 1},
    {"FP8_E4M3", 1},      {"FP8_E5M2", 1}, {"FAST_FLOAT_FOR_FP8", 4},
    {"FP8_E8M0", 1},      {"FP4_E2M1", 0}, {"INT4", 0},
    {"UINT4", 0},         {"UINT32", 4},   {"COMPLEX_FP32", 8},
    {"COMPLEX_FP64", 16},
};

const DataType& facts_of(cudnnDataType_t type) {
  const auto number = static_cast<std::size_t>(type);
  if (number >= std::size(data_types))
    fail(KILN_STATUS_BAD_PARAM, "dataType is ", static_cast<int>(type),
         "; expected a cudnnDataType_t, 0 to ", std::size(data_types) - 1);
  return data_types[number];
}

template <class Enumeration>
[[noreturn]] void refuse(const char* argument, Enumeration value, const char* expected) {
  fail(KILN_STATUS_BAD_PARAM, argument, " is ", static_cast<int>(value), "; expected ", expected);
}

}  // namespace

const char* name_of(cudnnDataType_t type) { return facts_of(type).name; }

bool computes_with(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF ||
         type == CUDNN_DATA_BFLOAT16;
}

kilnDataType_t kiln_type(cudnnDataType_t type, const char* argument) {
  switch (type) {
    case CUDNN_DATA_FLOAT: return KILN_DATA_FLOAT;
    case CUDNN_DATA_DOUBLE: return KILN_DATA_DOUBLE;
    case CUDNN_DATA_HALF: return KILN_DATA_HALF;
    case CUDNN_DATA_BFLOAT16: return KILN_DATA_BFLOAT16;
    default: break;
  }
  fail(KILN_STATUS_NOT_SUPPORTED, argument, " is of ", name_of(type),
       "; expected FLOAT, DOUBLE, HALF or BFLOAT16");
}

kilnDataType_t kiln_compute_type(cudnnDataType_t type, const char* argument) {
  return kiln_type(type, argument) == KILN_DATA_DOUBLE ? KILN_DATA_DOUBLE : KILN_DATA_FLOAT;
}

double scalar(const void* value, cudnnDataType_t type, const char* name) {
  api::check_pointer(value, name, "the address of a host value of the compute type");
  return type == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(value)
                                   : *static_cast<const float*>(value);
}

const void* one_of(cudnnDataType_t type) {
  static constexpr float in_float = 1;
  static constexpr double in_double = 1;
  return type == CUDNN_DATA_DOUBLE ? static_cast<const void*>(&in_double) : &in_float;
}

void check_format(cudnnTensorFormat_t format) {
  switch (format) {
    case CUDNN_TENSOR_NCHW:
    case CUDNN_TENSOR_NHWC:
    case CUDNN_TENSOR_NCHW_VECT_C: return;
  }
  refuse("format", format, "CUDNN_TENSOR_NCHW, CUDNN_TENSOR_NHWC or CUDNN_TENSOR_NCHW_VECT_C");
}

kilnTensorFormat_t kiln_format(cudnnTensorFormat_t format, const char* argument) {
  check_format(format);
  if (format == CUDNN_TENSOR_NCHW_VECT_C)
    fail(KILN_STATUS_NOT_SUPPORTED, argument,
         " is of format NCHW_VECT_C; expected NCHW, NHWC or strides");
  return format == CUDNN_TENSOR_NCHW ? KILN_TENSOR_NCHW : KILN_TENSOR_NHWC;
}

kilnNanPropagation_t kiln_nan(cudnnNanPropagation_t propagation, const char* argument) {
  switch (propagation) {
    case CUDNN_PROPAGATE_NAN: return KILN_PROPAGATE_NAN;
    case CUDNN_NOT_PROPAGATE_NAN: return KILN_NOT_PROPAGATE_NAN;
  }
  refuse(argument, propagation, "CUDNN_NOT_PROPAGATE_NAN or CUDNN_PROPAGATE_NAN");
}

kilnConvolutionMode_t kiln_mode(cudnnConvolutionMode_t mode) {
  switch (mode) {
    case CUDNN_CONVOLUTION: return KILN_CONVOLUTION;
    case CUDNN_CROSS_CORRELATION: return KILN_CROSS_CORRELATION;
  }
  refuse("mode", mode, "CUDNN_CONVOLUTION or CUDNN_CROSS_CORRELATION");
}

kilnMathMode_t kiln_math(cudnnMathType_t type) {
  switch (type) {
    case CUDNN_DEFAULT_MATH:
    case CUDNN_TENSOR_OP_MATH:
    case CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION:
      return settings().tf32 ? KILN_MATH_TF32 : KILN_MATH_DEFAULT;
    case CUDNN_FMA_MATH: return KILN_MATH_STRICT;
  }
  refuse("mathType", type,
         "CUDNN_DEFAULT_MATH, CUDNN_TENSOR_OP_MATH, CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION or "
         "CUDNN_FMA_MATH");
}

std::size_t bytes_of(cudnnDataType_t type) {
  const DataType& facts = facts_of(type);
  if (facts.bytes == 0)
    fail(KILN_STATUS_NOT_SUPPORTED, "dataType is ", facts.name,
         "; expected a type whose elements are whole bytes each");
  return facts.bytes;
}

}  // namespace kiln::cudnn
