#include "engines/conv/channel_sums/channel_finish.hpp"

#include <utility>

#include "core/integer.hpp"
#include "core/text.hpp"

namespace kiln {

Step channel_finish(const std::string& engine, std::string file, std::string entry,
                    std::int64_t channels, std::int64_t parts) {
  constexpr std::int64_t channels_of_block = 8, sharing = 32, threads = channels_of_block * sharing;
  Step out;
  KernelSpec& spec = out.kernel;
  spec.engine = engine;
  spec.file = std::move(file);
  spec.entry = std::move(entry);
  spec.tile = cat(channels_of_block, " channels, ", sharing, " threads each");
  spec.constants = {{"MOST", ceil_div(parts, sharing), "parts that a thread loads, at most"}};
  spec.shared_memory = static_cast<std::uint32_t>(2 * threads / 32 * channels_of_block * 4);
  LaunchSpec& launch = out.launch;
  launch.shape.grid = {static_cast<std::uint32_t>(ceil_div(channels, channels_of_block)), 1, 1};
  launch.shape.block = {static_cast<std::uint32_t>(threads), 1, 1};
  launch.shape.shared_memory = spec.shared_memory;
  return out;
}

void patch_operand(LaunchSpec& launch, const std::vector<Operand>& operands, std::string_view name,
                   std::size_t offset) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (operands[i].name == name)
      launch.patches.push_back({LaunchSpec::Hole::operand, static_cast<std::uint8_t>(i),
                                static_cast<std::uint16_t>(offset)});
}

}  // namespace kiln
