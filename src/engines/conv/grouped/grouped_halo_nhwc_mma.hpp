// Forward propagation, and data gradient of stride 1, of channels-last tensors of 16 bits whose
// groups have 4, 8 or 16 channels, on the tensor cores. The copy engine loads halos, and the filter
// stays in registers.
#pragma once

#include <cstdint>

#include "engines/conv/recipe/recipe.hpp"
#include "engines/conv/tile/channel_vectors.hpp"

namespace kiln {

// p x q pixels by `octets` octets of channels, smaller where the image or the channels end.
// slices: warps that share the pixels of 16 channels.
struct GroupedHaloShape {
  std::int64_t p = 0, q = 0, octets = 0, slices = 0;
  friend bool operator==(const GroupedHaloShape&, const GroupedHaloShape&) = default;
};

// A shape laid on a problem.
struct GroupedHaloTile {
  static constexpr std::int64_t unit_octets = 2;  // of a warp

  GroupedHaloShape shape;
  std::int64_t tiles_p = 0, tiles_q = 0;  // of an image
  std::int64_t channel_tiles = 0;
  std::int64_t halo_rows = 0, halo_columns = 0;
  std::int64_t stage_bytes = 0, stages = 0, shared_memory = 0, resident = 0;

  std::int64_t image_tiles() const { return tiles_p * tiles_q; }
  std::int64_t threads() const { return 32 * shape.octets / unit_octets * shape.slices; }
  std::int64_t pixel_bytes() const { return shape.octets * channel_vector_bytes; }
  std::int64_t halo_bytes() const { return halo_rows * halo_columns * pixel_bytes(); }
};

extern const Recipe<GroupedHaloTile> grouped_halo_nhwc_mma;

}  // namespace kiln
