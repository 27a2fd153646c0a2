// The tiles of the engines that multiply by warpgroups, and how a tile lies on a problem. A tile's
// pixels are a run of one line through all images of the batch, or a part of strips of an image.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "device/device.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

// Rows M (filters, or channels of dx) x places N; each warpgroup has 64 rows and a share of the
// places.
struct HaloWgmmaShape {
  int m = 0, n = 0;
  int chunk_steps = 0;  // fragments (32 bytes of channels) in a step
  int stages = 0;       // stages of the filter in shared memory
  int min_blocks = 1;   // blocks that share a multiprocessor
  int strips = 0;       // adjacent strips of 8 columns; 0: a run of the line of all pixels
  int groups_n = 1;     // groups of warpgroups that share the places
  bool split = false;   // 3xTF32: operands are hi and lo parts

  int threads() const { return 2 * m * groups_n; }
  int parts() const { return split ? 2 : 1; }  // of an element in shared memory: hi and lo
  int strip_rows() const { return n / (8 * strips); }
};

// A shape laid on a problem (kernel_sources/conv/halo/pixel_tile.cuh).
struct HaloWgmmaTile {
  HaloWgmmaShape shape;
  // An image's places: of the line through the batch; with strips, the output's pixels rounded up
  // to whole tiles.
  std::int64_t columns = 0, rows = 0;
  std::int64_t halo_pixels = 0, halo_columns = 0;
  double live_taps = 0;  // the mean over tiles of the taps inside the source for some pixel
  int halo_stages = 0;
  int least_taps = 0;  // between one halo and the next
  int element = 0;     // bytes
  bool filter_rows_inner = false;
  int tap_group = 1;  // taps in a stage of the filter; more than 1: scalar copies (NCHW)

  std::int64_t places() const { return columns * rows; }                // of an image
  std::int64_t strips() const { return columns / (8 * shape.strips); }  // of an image, in tiles
  bool scalar_copies() const { return tap_group > 1; }
  std::int64_t chunk_bytes() const { return 32 * shape.chunk_steps; }
  std::int64_t chunk_channels() const { return chunk_bytes() / element; }
  std::int64_t plane_pixels() const;  // places from one plane of 16 bytes to the next
  // Rows of 16 bytes from one plane of the filter to the next; 0: wgmma cannot read the filter in
  // this layout.
  std::int64_t filter_plane() const;
  std::int64_t filter_bytes() const;  // of a stage
  // rows_inner: whether the output's rows are contiguous, which decides the layout in which
  // accumulators are staged.
  std::uint32_t shared_memory(bool rows_inner) const;
};

// The shape laid on the problem; none if it does not fit into a block's shared memory. gather: one
// phase, no depth, stride 1. tap_group: more than 1 for NCHW, where elements are copied one by one.
std::optional<HaloWgmmaTile> lay_line_tile(const HaloWgmmaShape& shape, const Gather& gather,
                                           int tap_group, const DeviceDescription& device);

// "128x168 by warpgroups, 256 threads, 4 stages, lines of 13x13, halo 196 of 64 channels"
std::string describe(const HaloWgmmaTile& tile);

}  // namespace kiln
