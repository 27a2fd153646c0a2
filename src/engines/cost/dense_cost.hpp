// Estimated times of the dense engines' kernels (src/engines/conv/dense).
#pragma once

#include <cstdint>
#include <vector>

#include "device/device.hpp"

namespace kiln {

// Forward propagation and data gradient. Each multiprocessor has one block, and blocks take tiles
// in turn. A step multiplies line_bytes of channels at one tap.
struct DenseWork {
  struct Phase {
    std::int64_t tiles, steps;  // of a tile
  };
  int pixels = 0, rows = 0;  // of a tile
  int warpgroups = 0;        // warpgroups that multiply
  int line_bytes = 128;
  bool pixels_in_words = false;  // pixels go through registers
  bool half_lines = false;       // results are stored in lines of 64 bytes
  int store_bytes = 0;           // bytes that a thread stores at a time; 0: the copy engine stores
  std::vector<Phase> phases{};
  double filter_bytes = 0;
  double bytes = 0;      // of operands and result, once each
  int blocks = 0;        // 0: one for each multiprocessor
  bool moments = false;  // or sums of the results are made, which a second step joins
};
// Seconds of one execution.
double dense_seconds(const DenseWork& work, const DeviceDescription& device);

// The same with one halo in shared memory for all taps. The two warpgroups of a block take tiles of
// 64 rows in turn. A step multiplies line_bytes of channels at one tap.
struct DenseHaloWork {
  int pixels = 0;
  int line_bytes = 128;
  std::int64_t tiles = 0, steps = 0;  // tiles in all; steps of a tile
  double bytes = 0;                   // of operands and result, once each
};
double dense_halo_seconds(const DenseHaloWork& work, const DeviceDescription& device);

// The same of channels-first tensors. The warpgroups of a block share a tile.
struct DensePlanarWork {
  bool pixels_left = false;  // pixels are operand A
  int pixels = 0, rows = 0;  // of a tile
  int line = 0;              // pixels in a line
  int warpgroups = 0;        // warpgroups that multiply
  std::int64_t tiles = 0;
  double halos = 0;          // that a tile loads
  int columns = 1;           // of the filter, whose halos are the loaded one and its shifted copies
  int spare_halos = 0;       // slots of halos beyond `columns`
  double halo_lines = 0;     // of shared memory, of a halo
  int edges = 0;             // sides on which pixels beyond a loaded halo's lines are loaded
  int steps = 0;             // that read a halo, each with one tap of the filter
  double filter_lines = 0;   // of shared memory, that a step loads
  double step_products = 0;  // channels of a step
  double filter_bytes = 0;
  double bytes = 0;  // of operands and result, once each
};
double dense_planar_seconds(const DensePlanarWork& work, const DeviceDescription& device);

// A filter gradient: blocks of `steps` stages each.
struct DenseWgradWork {
  int filters = 0, columns = 0, step_pixels = 0, stages = 0;
  int element = 2;      // bytes
  bool turned = false;  // operands are transposed in shared memory: f32 with channels last
  bool split = false;   // f32 in three products
  double blocks = 0, steps = 0;
  // Tiles of a group of channels: rows of filters, columns, and those that read the same x at other
  // taps. odd_: lines of dy, or of x, lie across lines of L2.
  double row_tiles = 1, column_tiles = 1, tap_tiles = 1;
  bool odd_dy = false, odd_x = false;
  int cluster = 1;          // blocks that add up their sums in shared memory
  int groups = 1;           // groups of clusters, whose sums a second step adds up
  int rounds_of_loads = 1;  // of a thread of the second step
  bool persistent = false;  // a block takes several tiles in turn
  double singles = 0;       // results that are stored one by one, none beside the one before
  double bytes = 0;         // of operands and result that are read or written, once each
};
// Seconds of the second step, which adds up the sums of all groups: what dense_wgrad_seconds
// includes for it if there are several groups.
double dense_wgrad_second_seconds(const DenseWgradWork& work, const DeviceDescription& device);
double dense_wgrad_seconds(const DenseWgradWork& work, const DeviceDescription& device);

// Seconds that `results` results of a filter gradient take longer because they are stored one by
// one, none beside the one before, whoever computes them.
double single_results_seconds(double results, const DeviceDescription& device);

}  // namespace kiln
