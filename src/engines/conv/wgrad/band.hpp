// The tiles of the NCHW filter gradient, and how their stages are laid on a problem
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

// A tile of M filters x N columns (channels and taps) of dw. A stage holds one band of pixels.
struct BandTile {
  FragmentShape shape;
  std::int64_t rows = 0, columns = 0;  // rows and columns of pixels of dy in a band
  std::int64_t bands = 0;              // bands in an image
  bool filters_inner = false;          // dy is NHWC
  int copy_bytes = 0;                  // bytes of a copy of dy
  SourceLines lines;                   // x; its planes are the channels of the tile's columns
  bool split = false;                  // 3xTF32

  std::int64_t turns() const;            // fragments that each slice multiplies in a stage
  std::int64_t fragments() const;        // fragments (32 bytes of pixels) in a stage
  std::int64_t stage_pixels() const;     // pixels of these fragments, padding included
  std::int64_t gradient_copies() const;  // copies of dy in a stage
  std::int64_t gradient_bytes() const;   // bytes of dy in a stage
  std::int64_t shared_memory() const;    // bytes
};

// A gather of an NHWC x with few channels, seen as lines of elements: one channel, whose rows have
// width x channels pixels and whose taps are taps x channels. `gather` itself where the elements of
// a row are not contiguous or the channels are many.
Gather in_lines(const Gather& gather);
inline constexpr std::int64_t most_line_phases = 12;  // phases that the lines of x can have

// The shape with the band of lowest estimate; none if no band of it fits into the shared memory of
// the device's blocks. `gather` has one phase and no depth; `alignment` is that of the operands, in
// bytes.
std::optional<BandTile> lay_band(const FragmentShape& shape, const Gather& gather, bool split,
                                 std::int64_t alignment, const DeviceDescription& device);

// Sets the pitches of lines so that a warp's reads conflict in as few banks as possible. lay_band()
// leaves room for these pitches.
void spread_over_banks(BandTile& tile, const Gather& gather);

// "128x128, 8x16 a thread, 128 threads, bands of 4x24"
std::string describe(const BandTile& tile);

}  // namespace kiln
