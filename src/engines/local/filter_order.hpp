// How a pixel's filters lie in its weights: what decides by which vectors they can be read.
#pragma once

#include <cstdint>
#include <optional>

#include "engines/engine.hpp"

namespace kiln {

struct FilterOrder {
  std::int64_t column_stride = 1;  // from one column of a filter, a channel and a tap, to the next
  bool taps_inner = true;          // columns are [channel][tap], else [tap][channel]
  bool rows_inner = false;         // filters lie side by side, and no column beside another
  int vector = 1;  // elements of a 16-byte access: along the columns, or the filters
};

// None where channels and taps are not one axis, or neither columns nor filters lie side by side.
std::optional<FilterOrder> filter_order(const LocalProblem& problem);

// The refusal where there is none.
Refusal no_filter_order();

// Adds the constants that kernels of such weights have.
void add_filter_order(KernelSpec& kernel, const FilterOrder& order, const LocalProblem& problem);

}  // namespace kiln
