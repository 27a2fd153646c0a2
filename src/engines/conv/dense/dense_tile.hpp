// The tiles of the dense engines, and how a tile lies on a problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/recipe/seen.hpp"

namespace kiln {

// A tile of rows (filters, or channels of dx) by pixels. `consumers` warpgroups divide operand A,
// left x 64 each; every one of them reads all `right` columns of operand B.
struct DenseTile {
  bool pixels_left = false;  // pixels are operand A; else filters
  int consumers = 0, left = 0, right = 0;
  // Data gradients with strides: the rows of all phases are rows of one product. For phases of one
  // tap each, which all read the same pixels.
  bool joined = false;

  // Laid on a problem: its layout in shared memory.
  bool planar = false;            // channels first
  int images = 1;                 // planar: images of a tile
  int element = 0;                // bytes
  DenseLines lines{};             // of the operands
  std::int64_t result_line = 0;   // rows of a pixel in a line of results
  std::int64_t store_pixels = 0;  // contiguous pixels in one store of a thread; 0: TMA stores
  int slabs = 0;                  // slabs of each warpgroup, for results
  int stages = 0;                 // as many as fit
  int shared_memory = 0;          // bytes

  int block_left() const { return consumers * left * 64; }
  int pixels() const { return pixels_left ? block_left() : right; }
  int rows() const { return pixels_left ? right : block_left(); }
  int threads() const { return 128 * (1 + consumers); }
  int slab_pixels() const { return pixels_left ? 64 : right; }
  // Channels first: rows of a slab.
  int planar_slab_rows() const { return pixels_left ? right : 64; }
  // Pixels in a line of shared memory, for results whose pixels are contiguous.
  int line_pixels() const {
    const int most = element == 2 ? 64 : 32;
    return pixels() % most == 0 ? most : pixels() % 32 == 0 ? 32 : 16;
  }
};
// "128x256, pixels left, 384 threads, 4 stages"
std::string describe(const DenseTile& tile);

// All tiles, not laid yet, for channels-last tensors or, planar, for channels-first ones.
std::span<const DenseTile> dense_tiles(bool planar);
// A tile laid on a problem, whether or not it suits it.
DenseTile lay_dense_tile(DenseTile tile, bool planar, const Seen& seen);
// The tiles that suit the problem and leave room for enough stages, laid on it.
std::vector<DenseTile> lay_dense_tiles(bool planar, const Seen& seen);

// Whether the tiles of the phases can be taken in turn: there are equally many, of equal work.
bool takes_phases_in_turn(const Gather& gather);
// The phases whose tiles are counted.
std::span<const Gather::Phase> phases_of(const DenseTile& tile, const Gather& gather);
std::int64_t pixel_tiles(const DenseTile& tile, std::int64_t batch, const Gather::Phase& phase);
std::int64_t row_tiles(const DenseTile& tile, const Gather& gather);

// Whether blocks leave something of their rows: moments, or sums of a normalization's gradient.
bool leaves_parts(const ConvolutionProblem& problem);

}  // namespace kiln
