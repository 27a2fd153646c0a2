// Tiles of the dense filter gradient, and what they take of shared memory.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace kiln {

// Filters by columns of dw, which are blocks of a line of channels of a tap. `consumers` warpgroups
// divide the filters, `left` times 64 each; all `right` columns are each one's.
struct WgradDenseTile {
  int consumers, left, right;
  int step_pixels;      // of dy that a stage holds
  int element = 2;      // bytes of an operand's
  int helpers = 1;      // warpgroups that ask for copies and, of f32, turn x
  bool planar = false;  // channels first
  bool split = false;   // f32 in three products
  // Of results on their way out, of each warpgroup: then a block takes tiles in turn. 0: a block is
  // a tile's, or a part's of it.
  int slabs = 0;

  bool turns() const { return element == 4 && !planar; }
  int filters() const { return consumers * left * 64; }
  int threads() const { return 128 * (helpers + consumers); }
  int quads() const { return left * right / 8; }        // of a thread's sums
  int turned_slots() const { return turns() ? 2 : 0; }  // for x of a step
  int line_channels() const { return 128 / element; }   // of a line of shared memory
  int stages() const;                                   // as many as shared memory holds
  int shared_memory() const;
  bool persistent() const { return slabs > 0; }
};
std::string describe(const WgradDenseTile& tile);

// Those for elements of so many bytes, channels first or last, and f32 in one product or in three.
std::span<const WgradDenseTile> wgrad_dense_tiles(std::size_t element, bool planar, bool split);

}  // namespace kiln
