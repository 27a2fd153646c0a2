// Channels-last tensors whose channels are read and written in vectors of 16 bytes, pixel by pixel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engines/conv/gather.hpp"
#include "engines/conv/recipe/seen.hpp"
#include "problem/problem.hpp"

namespace kiln {

inline constexpr std::int64_t channel_vector_bytes = 16;
inline std::int64_t channel_vector(DataType type) {
  return channel_vector_bytes / static_cast<std::int64_t>(size_of(type));
}

// As Recipe::alignment: that of kernels which access such vectors of every operand.
inline std::size_t vector_alignment(const Seen& /*seen*/) { return channel_vector_bytes; }

// The reason, a clause, why source and output of a two-dimensional gather (for a filter gradient x
// and dy) are not such tensors; "" if they are.
Refusal channel_vectors_refusal(const ConvolutionProblem& problem, const Gather& gather);

// For a thread with a vector of output channels (whole groups, or part of one): how many source
// channels those groups have; how many of these are contiguous and aligned in at most 16 bytes; and
// the reason, a clause, why such a thread is impossible, or "".
std::int64_t group_inputs(DataType type, const Gather& gather);
std::int64_t input_access(DataType type, const Gather& gather);
Refusal group_rows_refusal(DataType type, const Gather& gather);

}  // namespace kiln
