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
// The same for vectors of `vector` channels, in any number of dimensions.
Refusal channel_vectors_refusal(const ConvolutionProblem& problem, const Gather& gather,
                                std::int64_t vector);
Refusal volume_refusal(const Gather& gather);  // the part of it that is about the dimensions

// For a thread with a vector of output channels (whole groups, or part of one): how many source
// channels those groups have; how many of these are contiguous and aligned in at most so many
// channels as the vector has; and the reason, a clause, why such a thread is impossible, or "".
std::int64_t group_inputs(std::int64_t vector, const Gather& gather);
std::int64_t input_access(std::int64_t vector, const Gather& gather);
Refusal group_rows_refusal(std::int64_t vector, const Gather& gather);

// The most channels that such a thread can read and write at once at every pixel: 16 bytes of them,
// two, or one, which every channels-last tensor allows.
std::int64_t fitting_vector(const ConvolutionProblem& problem, const Gather& gather);

}  // namespace kiln
