// Conversions from enumerations of the cuDNN API to Kiln's. A number that the enumeration does not
// have is BAD_PARAM; a value that Kiln has no counterpart for is NOT_SUPPORTED.
#pragma once

#include <cudnn.h>

#include <cstddef>

#include "kiln/kiln.h"

namespace kiln::cudnn {

// For example "INT8". Throws BAD_PARAM for a number that no type has.
const char* name_of(cudnnDataType_t type);

// Whether Kiln computes with it.
bool computes_with(cudnnDataType_t type);

// Throws NOT_SUPPORTED, naming `argument`, if Kiln does not compute with the type.
kilnDataType_t kiln_type(cudnnDataType_t type, const char* argument);

// The type of sums, alpha and beta. HALF and BFLOAT16 become FLOAT.
kilnDataType_t kiln_compute_type(cudnnDataType_t type, const char* argument);

// Reads a host value of that type: a double for tensors of DOUBLE, else a float. Throws BAD_PARAM
// for null.
double scalar(const void* value, cudnnDataType_t type, const char* name);

// The address of a 1 in that type.
const void* one_of(cudnnDataType_t type);

// NCHW or NHWC; NCHW_VECT_C is NOT_SUPPORTED.
kilnTensorFormat_t kiln_format(cudnnTensorFormat_t format, const char* argument);
void check_format(cudnnTensorFormat_t format);

kilnNanPropagation_t kiln_nan(cudnnNanPropagation_t propagation, const char* argument);
kilnConvolutionMode_t kiln_mode(cudnnConvolutionMode_t mode);
kilnMathMode_t kiln_math(cudnnMathType_t type);

// Bytes of an element. Throws NOT_SUPPORTED for packed types.
std::size_t bytes_of(cudnnDataType_t type);

}  // namespace kiln::cudnn
