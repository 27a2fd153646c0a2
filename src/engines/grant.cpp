#include "engines/grant.hpp"

#include "core/text.hpp"

namespace kiln {

std::string flags_of(const Grant& grant) {
  return cat(grant.only_engine.empty() ? "" : cat("--engine ", grant.only_engine, " "),
             grant.workspace == 0 ? "" : cat("--workspace ", grant.workspace, " "));
}

Winner name_of(const KernelSpec& kernel, const LaunchSpec& launch) {
  return {kernel.engine, kernel.tile, static_cast<int>(launch.shape.cluster)};
}

std::string describe(const Winner& winner) {
  return cat(winner.engine, " ", winner.tile,
             winner.parts > 1 ? cat(", ", winner.parts, " parts") : "");
}

}  // namespace kiln
