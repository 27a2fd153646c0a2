// Element types.
#pragma once

#include <cstddef>
#include <string_view>

#include "kiln/kiln.h"

namespace kiln {

using DataType = kilnDataType_t;

std::size_t size_of(DataType type);       // bytes of one element
std::string_view name_of(DataType type);  // "f32", "f64", "f16", "bf16"
DataType compute_type(DataType type);     // accumulation, alpha and beta: f64 for f64, else f32
bool parse_type(std::string_view text, DataType& type);

}  // namespace kiln
