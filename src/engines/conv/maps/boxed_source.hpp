// Launches and tensor maps of two-dimensional gathers whose source the copy engine (TMA) loads in
// boxes.
#pragma once

#include <cstdint>
#include <string>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// The reason why a device cannot copy boxes by tensor maps (TMA); "" if it can.
Refusal boxes_refusal(const DeviceDescription& device);

// Source positions along height (1) or width (2) that `pixels` pixels beside each other read.
std::int64_t places_met(const Gather& gather, int i, std::int64_t pixels);

// The refusal of more tiles of pixels than `most`.
Refusal pixel_tiles_refusal(std::int64_t tiles, std::int64_t most);

// Blocks that take so many tiles in turn: as many as the chip has places for, or fewer if the
// longest-running block would take no longer; at least one.
std::int64_t blocks_in_turn(std::int64_t tiles, std::int64_t places);

// A box of one image of a channels-last tensor.
struct PixelsBox {
  std::int64_t channels, columns, rows;
};
// Tensor maps {channel, w, h, n} of the source and of the output. The gather has one phase.
TensorMapSpec source_map(const ConvolutionProblem& problem, const Gather& gather,
                         const PixelsBox& box);
TensorMapSpec output_map(const ConvolutionProblem& problem, const Gather& gather,
                         const PixelsBox& box);

struct BlockShape {
  std::int64_t threads, shared_memory;
};
// A launch with BoxedGatherParams. tiles: the number of tiles of pixels.
LaunchSpec boxed_gather_launch(const ConvolutionProblem& problem, const Gather& gather,
                               const PixelsBox& box, std::int64_t tiles, std::int64_t blocks,
                               const BlockShape& shape);

}  // namespace kiln
