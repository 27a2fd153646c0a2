// Channels-last tensors with few channels, whose rows are copied to shared memory unchanged
// (kernel_sources/conv/load/whole_rows.cuh).
#pragma once

#include <cstdint>
#include <string>

#include "engines/conv/gather.hpp"
#include "problem/problem.hpp"

namespace kiln {

// The reason, a clause, why the rows of a tensor, `width` pixels of `channels` channels, are not
// contiguous; "" if they are.
Refusal whole_rows_refusal(const char* tensor, std::int64_t width, std::int64_t channels,
                           const Dims& strides);

// The reason, a clause, why products of sizes and channels do not fit into 32 bits; "" if they do.
Refusal whole_row_sizes_refusal(const Gather& gather, std::int64_t channels);

// The bytes of a copy (16, 8, 4 or 2, at least an element's): the most with which every row is a
// whole number of aligned copies. planes: the tensor is channels-first, and each channel has rows.
std::int64_t whole_row_copy(const ConvolutionProblem& problem, std::int64_t width,
                            std::int64_t channels, const Dims& strides, bool planes = false);

// Bytes of shared memory, a multiple of 16, for a row of `elements` elements of `element` bytes,
// wherever in a copy of copy_bytes it begins.
std::int64_t whole_row_pitch(std::int64_t elements, std::int64_t element, std::int64_t copy_bytes);

}  // namespace kiln
