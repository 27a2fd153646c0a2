// The tiles of the engine of planar filter gradients, and how their stages lie on a problem
// (kernel_sources/conv/wgrad/band.cuh).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "device/device.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/tile/gemm_tile.hpp"
#include "engines/conv/tile/source_lines.hpp"

namespace kiln {

// Filters M x columns N (channels and taps) of dw, with the band of pixels that a stage holds.
struct BandTile {
  FragmentShape shape;
  std::int64_t rows = 0, columns = 0;  // of pixels of dy
  std::int64_t bands = 0;              // of an image
  bool filters_inner = false;          // dy's filters lie side by side, not its pixels
  int copy_bytes = 0;                  // of dy, at a time
  SourceLines lines;                   // of x, whose planes are the channels of a tile's columns
  bool split = false;                  // f32 in three products

  std::int64_t turns() const;         // of a stage, in which each slice multiplies a fragment
  std::int64_t fragments() const;     // of 32 bytes of pixels, in a stage
  std::int64_t stage_pixels() const;  // in all fragments, with what fills them up
  std::int64_t gradient_copies() const;
  std::int64_t gradient_bytes() const;  // in shared memory
  std::int64_t shared_memory() const;   // bytes
};

// x as its rows lie in memory: where channels lie side by side, all of them of all pixels of a row,
// and are few, they are columns of one channel as taps are, a pixel's elements from the next one's
// as far as it has channels. `gather` itself where that is not so.
Gather in_lines(const Gather& gather);
inline constexpr std::int64_t most_line_phases = 12;  // that lines keep apart

// The shape with the band that wastes least; none if no band of it fits into the shared memory of
// the device's blocks. gather: of one phase, no depth. alignment: bytes, of the operands.
std::optional<BandTile> lay_band(const FragmentShape& shape, const Gather& gather, bool split,
                                 std::int64_t alignment, const DeviceDescription& device);

// Lines such that what a warp reads at a time falls into different banks, as far as that can be
// had. lay_band() leaves room for it.
void spread_over_banks(BandTile& tile, const Gather& gather);

// "128x128, 8x16 a thread, 128 threads, bands of 4x24"
std::string describe(const BandTile& tile);

}  // namespace kiln
