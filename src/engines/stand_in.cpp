#include "engines/stand_in.hpp"

#include "core/error.hpp"

namespace kiln {
namespace {

// The engine whose kernel is one short loop; null where there is none.
const char* last_resort(const Problem& problem) {
  if (const auto* convolution = std::get_if<ConvolutionProblem>(&problem))
    return convolution->pass == ConvolutionPass::wgrad ? "wgrad_direct" : "direct";
  return std::holds_alternative<LocalProblem>(problem) ? "local_direct" : nullptr;
}

}  // namespace

std::optional<StandIn> stand_in(const Problem& problem, const DeviceDescription& device,
                                const Terms& terms) {
  const char* const engine = last_resort(problem);
  if (engine == nullptr) return std::nullopt;
  std::vector<EngineRefusal> refusals;
  try {
    return StandIn{choose(problem, device, {engine, terms.workspace}, refusals, nullptr), false};
  } catch (const Error& error) {
    if (error.status() != KILN_STATUS_NOT_SUPPORTED) throw;
    return std::nullopt;
  }
}

}  // namespace kiln
