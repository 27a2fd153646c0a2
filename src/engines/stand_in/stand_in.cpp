#include "engines/stand_in/stand_in.hpp"

#include <utility>

#include "core/error.hpp"

namespace kiln {
namespace {

// The engine whose kernel is a short loop, which compiles fast; null if there is none.
const char* last_resort(const Problem& problem) {
  if (const auto* convolution = std::get_if<ConvolutionProblem>(&problem))
    return convolution->pass == ConvolutionPass::wgrad ? "wgrad_direct" : "direct";
  if (std::holds_alternative<MatmulProblem>(problem)) return "direct";
  return std::holds_alternative<LocalProblem>(problem) ? "local_direct" : nullptr;
}

// The engines whose kernels serve every shape.
constexpr const char* for_every_shape[] = {"stand_in_dense",  "stand_in_wgrad_dense",
                                           "stand_in_gemm",   "stand_in_wgrad_gemm",
                                           "stand_in_direct", "stand_in_wgrad_direct"};

std::optional<Choice> by_engine(const char* engine, const Problem& problem,
                                const DeviceDescription& device, const Grant& grant) {
  std::vector<EngineRefusal> refusals;
  try {
    return choose(problem, device, {engine, grant.workspace}, refusals, nullptr);
  } catch (const Error& error) {
    if (error.status() != KILN_STATUS_NOT_SUPPORTED) throw;
    return std::nullopt;
  }
}

}  // namespace

std::optional<StandIn> stand_in(const Problem& problem, const DeviceDescription& device,
                                const Grant& grant) {
  std::optional<Choice> best;
  if (std::holds_alternative<ConvolutionProblem>(problem) ||
      std::holds_alternative<MatmulProblem>(problem))
    for (const char* const engine : for_every_shape)
      if (auto choice = by_engine(engine, problem, device, grant);
          choice && (!best || choice->seconds < best->seconds))
        best = std::move(choice);
  if (best) return StandIn{std::move(*best), true};
  const char* const engine = last_resort(problem);
  if (engine == nullptr) return std::nullopt;
  if (auto choice = by_engine(engine, problem, device, grant))
    return StandIn{std::move(*choice), false};
  return std::nullopt;
}

}  // namespace kiln
