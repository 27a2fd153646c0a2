// How a gathering kernel's sums reach the output (kernel_sources/conv/store/line_store.cuh,
// neighbour_store.cuh, staged_store.cuh).
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

// Rows lie side by side in the output.
bool rows_innermost(const Gather& gather);

// Shared memory through which an m x n tile's sums go out together
// (kernel_sources/conv/store/staged_store.cuh), their pixels' places included. element: its bytes.
std::int64_t staged_bytes(std::int64_t m, std::int64_t n, bool rows_inner, std::int64_t element);

// Rows of a thread that lie side by side in the tile: as many as an access stores, where the output
// has rows innermost; of thread_m sums.
int rows_side_by_side(const Gather& gather, int thread_m);

// Whether results go out several at a time: those that a thread has side by side lie so in the
// output, aligned to their size. columns: of pixels, from a tile's place to the next one's. run_m,
// run_n: a thread's rows and pixels side by side.
bool stores_vectors(const ConvolutionProblem& problem, const Gather& gather, std::int64_t columns,
                    int run_m, int run_n);

// LINES_ALONG_M, Z_LIKE_OUT and OUTPUT_VECTOR.
void add_line_store_constants(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                              const Gather& gather, std::int64_t columns, int run_m, int run_n);
// The same where a tile's sums go out together, and STORE_VECTOR.
void add_staged_store_constants(std::vector<Constant>& constants, const ConvolutionProblem& problem,
                                const Gather& gather);

}  // namespace kiln
