// Operands whose channels (or filters) are contiguous in a pixel and are copied 16 bytes at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"
#include "problem/problem.hpp"

namespace kiln {

inline constexpr std::size_t copied_bytes = 16;

struct CopiedOperand {
  const char *tensor, *channels;  // what the channels are called in a refusal
  std::int64_t count;             // channels of a group
  const Dims& strides;
};
// The source of a gather.
CopiedOperand copied_source(const ConvolutionProblem& problem, const Gather& gather);

// The refusal if the operand's channels cannot be copied 16 bytes at a time.
Refusal copies_refusal(const ConvolutionProblem& problem, const CopiedOperand& operand);

// The reason why a tensor of these strides, {N, channel, D, H, W}, cannot be read in vectors of
// `vector` channels (16 bytes) at every pixel; "" if it can.
Refusal vector_strides_refusal(const char* tensor, const Dims& strides, std::int64_t vector);

}  // namespace kiln
