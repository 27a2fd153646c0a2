#include "engines/conv/moments/moments_finish.hpp"

#include <algorithm>
#include <string_view>

#include "conv/moments/params.h"
#include "core/integer.hpp"
#include "core/text.hpp"

namespace kiln {

Step moments_finish(const PartsOfMoments& of, const ConvolutionProblem& problem,
                    const std::string& engine) {
  constexpr std::int64_t channels_of_block = 8, sharing = 32, threads = channels_of_block * sharing;
  const std::vector<Operand> operands = operands_of(problem);
  const std::int64_t channels = operands.back().dims[1];
  Step out;
  KernelSpec& spec = out.kernel;
  spec.engine = engine;
  spec.file = "conv/moments/finish.cu";
  spec.entry = "moments_finish";
  spec.tile = cat(channels_of_block, " channels, ", sharing, " threads each");
  spec.constants = {{"MOST", ceil_div(std::max(of.at_most, of.parts), sharing),
                     "parts that a thread loads, at most"}};
  spec.shared_memory = static_cast<std::uint32_t>(2 * threads / 32 * channels_of_block * 4);
  LaunchSpec& launch = out.launch;
  launch.shape.grid = {static_cast<std::uint32_t>(ceil_div(channels, channels_of_block)), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(threads), 1, 1};
  launch.shape.shared_memory = spec.shared_memory;
  MomentsFinishParams params{};
  params.pixels = of.pixels;
  params.channels = static_cast<unsigned>(channels);
  params.rows = static_cast<unsigned>(of.rows);
  params.parts = static_cast<unsigned>(of.parts);
  params.tiles = static_cast<unsigned>(of.tiles / of.parts);
  params.more = static_cast<unsigned>(of.tiles % of.parts);
  params.last = static_cast<unsigned>((of.tiles - 1) % of.parts);
  params.tile_pixels = static_cast<unsigned>(of.tile_pixels);
  params.beyond = static_cast<unsigned>(of.tiles * of.tile_pixels - of.pixels);
  launch.set_parameters(params);
  using Hole = LaunchSpec::Hole;
  launch.patches.push_back({Hole::workspace, 0, offsetof(MomentsFinishParams, partials)});
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].name == std::string_view("moments"))
      launch.patches.push_back(
          {Hole::operand, static_cast<std::uint8_t>(i), offsetof(MomentsFinishParams, moments)});
  return out;
}

}  // namespace kiln
