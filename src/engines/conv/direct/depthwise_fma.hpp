// Forward propagation and data gradient with few output channels a group and filters wider than one
// tap. Threads slide along rows and keep the sums in registers.
#pragma once

#include <cstdint>

#include "core/integer.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

struct DepthwiseFmaTile {
  std::int64_t rows = 0, row_runs = 0;  // rows of pixels; runs in a row
  std::int64_t run_pixels = 8;          // pixels of a run
  std::int64_t thread_rows = 1;         // runs of a thread, one below the other
  std::int64_t units = 1;               // a unit is one tile of one group of an image
  std::int64_t tiles_down = 0, tiles_along = 0;
  std::int64_t copy_elements = 1;     // elements of a copy of the source
  std::int64_t skipped_elements = 0;  // at the start of a row's first copy, that no pixel needs
  std::int64_t stages = 0;
  std::int64_t thread_row_elements = 0, patch_row_elements = 0;  // of a source row
  std::int64_t copied_elements = 0;               // of a unit's patch, and its filter
  std::int64_t pitch_quads = 0, plane_quads = 0;  // of the patch in shared memory
  std::int64_t stage_elements = 0;                // of a unit in a stage

  std::int64_t unit_threads() const { return rows / thread_rows * row_runs; }
  std::int64_t threads() const { return round_up(units * unit_threads(), 32); }
  std::int64_t shared_elements() const { return stages * units * stage_elements; }
};

extern const Recipe<DepthwiseFmaTile> depthwise_fma;

}  // namespace kiln
