// Element types.
#pragma once

#include <cstddef>

#include "core/enumeration.hpp"

namespace kiln {

using DataType = kilnDataType_t;

std::size_t size_of(DataType type);    // bytes of one element
DataType compute_type(DataType type);  // of sums, alpha and beta: f64 for f64, else f32

}  // namespace kiln
