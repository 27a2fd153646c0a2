// The layout of a pixel's filters in the weights, which decides in which vectors they can be read.
#pragma once

#include <cstdint>
#include <optional>

#include "engines/engine.hpp"

namespace kiln {

struct FilterOrder {
  std::int64_t column_stride = 1;  // from one column of a filter, a channel and a tap, to the next
  bool taps_inner = true;          // columns are [channel][tap], else [tap][channel]
  bool rows_inner = false;         // filters are contiguous, columns are not
  int vector = 1;  // elements of a 16-byte access: along the columns, or the filters
};

// None where channels and taps do not form one axis, or neither columns nor filters are contiguous.
std::optional<FilterOrder> filter_order(const LocalProblem& problem);

// The refusal where filter_order() gives none.
Refusal no_filter_order();

// Adds the constants that kernels of such weights have.
void add_filter_order(KernelSpec& kernel, const FilterOrder& order, const LocalProblem& problem);

}  // namespace kiln
