// How many copies a thread has in flight (kernel_sources/conv/load/row_loader.cuh). Those of 16
// bits wait in registers, and each is unrolled code.
#pragma once

#include <cstdint>

#include "core/integer.hpp"

namespace kiln {

// Copies in flight for `rows` rows of `positions` copies each (at most one a thread), spread over
// `steps` steps.
constexpr std::int64_t row_batch(std::int64_t rows, std::int64_t positions, std::int64_t threads,
                                 std::int64_t steps) {
  return ceil_div(ceil_div(rows, threads / positions), steps);
}
// Whether so many copies in flight leave enough registers for the products and keep the loop short
// enough.
constexpr bool batch_bearable(std::int64_t copies, std::int64_t registers) {
  constexpr std::int64_t most_copies = 16, most_registers = 30;
  return copies <= most_copies && registers <= most_registers;
}

}  // namespace kiln
