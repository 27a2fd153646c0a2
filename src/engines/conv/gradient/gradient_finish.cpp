#include "engines/conv/gradient/gradient_finish.hpp"

#include <algorithm>
#include <string_view>

#include "conv/gradient/params.h"
#include "core/integer.hpp"
#include "core/text.hpp"

namespace kiln {

Step gradient_finish(const PartsOfSums& of, const ConvolutionProblem& problem,
                     const std::string& engine) {
  constexpr std::int64_t channels_of_block = 8, sharing = 32, threads = channels_of_block * sharing;
  const std::vector<Operand> operands = operands_of(problem);
  const std::int64_t channels = operands.back().dims[1];
  Step out;
  KernelSpec& spec = out.kernel;
  spec.engine = engine;
  spec.file = "conv/gradient/finish.cu";
  spec.entry = "gradient_finish";
  spec.tile = cat(channels_of_block, " channels, ", sharing, " threads each");
  spec.constants = {{"MOST", ceil_div(std::max(of.at_most, of.parts), sharing),
                     "parts that a thread loads, at most"}};
  spec.shared_memory = static_cast<std::uint32_t>(2 * threads / 32 * channels_of_block * 4);
  LaunchSpec& launch = out.launch;
  launch.shape.grid = {static_cast<std::uint32_t>(ceil_div(channels, channels_of_block)), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(threads), 1, 1};
  launch.shape.shared_memory = spec.shared_memory;
  GradientFinishParams params{};
  params.channels = static_cast<unsigned>(channels);
  params.rows = static_cast<unsigned>(of.rows);
  params.parts = static_cast<unsigned>(of.parts);
  launch.set_parameters(params);
  using Hole = LaunchSpec::Hole;
  launch.patches.push_back({Hole::workspace, 0, offsetof(GradientFinishParams, partials)});
  const auto patch = [&](std::string_view name, std::size_t offset) {
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (operands[i].name == name)
        launch.patches.push_back(
            {Hole::operand, static_cast<std::uint8_t>(i), static_cast<std::uint16_t>(offset)});
  };
  patch("norm_deviation", offsetof(GradientFinishParams, deviation));
  patch("norm_dscale", offsetof(GradientFinishParams, dscale));
  patch("norm_dbias", offsetof(GradientFinishParams, dbias));
  return out;
}

}  // namespace kiln
