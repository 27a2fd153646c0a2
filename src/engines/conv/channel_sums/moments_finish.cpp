#include "engines/conv/channel_sums/moments_finish.hpp"

#include <algorithm>
#include <vector>

#include "conv/channel_sums/moments_params.h"
#include "engines/conv/channel_sums/channel_finish.hpp"

namespace kiln {

Step moments_finish(const PartsOfMoments& of, const ConvolutionProblem& problem,
                    const std::string& engine) {
  const std::vector<Operand> operands = operands_of(problem);
  const std::int64_t channels = operands.back().dims[1];
  Step out = channel_finish(engine, "conv/channel_sums/moments_finish.cu", "moments_finish",
                            channels, std::max(of.at_most, of.parts));
  LaunchSpec& launch = out.launch;
  MomentsFinishParams params{};
  params.pixels = of.pixels;
  params.channels = static_cast<unsigned>(channels);
  params.rows = static_cast<unsigned>(of.rows);
  params.parts = static_cast<unsigned>(of.parts);
  out.kernel.constants.push_back({"COUNTED", of.counted, "parts say how many elements they have"});
  if (!of.counted) {
    params.tiles = static_cast<unsigned>(of.tiles / of.parts);
    params.more = static_cast<unsigned>(of.tiles % of.parts);
    params.last = static_cast<unsigned>((of.tiles - 1) % of.parts);
    params.tile_pixels = static_cast<unsigned>(of.tile_pixels);
    params.beyond = static_cast<unsigned>(of.tiles * of.tile_pixels - of.pixels);
  }
  launch.set_parameters(params);
  launch.patches.push_back(
      {LaunchSpec::Hole::workspace, 0, offsetof(MomentsFinishParams, partials)});
  patch_operand(launch, operands, "moments", offsetof(MomentsFinishParams, moments));
  return out;
}

}  // namespace kiln
