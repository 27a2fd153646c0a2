#include "engines/conv/dense/epilogue/moments.hpp"

#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/channel_sums/moments_finish.hpp"
#include "engines/conv/dense/promotion.hpp"
#include "engines/conv/dense/refusal.hpp"
#include "engines/conv/maps/tensor_maps.hpp"

namespace kiln {

Refusal dense_moments_refusal(const ConvolutionProblem& problem, const Gather& gather) {
  if (!problem.epilogue.moments) return {};
  if (problem.pass != ConvolutionPass::fprop) return "the moments of a transposed convolution";
  if (problem.batch == 0) return "the moments of an empty batch";
  if (dense_store_pixels(problem, gather) > 0)
    return "the moments of a result whose channels are not contiguous";
  const std::int64_t channels = dense_lines(problem, gather, 0).channels,
                     steps = gather.most_taps() * ceil_div(gather.channels, channels);
  if (steps > dense_promotion(channels))
    return cat("the moments of sums over ", gather.channels * gather.most_taps(),
               " products, which are promoted; expected at most ",
               dense_promotion(channels) * channels);
  return {};
}

Proposal with_moments(Proposal plain, const RowParts& parts, const ConvolutionProblem& problem,
                      const DeviceDescription& device) {
  Proposal out = std::move(plain);
  out.first().kernel.file = "conv/dense/epilogue/dense_moments_wgmma.cu";
  out.first().kernel.entry = "dense_moments_wgmma";
  out.first().kernel.tile += ", moments in the epilogue";
  LaunchSpec& launch = out.first().launch;
  launch.shape.grid[0] = static_cast<std::uint32_t>(parts.blocks());
  const std::size_t partials = launch.parameters.size();
  launch.parameters.resize(partials + tensor_map_alignment);
  launch.patches.push_back({LaunchSpec::Hole::workspace, 0, static_cast<std::uint16_t>(partials)});
  out.steps.push_back(moments_finish({parts.padded_rows(), parts.parts(), parts.pixel_tiles,
                                      parts.tile_pixels, parts.pixels, device.multiprocessors},
                                     problem, out.first().kernel.engine));
  out.workspace = parts.workspace(partial_moments_bytes);
  return out;
}

}  // namespace kiln
