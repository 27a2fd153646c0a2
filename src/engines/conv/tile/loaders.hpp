// How many copies a thread has on their way at a time (kernel_sources/conv/load/row_loader.cuh):
// those of 16 bits wait in registers, and each is unrolled.
#pragma once

#include <cstdint>

#include "core/integer.hpp"

namespace kiln {

// Of `rows` rows of `positions` copies each, no more than there are threads, in so many steps.
constexpr std::int64_t row_batch(std::int64_t rows, std::int64_t positions, std::int64_t threads,
                                 std::int64_t steps) {
  return ceil_div(ceil_div(rows, threads / positions), steps);
}
// Whether so many copies, with what waits of them, leave the products their registers and the loop
// its instructions.
constexpr bool batch_bearable(std::int64_t copies, std::int64_t registers) {
  constexpr std::int64_t most_copies = 16, most_registers = 30;
  return copies <= most_copies && registers <= most_registers;
}

}  // namespace kiln
