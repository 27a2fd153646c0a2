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

// Rows M (filters, or channels of dx) x pixels N. A warp's part is 8 thread_m x 4 thread_n.
struct HaloMmaShape {
  int m = 0, n = 0;
  int thread_m = 0, thread_n = 0;  // sums of one thread
  int chunk_steps = 0;             // of 32 bytes of channels, in a step
  int stages = 2;                  // of the filter in shared memory
  int min_blocks = 1;              // of a multiprocessor at once
  // By warpgroups, whose left operand is the pixels; and f32 in three products.
  bool columns_left = false, split = false;

  int threads() const { return m / thread_m * (n / thread_n); }
};
// Of products by warpgroups, of which a thread has all rows of some pixels; of f32 in three
// products.
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

// A shape on a problem (kernel_sources/conv/halo/halo_tile.cuh): the strips that the output is cut
// into, and the band of the source that a tile's pixels meet.
struct HaloMmaTile {
  HaloMmaShape shape;
  std::int64_t strip = 0, strips = 0;  // columns of pixels
  std::int64_t image_rows = 0;  // of the source that an image's pixels meet, padding included
  std::int64_t halo_rows = 0, halo_columns = 0;
  // Of a tile, on average: rows and columns of taps that some pixel has inside the source.
  double live_rows = 0, live_columns = 0;
  int halo_stages = 0;  // 1: the next halo is waited for
  int least_taps = 0;   // between one halo and the next
  int element = 0;      // bytes
  bool filter_rows_inner = false;
  int tap_group = 1;  // taps in a stage of the filter; several lie a plane each
  // Sums leave together through shared memory, as by warpgroups always, and not line by line.
  bool staged = true;

  bool one_by_one() const { return tap_group > 1; }  // elements are copied
  // ahead: taps that are loaded ahead.
  void set_halo_stages(int stages, int ahead);
  std::int64_t halo_pixels() const { return halo_rows * halo_columns; }
  std::int64_t pitch() const;  // bytes
  std::int64_t halo_bytes() const;
  std::int64_t chunk_channels() const { return 32 * shape.chunk_steps / element; }
  std::int64_t filter_bytes() const;  // of a stage
  // rows_inner: of the output, which decides how sums lie on their way there.
  std::uint32_t shared_memory(bool rows_inner) const;
  // Of a tile, on average: those that are live, or all of a group of which one is.
  double walked_taps(const Gather& gather) const;
};

// The shape laid on the problem so that least is wasted; none if no strip's halo fits into the
// shared memory of the device's blocks. gather: one phase, no depth. tap_group: of several taps if
// the tensors' channels lie apart, so that elements are copied one by one.
std::optional<HaloMmaTile> lay_halo_tile(const HaloMmaShape& shape, const Gather& gather,
                                         int tap_group, const DeviceDescription& device);

// "128x256, 8x16 a thread, 256 threads, 4 stages, strips of 28, halo 27x36 of 32 channels"
std::string describe(const HaloMmaTile& tile);

}  // namespace kiln
