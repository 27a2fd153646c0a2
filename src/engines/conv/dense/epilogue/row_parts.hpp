// How the blocks of a dense convolution share its tiles where each leaves something of its rows,
// which a second step joins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace kiln {

// A block keeps its rows from tile to tile: there are as many blocks as are a multiple of the tiles
// of rows. Those of the same rows share the tiles of pixels.
struct RowParts {
  std::int64_t row_tiles, pixel_tiles;
  int rows, tile_pixels;  // of a tile
  std::int64_t pixels;    // of the whole output
  int multiprocessors;

  std::int64_t parts() const {  // blocks of the same rows
    return std::clamp<std::int64_t>(multiprocessors / row_tiles, 1,
                                    std::max<std::int64_t>(pixel_tiles, 1));
  }
  int blocks() const { return static_cast<int>(parts() * row_tiles); }
  std::int64_t padded_rows() const { return row_tiles * rows; }
  // Bytes, of so many for each row of each block.
  std::size_t workspace(std::size_t bytes_of_row) const {
    return static_cast<std::size_t>(parts() * padded_rows()) * bytes_of_row;
  }
};

}  // namespace kiln
