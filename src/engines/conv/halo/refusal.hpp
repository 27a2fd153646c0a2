// The refusals of the engines that keep the source's halo in shared memory; none if they take the
// problem.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/conv/recipe/seen.hpp"
#include "engines/engine.hpp"

namespace kiln {

// The refusal for reasons that do not depend on the layout.
Refusal halo_refusal(const Seen& seen);

// NHWC: the refusal of engines that copy 16 bytes of channels at a time.
Refusal channels_last_refusal(const Seen& seen);

// NCHW: how many taps a stage of the filter may hold, largest first: whole rows of taps that are
// contiguous in one channel. None if the filter has another layout.
std::vector<int> tap_groups(const Gather& gather);

// NCHW: the refusal of engines that gather single elements.
Refusal planar_refusal(const Seen& seen);

// Whether offsets fit into 32 bits, counted from a tile's first image (a tile touches at most
// `images`) and within the filter. Includes offsets beyond the last channel or row, which are
// computed but not read.
bool narrow_offsets(const Seen& seen, std::int64_t tile_rows, std::int64_t chunk_channels,
                    std::int64_t images);

}  // namespace kiln
