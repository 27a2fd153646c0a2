#include "engines/conv/maps/boxed_source.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "conv/geometry/boxed_gather_params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/maps/map_refusal.hpp"

namespace kiln {
namespace {

TensorMapSpec map_of(DataType type, std::int64_t batch, std::int64_t channels,
                     const Spatial& places, const Dims& from, const PixelsBox& box) {
  const auto element = static_cast<std::int64_t>(size_of(type));
  TensorMapSpec map;
  map.type = type;
  map.rank = 4;
  map.swizzled = false;
  map.sizes = {channels, places[2], places[1], batch, 0};
  // A dimension of size 1 may have any stride, but tensor maps take none of 0.
  std::int64_t dense = channels * element;
  const std::int64_t strides[] = {from[4], from[3], from[0]};
  for (int i = 0; i < 3; ++i) {
    map.strides[i] = map.sizes[i + 1] == 1 ? dense : strides[i] * element;
    dense = map.strides[i] * map.sizes[i + 1];
  }
  map.box = {box.channels, box.columns, box.rows, 1, 1};
  return map;
}

}  // namespace

Refusal boxes_refusal(const DeviceDescription& device) {
  if (device.kind != KILN_DEVICE_HOST && device.compute_capability < 90)
    return cat("the architecture is ", device.arch, "; the copy engine needs sm_90 or later");
  return copy_engine_refusal(device);
}

std::int64_t places_met(const Gather& gather, int i, std::int64_t pixels) {
  return (pixels - 1) * gather.stride[i] +
         (gather.phases.front().taps[i] - 1) * std::abs(gather.step[i]) + 1;
}

Refusal pixel_tiles_refusal(std::int64_t tiles, std::int64_t most) {
  if (tiles > most) return cat(tiles, " tiles of pixels; expected at most ", most);
  return {};
}

std::int64_t blocks_in_turn(std::int64_t tiles, std::int64_t places) {
  const std::int64_t some = std::max<std::int64_t>(tiles, 1);
  return ceil_div(some, ceil_div(some, std::max<std::int64_t>(places, 1)));
}

TensorMapSpec source_map(const ConvolutionProblem& problem, const Gather& gather,
                         const PixelsBox& box) {
  return map_of(problem.type(), problem.batch, gather.groups * gather.channels, gather.source,
                gather.source_strides, box);
}

TensorMapSpec output_map(const ConvolutionProblem& problem, const Gather& gather,
                         const PixelsBox& box) {
  return map_of(problem.type(), problem.batch, gather.groups * gather.rows,
                gather.phases.front().pixels, gather.out_strides, box);
}

LaunchSpec boxed_gather_launch(const ConvolutionProblem& problem, const Gather& gather,
                               const PixelsBox& box, std::int64_t tiles, std::int64_t blocks,
                               const BlockShape& shape) {
  LaunchSpec launch =
      gather_launch(problem, tiles, blocks, static_cast<std::uint32_t>(shape.threads),
                    static_cast<std::uint32_t>(shape.shared_memory));
  launch.parameters.resize(sizeof(BoxedGatherParams));
  const std::vector<Operand> operands = operands_of(problem);
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].name == std::string_view(dgrad ? "dy" : "x"))
      launch.maps.push_back({source_map(problem, gather, box), static_cast<std::uint8_t>(i), 0,
                             offsetof(BoxedGatherParams, source)});
  return launch;
}

}  // namespace kiln
