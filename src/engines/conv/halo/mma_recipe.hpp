// The halo engines whose operands pass through registers (mma.sync, and wgmma with swapped
// operands), and what their recipes share.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/conv/halo/mma_tile.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

extern const Recipe<HaloMmaTile> halo_nhwc_mma, halo_nhwc_wgmma_swap, halo_nchw_mma,
    halo_nchw_wgmma_swap;

namespace halo_mma {

// Adds the shapes that fit, laid with so many taps in a stage of the filter.
void lay(std::vector<HaloMmaTile>& tiles, std::span<const HaloMmaShape> shapes, int tap_group,
         const Seen& seen);
TileCounts count(const HaloMmaTile& tile, const Seen& seen);
std::vector<Offer> offers(const HaloMmaTile& tile, const Seen& seen, const TileCounts& tiles);
std::uint32_t shared_memory(const HaloMmaTile& tile, const Seen& seen);
void write(KernelSpec& spec, const HaloMmaTile& tile, const Seen& seen);

// The recipe of an engine with these fields of its own.
constexpr Recipe<HaloMmaTile> recipe(const char* name, const char* file,
                                     Refusal refusal(const Seen&),
                                     std::vector<HaloMmaTile> lay(const Seen&)) {
  return {
      .name = name,
      .file = file,
      .refusal = refusal,
      .lay = lay,
      .no_tile = "the halo of no tile fits into shared memory, or offsets into 32 bits",
      .count = count,
      .offers = offers,
      .describe = describe,
      .threads = [](const HaloMmaTile& tile) { return tile.shape.threads(); },
      .shared_memory = shared_memory,
      .write = write,
  };
}

}  // namespace halo_mma
}  // namespace kiln
