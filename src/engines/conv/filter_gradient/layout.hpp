// How the elements of dw are laid out, as filter gradients store them. The gather is that
// of the forward pass, whose filter strides are those of dw.
#pragma once

#include "engines/conv/gather.hpp"

namespace kiln {

// Whether threads can store two channels of dw at once.
bool in_pairs(const Gather& gather);

// Whether the taps of a channel of dw are nearer to each other than its channels.
bool taps_side_by_side(const Gather& gather);

}  // namespace kiln
