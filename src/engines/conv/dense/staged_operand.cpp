#include "engines/conv/dense/staged_operand.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "engines/choice.hpp"
#include "pointwise/pointwise_params.h"
#include "problem/pointwise.hpp"

namespace kiln {

std::size_t StagedOperand::bytes() const {
  std::int64_t elements = 1;
  for (int i = 0; i < to.rank; ++i) elements *= to.dims[i];
  return static_cast<std::size_t>(elements) * size_of(to.type);
}

Proposal behind_staging(Proposal second, const ConvolutionProblem& problem,
                        const StagedOperand& operand, const DeviceDescription& device) {
  std::vector<EngineRefusal> refusals;
  Proposal first = choose(make_transform(operand.from, operand.to), device, {}, refusals);
  first.kernel.engine = second.kernel.engine;
  first.kernel.tile = second.kernel.tile;
  first.kernel.alignment = std::max(first.kernel.alignment, second.kernel.alignment);

  // It reads the operand, writes the workspace, and scales by nothing of the caller's.
  const std::vector<Operand> operands = operands_of(problem);
  const auto found = std::find_if(operands.begin(), operands.end(), [&](const Operand& each) {
    return each.name == std::string_view(operand.name);
  });
  const auto number = static_cast<std::uint8_t>(found - operands.begin());
  for (LaunchSpec::Map& map : second.launch.maps)
    if (map.operand == number) map.operand = LaunchSpec::Map::workspace;
  using Hole = LaunchSpec::Hole;
  PointwiseParams params;
  std::memcpy(&params, first.launch.parameters.data(), sizeof params);
  params.alpha = 1;
  params.beta = 0;
  std::memcpy(first.launch.parameters.data(), &params, sizeof params);
  std::erase_if(first.launch.patches,
                [](const LaunchSpec::Patch& patch) { return patch.hole != Hole::operand; });
  for (LaunchSpec::Patch& patch : first.launch.patches) {
    patch.hole = patch.operand == 0 ? Hole::operand : Hole::workspace;
    patch.operand = number;
  }
  first.launch.empty = second.launch.empty;
  first.workspace = operand.bytes();
  first.then.push_back(std::move(static_cast<Step&>(second)));
  return first;
}

}  // namespace kiln
