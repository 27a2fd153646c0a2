// How a gathering kernel stores its sums (kernel_sources/conv/store/line_store.cuh,
// neighbour_store.cuh, staged_store.cuh).
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

// Whether neighbouring rows are contiguous in the output.
bool rows_innermost(const Gather& gather);

// Bytes of shared memory through which an m x n tile is stored
// (kernel_sources/conv/store/staged_store.cuh), including the table of its pixels. rows_inner:
// whether rows are contiguous in the output; element: bytes of an element.
std::int64_t staged_bytes(std::int64_t m, std::int64_t n, bool rows_inner, std::int64_t element);

// How many of a thread's thread_m rows are contiguous in the tile: 1, or, if rows are contiguous in
// the output, as many as one access stores.
int rows_side_by_side(const Gather& gather, int thread_m);

// Whether a thread stores several results at a time: its neighbouring rows or pixels (run_m, run_n)
// are contiguous in the output and aligned. columns: pixels from one tile's start to the next
// one's.
bool stores_vectors(const ConvolutionProblem& problem, const Gather& gather, std::int64_t columns,
                    int run_m, int run_n);

// Adds LINES_ALONG_M, Z_LIKE_OUT and OUTPUT_VECTOR.
void add_line_store_constants(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                              const Gather& gather, std::int64_t columns, int run_m, int run_n);
// Adds the same for staged stores, and STORE_VECTOR.
void add_staged_store_constants(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                                const Gather& gather);

}  // namespace kiln
