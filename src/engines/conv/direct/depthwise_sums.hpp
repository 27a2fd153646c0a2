// The moments of a depthwise convolution's result, and the gradient of an activation behind a
// normalization, in the epilogue of depthwise_halo's tiles.
#pragma once

#include <cstdint>

#include "engines/conv/recipe/seen.hpp"

namespace kiln {

// Whether the convolution asks for one of them.
bool asks_for_sums(const ConvolutionProblem& problem);

// Why it cannot be had there, a clause; "" if it can, or is not asked for.
Refusal depthwise_sums_refusal(const Seen& seen);

// Registers of a thread and bytes of shared memory beyond those of the plain kernel; `q`: pixels of
// a row of a thread.
std::int64_t depthwise_sums_registers(const ConvolutionProblem& problem, std::int64_t q);
std::int64_t depthwise_sums_bytes(const ConvolutionProblem& problem, std::int64_t threads);

// How blocks share the channels of the result.
struct DepthwiseParts {
  std::int64_t channels;  // of all tiles of channels
  std::int64_t parts;     // blocks that have the same channels
  std::int64_t at_most;   // the same at any batch size

  std::size_t workspace(const ConvolutionProblem& problem) const;  // bytes
};

// Turns the proposal of a plain convolution into one whose kernel leaves what each block has of its
// channels, which a second step joins.
void add_depthwise_sums(Proposal& proposal, const DepthwiseParts& parts, const Seen& seen);

}  // namespace kiln
