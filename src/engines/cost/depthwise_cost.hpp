// Estimated times of the depthwise kernels for NHWC (src/engines/conv/direct and toeplitz).
#pragma once

#include "device/device.hpp"

namespace kiln {

// Halos by the copy engine: what a thread does for a tile, and how many tiles there are.
struct DepthwiseHaloWork {
  double products = 0, places = 0, weights = 0, results = 0;  // all but products: per two channels
  double warps = 0, resident = 0;  // warps of a block; blocks that share a multiprocessor
  double tiles = 0, blocks = 0;    // tiles of a block; blocks in all
  double lines_share = 1;          // bytes that memory moves for each byte of a line of channels
  double bytes = 0;                // of the operands and the result, once each
};
double depthwise_halo_seconds(const DepthwiseHaloWork& work, const DeviceDescription& device);

// Toeplitz products (src/engines/conv/toeplitz): what a block of 8 warps does for a tile.
struct ToeplitzWork {
  double products = 0;                             // of 16 x 8 x 16, of a warp
  double halo_pixels = 0, boxes = 0, results = 0;  // 16 bytes each; boxes that they come in
  double weights = 0;                              // of a channel
  double tiles = 0;                                // of a multiprocessor
  double bytes = 0;                                // of the operands and the result, once each
};
double toeplitz_seconds(const ToeplitzWork& work, const DeviceDescription& device);

}  // namespace kiln
