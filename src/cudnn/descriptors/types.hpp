// Enumerations of the cuDNN API as Kiln knows them, each checked: a value outside of its
// enumeration is BAD_PARAM, one that Kiln has nothing for NOT_SUPPORTED.
#pragma once

#include <cudnn.h>

#include <cstddef>

#include "kiln/kiln.h"

namespace kiln::cudnn {

// "INT8"; throws BAD_PARAM for a number that no type has.
const char* name_of(cudnnDataType_t type);

// Whether Kiln computes with it.
bool computes_with(cudnnDataType_t type);

// Throws NOT_SUPPORTED, naming `argument`, of a type that Kiln does not compute with.
kilnDataType_t kiln_type(cudnnDataType_t type, const char* argument);

// The type that sums, alpha and beta are of: HALF and BFLOAT16 are served as FLOAT.
kilnDataType_t kiln_compute_type(cudnnDataType_t type, const char* argument);

// NCHW or NHWC; NCHW_VECT_C is NOT_SUPPORTED.
kilnTensorFormat_t kiln_format(cudnnTensorFormat_t format, const char* argument);
void check_format(cudnnTensorFormat_t format);

kilnNanPropagation_t kiln_nan(cudnnNanPropagation_t propagation, const char* argument);
kilnConvolutionMode_t kiln_mode(cudnnConvolutionMode_t mode);
kilnMathMode_t kiln_math(cudnnMathType_t type);

// Bytes of an element. Throws NOT_SUPPORTED of types that are packed.
std::size_t bytes_of(cudnnDataType_t type);

}  // namespace kiln::cudnn
