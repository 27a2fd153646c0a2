// The engines in the order in which they are asked; of each operation's, the last takes every legal
// problem.
#include "core/error.hpp"
#include "engines/direct.hpp"
#include "engines/direct_wgrad.hpp"
#include "engines/engine.hpp"
#include "engines/implicit_gemm.hpp"
#include "engines/pointwise.hpp"
#include "engines/pooling.hpp"
#include "engines/pooling_backward_tiled.hpp"
#include "engines/reduction.hpp"
#include "engines/sliding_window.hpp"
#include "engines/softmax.hpp"
#include "engines/softmax_online.hpp"
#include "engines/transpose.hpp"
#include "engines/wgrad_gemm.hpp"

namespace kiln {

std::span<const Engine* const> engines() {
  static const ImplicitGemmMmaEngine implicit_gemm_mma;
  static const ImplicitGemmFmaEngine implicit_gemm_fma;
  static const SlidingWindowEngine sliding_window;
  static const DirectEngine direct;
  static const WgradMmaEngine wgrad_mma;
  static const WgradFmaEngine wgrad_fma;
  static const DirectWgradEngine direct_wgrad;
  static const PoolingBackwardTiledEngine pooling_backward_tiled;
  static const PoolingEngine pooling;
  static const SoftmaxEngine softmax;
  static const SoftmaxOnlineEngine softmax_online;
  static const TransposeEngine transpose;
  static const PointwiseEngine pointwise;
  static const ReductionEngine reduction;
  static const Engine* const list[] = {
      &implicit_gemm_mma, &implicit_gemm_fma, &sliding_window, &direct,
      &wgrad_mma,         &wgrad_fma,         &direct_wgrad,   &pooling_backward_tiled,
      &pooling,           &softmax,           &softmax_online, &transpose,
      &pointwise,         &reduction};
  return list;
}

Proposal choose(const Problem& problem, const DeviceDescription& device, const std::string& only,
                std::vector<EngineRefusal>& refusals) {
  for (const Engine* engine : engines()) {
    if (!only.empty() && only != engine->name()) continue;
    if (!engine->is_for(problem)) continue;
    auto answer = engine->propose(problem, device);
    if (auto* proposal = std::get_if<Proposal>(&answer)) return std::move(*proposal);
    refusals.push_back({engine->name(), std::move(std::get<Refusal>(answer).reason)});
  }
  std::string reasons;
  for (const EngineRefusal& refusal : refusals)
    reasons += cat(reasons.empty() ? "" : "; ", refusal.engine, ": ", refusal.reason);
  if (reasons.empty()) reasons = cat("there is no engine named ", only, " for this operation");
  fail(KILN_STATUS_NOT_SUPPORTED, "no engine takes ", text_of(problem), ": ", reasons);
}

}  // namespace kiln
