// What recipes of gathers share whose source comes in boxes, and whose persistent blocks take the
// tiles of pixels in turn, each block with its tile of channels.
#pragma once

#include <cstdint>

#include "engines/conv/maps/boxed_source.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln::boxed_gather {

template <class Tile>
std::int64_t pixel_tiles(const Tile& tile, const Seen& seen) {
  return seen.problem.batch * tile.image_tiles();
}

// So many blocks take the tiles of the same channels.
template <class Tile>
std::int64_t channel_blocks(const Tile& tile, const Seen& seen) {
  return blocks_in_turn(pixel_tiles(tile, seen),
                        tile.resident * seen.device.multiprocessors / tile.channel_tiles);
}

template <class Tile>
TileCounts count(const Tile& tile, const Seen& seen) {
  const std::int64_t tiles = pixel_tiles(tile, seen);
  return {.of_pixels = tiles,
          .all = tiles * tile.channel_tiles,
          .blocks = channel_blocks(tile, seen) * tile.channel_tiles};
}

// At most `most` tiles of pixels.
template <class Tile, std::int64_t most>
Refusal tile_refusal(const Tile& tile, const Seen& seen, const Sharing& /*one*/) {
  return pixel_tiles_refusal(pixel_tiles(tile, seen), most);
}

}  // namespace kiln::boxed_gather
