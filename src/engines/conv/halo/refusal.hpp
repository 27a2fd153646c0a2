// Why the engines that keep a source's halo in shared memory are not for a problem: nothing where
// they are.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "device/device.hpp"
#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// Whatever its layout.
std::optional<Refusal> halo_refusal(const ConvolutionProblem& problem, const Gather& gather,
                                    const DeviceDescription& device);

// Of those that copy channels that lie side by side.
std::optional<Refusal> channels_last_refusal(const ConvolutionProblem& problem,
                                             const Gather& gather);

// How many taps a stage of the filter may hold where channels lie apart, the most first: rows of
// them, which of one channel lie side by side. None if the filter lies otherwise.
std::vector<int> tap_groups(const Gather& gather, std::int64_t most);

// Of those that gather elements whose channels lie apart, at most so many taps in a stage.
std::optional<Refusal> planar_refusal(const ConvolutionProblem& problem, const Gather& gather,
                                      std::int64_t most_taps);

// Whether offsets fit into 32 bits, from a tile's first image on, of which it meets at most so
// many, and within the filter; those included that are worked out beyond the last channel or row
// and not read from. Tiles of so many rows, channels in chunks of so many.
bool narrow_offsets(const ConvolutionProblem& problem, const Gather& gather, std::int64_t tile_rows,
                    std::int64_t chunk_channels, std::int64_t images);

}  // namespace kiln
