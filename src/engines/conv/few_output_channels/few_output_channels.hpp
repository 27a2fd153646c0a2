// Forward propagation to few channels, and the data gradient of an image, on the tensor cores. The
// product's rows are pixels of the source; its columns are pairs of an output channel and a tap of
// the filter's row. The taps of a row are added up at the end. Each phase of a strided gradient has
// columns of its own.
#pragma once

#include "engines/conv/few_output_channels/tile.hpp"
#include "engines/conv/recipe/recipe.hpp"

namespace kiln {

extern const Recipe<FewOutputChannelsTile> few_output_channels_mma;
// The same with wgmma on Hopper.
extern const Recipe<FewOutputChannelsTile> few_output_channels_wgmma;

}  // namespace kiln
