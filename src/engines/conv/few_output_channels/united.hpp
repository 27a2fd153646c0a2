// The phases of a strided data gradient side by side in one product.
#pragma once

#include <cstdint>
#include <variant>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// Phases along the height differ in their columns of the product; those along the width read the
// columns of different taps (kernel_sources/conv/few_output_channels/tile.cuh).
struct UnitedGather {
  // Of one phase: as it is. Of several: first one that walks the taps of all of them, its pixels
  // as many as any has; then these, in the order of rows, then columns, of their positions.
  Gather gather;
  std::int64_t row_phases = 1, column_phases = 1;
  std::int64_t taps_in_row = 0;  // of all phases of a row
  bool gaps = false;             // some rows of taps are none of some phase's
  std::int64_t reduction = 0;    // of the phase with most taps

  const Gather::Phase& whole() const { return gather.phases.front(); }
  // Output channels a group, each with its phases along the height.
  std::int64_t lines() const { return gather.rows * row_phases; }
};

std::variant<UnitedGather, Refusal> unite_phases(const Gather& gather);

}  // namespace kiln
