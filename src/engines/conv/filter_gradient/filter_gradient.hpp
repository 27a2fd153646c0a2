// Filter gradients with few channels a group: several blocks share the sums of a tile of dw, as
// clusters and, where workspace is granted, in a second step.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

// How dw is divided into tiles, and the pixels of dy into units. A block sums one tile of dw over
// its share of the units.
struct FilterGradientTiles {
  std::int64_t block_rows = 0;      // channels of dy in a tile of dw
  std::int64_t block_channels = 0;  // channels of x in a tile, of each group; 0: all
  std::int64_t filter_rows = 0;     // rows of the filter in a tile
  std::int64_t image_units = 0;     // tiles of pixels of dy of an image
  std::int64_t at_once = 1;         // units that a block computes at a time
  std::int64_t threads = 0;         // threads of a block
  std::int64_t resident = 4;        // blocks per multiprocessor, at once or one after the other

  std::int64_t count(const Gather& gather) const;     // tiles of dw
  std::int64_t elements(const Gather& gather) const;  // elements of dw in a tile
  std::int64_t channels(const Gather& gather) const {
    return block_channels == 0 ? gather.channels : block_channels;
  }
  std::int64_t units(const Seen& seen) const { return seen.problem.batch * image_units; }
  std::int64_t blocks(const Seen& seen, const Sharing& sharing) const {
    return count(seen.gather) * sharing.parts * sharing.groups;
  }
};

// What the recipes of such gradients have in common. Their tiles have the fields `dw`, of
// FilterGradientTiles, and `shared_memory`.
namespace filter_gradient {

// In one step with a block or a cluster of up to `most_cluster` blocks for each tile; and in two,
// with as many groups of blocks as keep every multiprocessor busy and leave each thread some units.
// `seconds` estimates the time of the first step.
std::vector<Offer> offers_of(const FilterGradientTiles& tiles, const Seen& seen, int most_cluster,
                             const std::function<double(const Sharing&)>& seconds);

// Adds the constants of a tile (kernel_sources/conv/geometry/depthwise_wgrad_tile.cuh) and of the
// layout of x and dy.
void write(KernelSpec& spec, const FilterGradientTiles& tiles, const Seen& seen);

LaunchSpec launch_of(const KernelSpec& spec, const FilterGradientTiles& tiles, const Seen& seen,
                     const Sharing& sharing);
// Adds PARTIAL to the first step and, for several groups, the step that adds up their sums.
void add_second_step(Proposal& proposal, const FilterGradientTiles& tiles, const Seen& seen,
                     const Sharing& sharing);

template <class Tile>
TileCounts count(const Tile& tile, const Seen& seen) {
  return {.all = tile.dw.count(seen.gather)};
}
template <auto seconds, class Tile>
std::vector<Offer> offers(const Tile& tile, const Seen& seen, const TileCounts& /*tiles*/) {
  constexpr int most_cluster = 8;
  return offers_of(tile.dw, seen, most_cluster,
                   [&](const Sharing& sharing) { return seconds(tile, seen, sharing); });
}
template <class Tile>
int threads(const Tile& tile) {
  return static_cast<int>(tile.dw.threads);
}
template <class Tile>
std::uint32_t shared_memory(const Tile& tile, const Seen& /*seen*/) {
  return static_cast<std::uint32_t>(tile.shared_memory);
}
template <class Tile>
LaunchSpec launch(const KernelSpec& spec, const Tile& tile, const Seen& seen,
                  const Sharing& sharing) {
  return launch_of(spec, tile.dw, seen, sharing);
}
template <class Tile>
void finish(Proposal& proposal, const Tile& tile, const Seen& seen, const Sharing& sharing) {
  add_second_step(proposal, tile.dw, seen, sharing);
}

}  // namespace filter_gradient
}  // namespace kiln
