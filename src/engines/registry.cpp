// The engines in the order in which they are asked; of each operation's, the last takes every legal
// problem.
#include <algorithm>

#include "core/error.hpp"
#include "engines/direct.hpp"
#include "engines/direct_wgrad.hpp"
#include "engines/engine.hpp"
#include "engines/halo_gemm.hpp"
#include "engines/halo_gemm_planar.hpp"
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
  static const HaloGemmEngine halo_gemm;
  static const HaloGemmPlanarEngine halo_gemm_planar;
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
  static const Engine* const list[] = {&halo_gemm,         &halo_gemm_planar,
                                       &implicit_gemm_mma, &implicit_gemm_fma,
                                       &sliding_window,    &direct,
                                       &wgrad_mma,         &wgrad_fma,
                                       &direct_wgrad,      &pooling_backward_tiled,
                                       &pooling,           &softmax,
                                       &softmax_online,    &transpose,
                                       &pointwise,         &reduction};
  return list;
}

namespace {

// Engines multiply sizes and strides without a thought of overflow. An empty batch counts as one
// image, whose kernel is that of every batch.
void check_extent(const Problem& problem) {
  constexpr std::int64_t most_elements = std::int64_t{1} << 48;
  constexpr std::int64_t most_stride = std::int64_t{1} << 52;
  for (Operand& operand : operands_of(problem)) {
    operand.dims[0] = std::max<std::int64_t>(operand.dims[0], 1);
    if (operand.count() > most_elements)
      fail(KILN_STATUS_NOT_SUPPORTED, "no engine takes ", text_of(problem), ": ", operand.name,
           " has ", operand.count(), " elements; expected at most 2^48");
    for (const std::int64_t stride : operand.strides)
      if (stride > most_stride)
        fail(KILN_STATUS_NOT_SUPPORTED, "no engine takes ", text_of(problem), ": ", operand.name,
             " has a stride of ", stride, "; expected at most 2^52");
  }
}

}  // namespace

Proposal choose(const Problem& problem, const DeviceDescription& device, const std::string& only,
                std::vector<EngineRefusal>& refusals) {
  check_extent(problem);
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
