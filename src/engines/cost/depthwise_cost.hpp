// Estimated times of the depthwise kernels for NHWC (src/engines/conv/direct and toeplitz).
#pragma once

#include "device/device.hpp"

namespace kiln {

// Halos that the copy engine loads: the work of a thread for a tile, and the number of tiles.
struct DepthwiseHaloWork {
  // Of a thread, for a tile. Places of the halo, weights and results each have two channels.
  double products = 0, places = 0, weights = 0, results = 0;
  double warps = 0, resident = 0;  // warps of a block; blocks that share a multiprocessor
  double tiles = 0, blocks = 0;    // tiles of a block; blocks in all
  double lines_share = 1;          // bytes that memory moves for each byte of a line of channels
  double bytes = 0;                // of the operands and the result, once each
};
double depthwise_halo_seconds(const DepthwiseHaloWork& work, const DeviceDescription& device);

// Threads that walk down rows of the source in memory: the work of one, and the number of blocks.
struct DepthwiseRowsWork {
  bool converted = false;  // elements of 16 bits
  double channels = 0;     // of a thread; each has all of the following
  double products = 0, places = 0, weights = 0, results = 0;
  double filter = 0;                           // weights that a thread loads for its block
  double rows = 0;                             // of the source, which are waited for in turn
  double warps = 0, resident = 0, blocks = 0;  // as above
  double bytes = 0;                            // of the operands and the result, once each
};
double depthwise_rows_seconds(const DepthwiseRowsWork& work, const DeviceDescription& device);

// Their filter gradients: the work of a thread for a unit of pixels.
struct WgradDepthwiseRowsWork {
  bool converted = false;
  double channels = 0;                         // as above
  double gradients = 0, places = 0, taps = 0;  // pixels of dy and of x; taps that meet each of dy
  double rows = 0;                             // of x, which are waited for in turn
  double units = 0;                            // of a thread
  double lines = 1;                            // of memory that a warp's load touches
  double warps = 0, resident = 0, blocks = 0;  // as above
  double bytes = 0, cache_bytes = 0;           // once each; as often as blocks read them
};
double wgrad_depthwise_rows_seconds(const WgradDepthwiseRowsWork& work,
                                    const DeviceDescription& device);

// Toeplitz products (src/engines/conv/toeplitz): the work of a block of 8 warps for a tile.
struct ToeplitzWork {
  double products = 0;                             // of a warp: m16n8k16
  double halo_pixels = 0, boxes = 0, results = 0;  // pixels of 16 bytes; boxes that load the halo
  double weights = 0;                              // weights of a channel
  double tiles = 0;                                // tiles of a multiprocessor
  double bytes = 0;                                // of the operands and the result, once each
};
double toeplitz_seconds(const ToeplitzWork& work, const DeviceDescription& device);

}  // namespace kiln
