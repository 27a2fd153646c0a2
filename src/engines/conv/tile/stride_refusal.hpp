// How a refusal names a stride that an engine does not take.
#pragma once

#include <cstdint>
#include <string>

namespace kiln {

// "the width stride of x is 2; expected 1". dimension: 0 to 4, of N, C, D, H, W.
std::string stride_refusal(const char* tensor, int dimension, std::int64_t stride,
                           std::int64_t expected);

}  // namespace kiln
