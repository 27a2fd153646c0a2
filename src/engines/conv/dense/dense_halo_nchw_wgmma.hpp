// Forward propagation and data gradient on Hopper: channels-first tensors of 16 bits, filters of
// several taps, no stride along the width. Tensors are read and stored as they lie; only the filter
// is copied, to have its channels contiguous.
#pragma once

#include <cstdint>

#include "engines/conv/recipe/recipe.hpp"
#include "engines/cost/dense_cost.hpp"

namespace kiln {

// A tile of rows (filters, or channels of dx) by a patch of rows of `line` pixels, laid on a
// problem. `consumers` warpgroups divide operand A, left x 64 each.
struct PlanarPatch {
  bool pixels_left = false;  // pixels are operand A; else filters
  int consumers = 0, left = 0, right = 0;

  // Laid on a problem.
  int line = 0;           // pixels of a channel in a line of shared memory
  int step_channels = 0;  // of a step of the reduction
  int halo_taps = 0;      // taps of a column of the filter that read a halo: all, or one
  int halo_rows = 0;      // of the source
  int halo_slots = 0, filter_slots = 0, slabs = 0;
  int center = -1;  // column of the filter whose halos are loaded and then shifted; -1: all are
  int edges = 0;    // of a halo that is shifted: sides on which pixels beyond it are loaded
  int shared_memory = 0;         // bytes
  std::int64_t image_tiles = 0;  // tiles of an image
  DensePlanarWork work{};        // of one image

  int block_left() const { return consumers * left * 64; }
  int pixels() const { return pixels_left ? block_left() : right; }
  int rows() const { return pixels_left ? right : block_left(); }
  int patch_rows() const { return pixels() / line; }
  int threads() const { return 128 * (1 + consumers); }
  // Rows of the filter in a line of shared memory, where its rows are contiguous.
  int row_line() const { return rows() % 64 == 0 ? 64 : rows() % 32 == 0 ? 32 : 16; }
  int slab_rows() const { return pixels_left ? right : 64; }
};

extern const Recipe<PlanarPatch> dense_halo_nchw_wgmma;

}  // namespace kiln
