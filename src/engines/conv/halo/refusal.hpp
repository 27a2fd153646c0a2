// The refusals of the engines that keep the source's halo in shared memory; none if they take the
// problem.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "device/device.hpp"
#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// The refusal for reasons that do not depend on the layout.
Refusal halo_refusal(const ConvolutionProblem& problem, const Gather& gather,
                     const DeviceDescription& device);

// The refusal if no tile fits.
inline constexpr const char* no_halo_fits =
    "the halo of no tile fits into shared memory, or offsets into 32 bits";

// NHWC: the refusal of engines that copy 16 bytes of channels at a time.
Refusal channels_last_refusal(const ConvolutionProblem& problem, const Gather& gather);

// NCHW: how many taps a stage of the filter may hold, largest first: whole rows of taps that are
// contiguous in one channel. None if the filter has another layout.
std::vector<int> tap_groups(const Gather& gather, std::int64_t most);

// NCHW: the refusal of engines that gather single elements, with at most most_taps taps in a stage.
Refusal planar_refusal(const ConvolutionProblem& problem, const Gather& gather,
                       std::int64_t most_taps);

// Whether offsets fit into 32 bits, counted from a tile's first image (a tile touches at most
// `images`) and within the filter. Includes offsets beyond the last channel or row, which are
// computed but not read.
bool narrow_offsets(const ConvolutionProblem& problem, const Gather& gather, std::int64_t tile_rows,
                    std::int64_t chunk_channels, std::int64_t images);

}  // namespace kiln
