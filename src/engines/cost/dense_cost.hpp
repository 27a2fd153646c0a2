// How long the dense engines' kernels take (src/engines/conv/dense), told before they exist.
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.hpp"

namespace kiln {

// Tiles that blocks, one a multiprocessor, take in turn, line_bytes of channels of a tap a step.
struct DenseWork {
  struct Phase {
    std::int64_t tiles, steps;  // of a tile
  };
  int pixels = 0, rows = 0;  // of a tile
  int warpgroups = 0;        // that multiply
  int line_bytes = 128;
  bool half_lines = false;  // results leave in lines of 64 bytes
  int store_bytes = 0;      // results leave by threads, so many bytes at a time
  std::vector<Phase> phases{};
  double filter_bytes = 0;
  double bytes = 0;  // of operands and result, once each
};
double dense_seconds(const DenseWork& work, const DeviceDescription& device);

// Tiles of 64 rows by so many pixels, which two warpgroups of a block take in turn, line_bytes of
// channels of a tap a step; all taps read one halo.
struct DenseHaloWork {
  int pixels = 0;
  int line_bytes = 128;
  std::int64_t tiles = 0, steps = 0;  // of a tile
  double bytes = 0;                   // of operands and result, once each
};
double dense_halo_seconds(const DenseHaloWork& work, const DeviceDescription& device);

// A filter gradient: blocks of `steps` stages each.
struct DenseWgradWork {
  int filters = 0, columns = 0, step_pixels = 0;
  int element = 2;      // bytes
  bool turned = false;  // in shared memory, as f32 with channels last
  bool split = false;   // f32 in three products
  double blocks = 0, steps = 0;
  int cluster = 1;          // blocks that add up their sums in shared memory
  double groups = 1;        // of clusters, whose sums a second step adds up
  bool persistent = false;  // a block takes tiles in turn
  double bytes = 0;
};
// Of which the second step takes, of sums that groups leave in so many bytes altogether.
double dense_wgrad_second_seconds(double groups, double bytes);
double dense_wgrad_seconds(const DenseWgradWork& work, const DeviceDescription& device);

}  // namespace kiln
