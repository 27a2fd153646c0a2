// The halo engines whose operands wgmma reads from shared memory, and what their recipes share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/conv/halo/wgmma_tile.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

extern const Recipe<HaloWgmmaTile> halo_nhwc_wgmma, halo_nchw_wgmma;

namespace halo_wgmma {

// The refusal for reasons that do not depend on the layout.
Refusal refusal(const Seen& seen);
// The shapes that fit, laid with so many taps in a stage of the filter.
void lay(std::vector<HaloWgmmaTile>& tiles, std::span<const HaloWgmmaShape> shapes, int tap_group,
         const Seen& seen);
TileCounts count(const HaloWgmmaTile& tile, const Seen& seen);
std::vector<Offer> offers(const HaloWgmmaTile& tile, const Seen& seen, const TileCounts& tiles);
std::uint32_t shared_memory(const HaloWgmmaTile& tile, const Seen& seen);
void write(KernelSpec& spec, const HaloWgmmaTile& tile, const Seen& seen);

// The recipe of an engine with these fields of its own.
constexpr Recipe<HaloWgmmaTile> recipe(const char* name, const char* file,
                                       Refusal refusal(const Seen&),
                                       std::vector<HaloWgmmaTile> lay(const Seen&)) {
  return {
      .name = name,
      .file = file,
      .refusal = refusal,
      .lay = lay,
      .no_tile = "the halo of no tile fits into shared memory, or offsets into 32 bits",
      .count = count,
      .offers = offers,
      .describe = describe,
      .threads = [](const HaloWgmmaTile& tile) { return tile.shape.threads(); },
      .shared_memory = shared_memory,
      .write = write,
  };
}

}  // namespace halo_wgmma
}  // namespace kiln
