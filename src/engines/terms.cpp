#include "engines/terms.hpp"

#include "core/text.hpp"

namespace kiln {

std::string flags_of(const Terms& terms) {
  return cat(terms.only_engine.empty() ? "" : cat("--engine ", terms.only_engine, " "),
             terms.workspace == 0 ? "" : cat("--workspace ", terms.workspace, " "));
}

Winner name_of(const KernelSpec& kernel, const LaunchSpec& launch) {
  return {kernel.engine, kernel.tile, static_cast<int>(launch.shape.cluster)};
}

std::string describe(const Winner& winner) {
  return cat(winner.engine, " ", winner.tile,
             winner.parts > 1 ? cat(", ", winner.parts, " parts") : "");
}

}  // namespace kiln
