// The halo engines whose operands pass through registers (mma.sync, and wgmma with swapped
// operands), and what their recipes share.
#pragma once

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
// The recipe of an engine with these fields of its own.
Recipe<HaloMmaTile> recipe(const char* name, const char* file, Refusal refusal(const Seen&),
                           std::vector<HaloMmaTile> lay(const Seen&));

}  // namespace halo_mma
}  // namespace kiln
