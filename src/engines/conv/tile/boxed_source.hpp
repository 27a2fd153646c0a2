// Kernels of one gather in a plane whose source the copy engine brings in boxes.
#pragma once

#include <cstdint>
#include <string>

#include "engines/conv/gather.hpp"
#include "engines/engine.hpp"

namespace kiln {

// The reason why a device cannot copy boxes by tensor maps (TMA); "" if it can.
std::string boxes_refusal(const DeviceDescription& device);

// The tensor map for boxes of one image of a channels-last source.
struct PixelsBox {
  std::int64_t channels, columns, rows;
};
// {channel, w, h, n} of the source, and of a gather's output, which has one phase.
TensorMapSpec source_map(const ConvolutionProblem& problem, const Gather& gather,
                         const PixelsBox& box);
TensorMapSpec output_map(const ConvolutionProblem& problem, const Gather& gather,
                         const PixelsBox& box);

struct BlockShape {
  std::int64_t threads, shared_memory;
};
// A launch with BoxedGatherParams; tiles: of pixels, of one tile of channels.
LaunchSpec boxed_gather_launch(const ConvolutionProblem& problem, const Gather& gather,
                               const PixelsBox& box, std::int64_t tiles, std::int64_t blocks,
                               const BlockShape& shape);

}  // namespace kiln
