// The moments of a forward pass's result in the epilogue of dense_wgmma's tiles
// (kernel_sources/conv/dense/moments.cuh).
#pragma once

#include <string>

#include "engines/conv/gather.hpp"

namespace kiln {

// A block keeps its rows from tile to tile: there are as many blocks as are a multiple of the tiles
// of rows. Those of the same rows share the tiles of pixels, and each leaves the moments of its
// rows.
struct DenseMoments {
  std::int64_t row_tiles, pixel_tiles;
  int rows, tile_pixels;  // of a tile
  std::int64_t pixels;    // of the whole output
  int multiprocessors;

  std::int64_t parts() const;  // blocks of the same rows
  int blocks() const;
  std::int64_t padded_rows() const { return row_tiles * rows; }
  std::size_t workspace() const;  // bytes
};

// Why the moments cannot be made there, a clause; "" if they can, or are not asked for.
std::string dense_moments_refusal(const ConvolutionProblem& problem, const Gather& gather);

// Turns the proposal of a plain forward pass into one whose kernel leaves moments of each block,
// which a second step joins.
Proposal with_moments(Proposal plain, const DenseMoments& moments,
                      const ConvolutionProblem& problem, const DeviceDescription& device);

}  // namespace kiln
