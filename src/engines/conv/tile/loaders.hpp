// The number of copies that a thread has in flight (kernel_sources/conv/load/row_loader.cuh).
// Copies of 16-bit elements wait in registers, and the code of all copies is unrolled.
#pragma once

#include <cstdint>

#include "core/integer.hpp"

namespace kiln {

// A thread's copies in flight for `rows` rows of `positions` copies each (at most `threads`),
// spread over `steps` steps.
constexpr std::int64_t row_batch(std::int64_t rows, std::int64_t positions, std::int64_t threads,
                                 std::int64_t steps) {
  return ceil_div(ceil_div(rows, threads / positions), steps);
}
// Whether this many copies in flight, in this many registers, leave enough registers for the
// products and keep the loop short enough.
constexpr bool batch_bearable(std::int64_t copies, std::int64_t registers) {
  constexpr std::int64_t most_copies = 16, most_registers = 30;
  return copies <= most_copies && registers <= most_registers;
}

}  // namespace kiln
