#include "engines/conv/dense/wgrad/wgrad_dense_tile.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace kiln {
namespace {

constexpr int most_shared_memory = 227 * 1024, most_stages = 8;

constexpr WgradDenseTile half_tiles[] = {
    {.consumers = 2, .left = 1, .right = 256, .step_pixels = 64},
    {.consumers = 2, .left = 2, .right = 128, .step_pixels = 64},
    {.consumers = 2, .left = 1, .right = 192, .step_pixels = 64},
    {.consumers = 2, .left = 1, .right = 128, .step_pixels = 64},
    {.consumers = 2, .left = 1, .right = 128, .step_pixels = 128},
    {.consumers = 2, .left = 2, .right = 64, .step_pixels = 64},
    {.consumers = 2, .left = 1, .right = 64, .step_pixels = 128},
    {.consumers = 1, .left = 1, .right = 256, .step_pixels = 64},
    {.consumers = 1, .left = 1, .right = 192, .step_pixels = 64},
    {.consumers = 1, .left = 1, .right = 128, .step_pixels = 128},
    {.consumers = 1, .left = 1, .right = 64, .step_pixels = 128},
    {.consumers = 2, .left = 1, .right = 256, .step_pixels = 64, .slabs = 2},
    {.consumers = 2, .left = 2, .right = 128, .step_pixels = 64, .slabs = 2},
    {.consumers = 2, .left = 1, .right = 192, .step_pixels = 64, .slabs = 2},
    {.consumers = 2, .left = 1, .right = 128, .step_pixels = 64, .slabs = 2},
};
constexpr WgradDenseTile planar_tiles[] = {
    {.consumers = 2, .left = 1, .right = 256, .step_pixels = 64, .planar = true},
    {.consumers = 2, .left = 2, .right = 128, .step_pixels = 64, .planar = true},
    {.consumers = 2, .left = 1, .right = 192, .step_pixels = 64, .planar = true},
    {.consumers = 2, .left = 1, .right = 128, .step_pixels = 64, .planar = true},
    {.consumers = 2, .left = 2, .right = 64, .step_pixels = 64, .planar = true},
    {.consumers = 2, .left = 1, .right = 64, .step_pixels = 64, .planar = true},
    {.consumers = 1, .left = 1, .right = 256, .step_pixels = 64, .planar = true},
    {.consumers = 1, .left = 1, .right = 128, .step_pixels = 64, .planar = true},
    {.consumers = 1, .left = 1, .right = 64, .step_pixels = 64, .planar = true},
};
constexpr WgradDenseTile planar_single_tiles[] = {
    {.consumers = 2, .left = 1, .right = 256, .step_pixels = 32, .element = 4, .planar = true},
    {.consumers = 2, .left = 2, .right = 128, .step_pixels = 32, .element = 4, .planar = true},
    {.consumers = 2, .left = 1, .right = 192, .step_pixels = 32, .element = 4, .planar = true},
    {.consumers = 2, .left = 1, .right = 128, .step_pixels = 32, .element = 4, .planar = true},
    {.consumers = 2, .left = 2, .right = 64, .step_pixels = 32, .element = 4, .planar = true},
    {.consumers = 2, .left = 1, .right = 64, .step_pixels = 32, .element = 4, .planar = true},
    {.consumers = 1, .left = 1, .right = 256, .step_pixels = 32, .element = 4, .planar = true},
    {.consumers = 1, .left = 1, .right = 128, .step_pixels = 32, .element = 4, .planar = true},
    {.consumers = 1, .left = 1, .right = 64, .step_pixels = 32, .element = 4, .planar = true},
};
// TF32 with x transposed in shared memory: the more filters a tile has, the less transposing per
// filter.
constexpr WgradDenseTile single_tiles[] = {
    {.consumers = 2, .left = 2, .right = 128, .step_pixels = 32, .element = 4},
    {.consumers = 2, .left = 1, .right = 256, .step_pixels = 32, .element = 4},
    {.consumers = 2, .left = 1, .right = 192, .step_pixels = 32, .element = 4, .helpers = 2},
    {.consumers = 2, .left = 1, .right = 128, .step_pixels = 64, .element = 4},
    {.consumers = 2, .left = 2, .right = 64, .step_pixels = 64, .element = 4},
    {.consumers = 2, .left = 1, .right = 64, .step_pixels = 64, .element = 4},
    {.consumers = 1, .left = 1, .right = 256, .step_pixels = 32, .element = 4, .helpers = 2},
    {.consumers = 1, .left = 1, .right = 192, .step_pixels = 32, .element = 4, .helpers = 2},
    {.consumers = 1, .left = 1, .right = 128, .step_pixels = 64, .element = 4},
    {.consumers = 1, .left = 1, .right = 64, .step_pixels = 64, .element = 4},
};
// 3xTF32: promotion takes as many registers again as the accumulators.
constexpr WgradDenseTile split_tiles[] = {
    {.consumers = 2, .left = 1, .right = 128, .step_pixels = 32, .element = 4, .split = true},
    {.consumers = 2, .left = 2, .right = 64, .step_pixels = 32, .element = 4, .split = true},
    {.consumers = 2, .left = 1, .right = 64, .step_pixels = 32, .element = 4, .split = true},
    {.consumers = 1, .left = 1, .right = 128, .step_pixels = 32, .element = 4, .split = true},
    {.consumers = 1, .left = 1, .right = 64, .step_pixels = 32, .element = 4, .split = true},
};
int stage_bytes(const WgradDenseTile& tile) {
  return (tile.filters() + tile.right) * tile.step_pixels * tile.element;
}
int turned_bytes(const WgradDenseTile& tile) {
  return tile.turned_slots() * (tile.split ? 2 : 1) * tile.right * tile.step_pixels * tile.element;
}
int slab_bytes(const WgradDenseTile& tile) { return tile.slabs * tile.consumers * 64 * 128; }
int barrier_bytes(const WgradDenseTile& tile, int stages) {
  const int of_results = tile.persistent() ? tile.consumers : 0;
  return 8 * (2 * (stages + std::max(tile.turned_slots(), 1)) + of_results);
}

}  // namespace

int WgradDenseTile::stages() const {
  const int room = most_shared_memory - turned_bytes(*this) - slab_bytes(*this) -
                   barrier_bytes(*this, most_stages);
  return std::min(room / stage_bytes(*this), most_stages);
}
int WgradDenseTile::shared_memory() const {
  return stages() * stage_bytes(*this) + turned_bytes(*this) + slab_bytes(*this) +
         barrier_bytes(*this, stages());
}

std::string describe(const WgradDenseTile& tile) {
  return cat(tile.filters(), "x", tile.right, ", ", tile.threads(), " threads, ", tile.stages(),
             " stages of ", tile.step_pixels, " pixels", tile.split ? ", 3 products" : "",
             tile.persistent() ? ", persistent" : "");
}

std::span<const WgradDenseTile> wgrad_dense_tiles(std::size_t element, bool planar, bool split) {
  if (planar && element == 4) return planar_single_tiles;
  if (planar) return planar_tiles;
  if (split) return split_tiles;
  if (element == 4) return single_tiles;
  return half_tiles;
}

}  // namespace kiln
