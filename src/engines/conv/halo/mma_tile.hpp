// The tiles of the engines that multiply on the tensor cores with the source's halo in shared
// memory, and how a tile lies on a problem.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

// Rows M (filters, or channels of dx) x pixels N. A warp computes 8 thread_m x 4 thread_n of it.
struct HaloMmaShape {
  int m = 0, n = 0;
  int thread_m = 0, thread_n = 0;  // accumulators of one thread
  int chunk_steps = 0;             // fragments (32 bytes of channels) in a step
  int stages = 2;                  // stages of the filter in shared memory
  int min_blocks = 1;              // blocks that share a multiprocessor
  // wgmma with pixels as operand A; and 3xTF32.
  bool columns_left = false, split = false;

  int threads() const { return m / thread_m * (n / thread_n); }
};
// A shape for wgmma, where a thread has all rows of some pixels; for 3xTF32.
constexpr HaloMmaShape warpgroup_shape(HaloMmaShape shape) {
  shape.thread_m = shape.m / 4;
  shape.columns_left = true;
  return shape;
}
constexpr HaloMmaShape split_warpgroup_shape(HaloMmaShape shape) {
  shape = warpgroup_shape(shape);
  shape.split = true;
  return shape;
}

// A shape laid on a problem (kernel_sources/conv/halo/halo_tile.cuh): the strips that the output is
// cut into, and the source rows that a tile's pixels read.
struct HaloMmaTile {
  HaloMmaShape shape;
  std::int64_t strip = 0, strips = 0;  // columns of pixels in a strip
  std::int64_t image_rows = 0;         // source rows that an image's pixels read, padding included
  std::int64_t halo_rows = 0, halo_columns = 0;
  // The mean over tiles of the rows and columns of taps that lie inside the source for some pixel.
  double live_rows = 0, live_columns = 0;
  int halo_stages = 0;  // 1: all threads wait for the next halo
  int least_taps = 0;   // between one halo and the next
  int element = 0;      // bytes
  bool filter_rows_inner = false;
  int tap_group = 1;  // taps in a stage of the filter; where there are several, each has a plane
  // Accumulators are stored together through shared memory (always so with wgmma), not line by
  // line.
  bool staged = true;

  bool scalar_copies() const { return tap_group > 1; }  // elements are copied
  // ahead: the number of taps that are loaded ahead.
  void set_halo_stages(int stages, int ahead);
  std::int64_t halo_pixels() const { return halo_rows * halo_columns; }
  std::int64_t pitch() const;  // bytes
  std::int64_t halo_bytes() const;
  std::int64_t chunk_channels() const { return 32 * shape.chunk_steps / element; }
  std::int64_t filter_bytes() const;  // of a stage
  // rows_inner: whether the output's rows are contiguous, which decides the layout in which
  // accumulators are staged.
  std::uint32_t shared_memory(bool rows_inner) const;
  // The mean number of taps that a tile visits: the live ones, or all taps of each group that has a
  // live one.
  double walked_taps(const Gather& gather) const;
};

// The shape laid on the problem with the strips that waste least; none if no strip's halo fits into
// a block's shared memory. gather: one phase, no depth. tap_group: more than 1 for NCHW, where
// elements are copied one by one.
std::optional<HaloMmaTile> lay_halo_tile(const HaloMmaShape& shape, const Gather& gather,
                                         int tap_group, const DeviceDescription& device);

// "128x256, 8x16 a thread, 256 threads, 4 stages, strips of 28, halo 27x36 of 32 channels"
std::string describe(const HaloMmaTile& tile);

}  // namespace kiln
