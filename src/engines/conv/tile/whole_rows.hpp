// Channels-last tensors with few channels, whose rows are copied to shared memory unchanged
// (kernel_sources/conv/load/whole_rows.cuh).
#pragma once

#include <cstdint>
#include <string>

#include "engines/conv/gather.hpp"
#include "problem/problem.hpp"

namespace kiln {

// Why the rows of a tensor, `width` pixels of so many channels, do not lie so, a clause; "" if they
// do.
std::string whole_rows_refusal(const char* tensor, std::int64_t width, std::int64_t channels,
                               const Dims& strides);

// The reason, a clause, why products of sizes and channels do not fit into 32 bits; "" if they do.
std::string whole_row_sizes_refusal(const Gather& gather, std::int64_t channels);

// Bytes of a copy (16, 8, 4 or 2, at least an element's): the most with which every row, of
// channels-first tensors (planes) every row of each channel, is a whole number of aligned copies.
std::int64_t whole_row_copy(const ConvolutionProblem& problem, std::int64_t width,
                            std::int64_t channels, const Dims& strides, bool planes = false);

// Bytes, a multiple of 16, that so many elements of `element` bytes may take in shared memory,
// wherever in a copy they begin.
std::int64_t whole_row_pitch(std::int64_t elements, std::int64_t element, std::int64_t copy_bytes);

}  // namespace kiln
