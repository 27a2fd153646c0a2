// The tiles of the engine that multiplies by warpgroups, whose pixels are a part of one line
// through the batch, or of a strip of an image, and how a tile lies on a problem.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "device/device.hpp"
#include "engines/gather.hpp"

namespace kiln {

// Rows M (filters, or channels of dx), 64 a warpgroup, x places N.
struct LineShape {
  int m, n;
  int chunk_steps;      // of 32 bytes of channels, in a step
  int stages;           // of the filter in shared memory
  int min_blocks;       // of a multiprocessor at once
  bool strips = false;  // N / 8 rows of eight pixels

  int threads() const { return 2 * m; }
};

// A shape on a problem (kernel_sources/conv/pixel_tile.cuh).
struct LineTile {
  LineShape shape;
  std::int64_t columns = 0, rows = 0;  // of the line, an image; of strips, the output's in tiles
  std::int64_t halo_pixels = 0;
  double live_taps = 0;  // of a tile, on average: those that some pixel has inside the source
  int halo_stages = 0;
  int least_taps = 0;  // between one halo and the next
  int element = 0;     // bytes
  bool filter_rows_inner = false;

  std::int64_t places() const { return columns * rows; }  // of an image
  std::int64_t strips() const { return columns / 8; }     // of an image
  std::int64_t chunk_bytes() const { return 32 * shape.chunk_steps; }
  std::int64_t chunk_channels() const { return chunk_bytes() / element; }
  // Pixels from one plane of 16 bytes to the next: such that eight lanes, which write some planes
  // of one pixel or of neighbours, write to different banks.
  std::int64_t plane_pixels() const;
  // rows_inner: of the output, which decides how sums lie on their way there.
  std::uint32_t shared_memory(bool rows_inner) const;
};

// none if it does not fit into the shared memory of the device's blocks. gather: one phase, no
// depth, stride 1.
std::optional<LineTile> lay_line_tile(const LineShape& shape, const Gather& gather,
                                      const DeviceDescription& device);

// "128x168 by warpgroups, 256 threads, 4 stages, lines of 13x13, halo 196 of 64 channels"
std::string describe(const LineTile& tile);

}  // namespace kiln
