// Channels-last tensors whose channels are read and written in vectors of 16 bytes, pixel by pixel.
#pragma once

#include <cstdint>
#include <string>

#include "engines/conv/gather.hpp"
#include "problem/problem.hpp"

namespace kiln {

inline constexpr std::int64_t channel_vector_bytes = 16;
inline std::int64_t channel_vector(DataType type) {
  return channel_vector_bytes / static_cast<std::int64_t>(size_of(type));
}

// Why the source and the output of a gather in a plane (x and y, dy and dx, or of a filter gradient
// x and dy) are no such tensors, a clause; "" if they are.
std::string channel_vectors_refusal(const ConvolutionProblem& problem, const Gather& gather);

// Of a thread that has a vector of the output's channels, which is of whole groups or within one:
// how many channels of the source their groups have; how many of these lie side by side in up to 16
// bytes that are aligned to their size; and why there is no such thread, a clause, or "".
std::int64_t group_inputs(DataType type, const Gather& gather);
std::int64_t input_access(DataType type, const Gather& gather);
std::string group_rows_refusal(DataType type, const Gather& gather);

}  // namespace kiln
