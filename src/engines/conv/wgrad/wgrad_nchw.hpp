// Filter gradient on the tensor cores for an x in NCHW, or with few channels. The part of x that
// all taps of a band of pixels read is copied to shared memory once, as lines.
#pragma once

#include "engines/conv/recipe/recipe.hpp"
#include "engines/conv/wgrad/band.hpp"

namespace kiln {

extern const Recipe<BandTile> wgrad_nchw_mma;
// The same with wgmma on Hopper.
extern const Recipe<BandTile> wgrad_nchw_wgmma_swap;

}  // namespace kiln
