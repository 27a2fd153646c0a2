// Tiles of the dense filter gradient and their shared memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kiln {

// A tile of filters by columns of dw. Columns come in blocks of one line of channels of a tap.
// `consumers` warpgroups divide the filters, left x 64 each; every one of them computes all `right`
// columns.
struct WgradDenseTile {
  int consumers, left, right;
  int step_pixels;      // pixels of dy in a stage
  int element = 2;      // bytes of an operand's element
  int helpers = 1;      // warpgroups that issue copies and, for f32, transpose x
  bool planar = false;  // channels first
  bool split = false;   // 3xTF32
  // Slabs of each warpgroup, for results. Above 0, blocks are persistent and take tiles in turn; at
  // 0, a block computes one tile or one part of its reduction.
  int slabs = 0;

  bool turns() const { return element == 4 && !planar; }
  int filters() const { return consumers * left * 64; }
  int threads() const { return 128 * (helpers + consumers); }
  int quads() const { return left * right / 8; }        // groups of four sums of a thread
  int turned_slots() const { return turns() ? 2 : 0; }  // buffers for a step's transposed x
  int line_channels() const { return 128 / element; }   // channels in a line of shared memory
  int stages() const;                                   // as many as fit in shared memory
  int shared_memory() const;
  bool persistent() const { return slabs > 0; }
};
std::string describe(const WgradDenseTile& tile);

// The tiles for elements of `element` bytes, channels first (planar) or last, TF32 or 3xTF32
// (split).
std::span<const WgradDenseTile> wgrad_dense_tiles(std::size_t element, bool planar, bool split);

}  // namespace kiln
