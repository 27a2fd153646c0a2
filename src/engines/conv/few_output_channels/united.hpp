// The phases of a strided data gradient, united in one matrix product.
#pragma once

#include <cstdint>
#include <variant>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// Each phase along the height has columns of the product for itself. Phases along the width share
// the product and add up different taps of it (kernel_sources/conv/few_output_channels/tile.cuh).
struct UnitedGather {
  // With one phase, the gather itself. With several, a phase that covers the taps and pixels of all
  // of them comes first; they follow, ordered by row and then by column of their positions.
  Gather gather;
  std::int64_t row_phases = 1, column_phases = 1;
  std::int64_t taps_in_row = 0;  // taps of a row of the filter, over all phases of the row
  bool gaps = false;             // some phase lacks some rows of taps
  std::int64_t reduction = 0;    // products of a sum, in the phase with most taps

  const Gather::Phase& whole() const { return gather.phases.front(); }
  // Lines of a group: each output channel has one for each phase along the height.
  std::int64_t lines() const { return gather.rows * row_phases; }
};

std::variant<UnitedGather, Refusal> unite_phases(const Gather& gather);

}  // namespace kiln
