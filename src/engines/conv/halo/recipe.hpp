// The halo engines, and what their recipes share: those whose operands pass through registers
// (mma.sync, and wgmma with swapped operands; HaloMmaTile), and those whose operands wgmma reads
// from shared memory (HaloWgmmaTile).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engines/conv/halo/mma_tile.hpp"
#include "engines/conv/halo/wgmma_tile.hpp"
#include "engines/conv/recipe/recipe.hpp"
#include "engines/conv/tile/line_store.hpp"

namespace kiln {

extern const Recipe<HaloMmaTile> halo_nhwc_mma, halo_nhwc_wgmma_swap, halo_nchw_mma,
    halo_nchw_wgmma_swap;
extern const Recipe<HaloWgmmaTile> halo_nhwc_wgmma, halo_nchw_wgmma;

namespace halo {

// HaloWgmmaTile: the refusal for reasons that do not depend on the layout.
Refusal wgmma_refusal(const Seen& seen);

// Adds the shapes that fit, laid with so many taps in a stage of the filter.
void lay(std::vector<HaloMmaTile>& tiles, std::span<const HaloMmaShape> shapes, int tap_group,
         const Seen& seen);
void lay(std::vector<HaloWgmmaTile>& tiles, std::span<const HaloWgmmaShape> shapes, int tap_group,
         const Seen& seen);
TileCounts count(const HaloMmaTile& tile, const Seen& seen);
TileCounts count(const HaloWgmmaTile& tile, const Seen& seen);
std::vector<Offer> offers(const HaloMmaTile& tile, const Seen& seen, const TileCounts& tiles);
std::vector<Offer> offers(const HaloWgmmaTile& tile, const Seen& seen, const TileCounts& tiles);
void write(KernelSpec& spec, const HaloMmaTile& tile, const Seen& seen);
void write(KernelSpec& spec, const HaloWgmmaTile& tile, const Seen& seen);

// The recipe of an engine with these fields of its own.
template <class Tile>
constexpr Recipe<Tile> recipe(const char* name, const char* file, Refusal refusal(const Seen&),
                              std::vector<Tile> lay(const Seen&)) {
  return {
      .name = name,
      .file = file,
      .refusal = refusal,
      .lay = lay,
      .no_tile = "the halo of no tile fits into shared memory, or offsets into 32 bits",
      .count = count,
      .offers = offers,
      .describe = describe,
      .threads = [](const Tile& tile) { return tile.shape.threads(); },
      .shared_memory =
          [](const Tile& tile, const Seen& seen) {
            return tile.shared_memory(rows_innermost(seen.gather));
          },
      .write = write,
  };
}

}  // namespace halo
}  // namespace kiln
