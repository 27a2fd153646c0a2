// The engines in the order in which they are asked; of each operation's, the last takes every legal
// problem.
#include "core/per_process.hpp"
#include "engines/cost_model.hpp"
#include "engines/direct.hpp"
#include "engines/direct_wgrad.hpp"
#include "engines/engine.hpp"
#include "engines/few_channels.hpp"
#include "engines/few_rows.hpp"
#include "engines/halo_gemm.hpp"
#include "engines/halo_gemm_planar.hpp"
#include "engines/halo_wgmma.hpp"
#include "engines/halo_wgmma_planar.hpp"
#include "engines/implicit_gemm.hpp"
#include "engines/pointwise.hpp"
#include "engines/pooling.hpp"
#include "engines/pooling_backward_tiled.hpp"
#include "engines/reduction.hpp"
#include "engines/sliding_window.hpp"
#include "engines/softmax.hpp"
#include "engines/softmax_online.hpp"
#include "engines/transpose.hpp"
#include "engines/wgrad_channels_last.hpp"
#include "engines/wgrad_gemm.hpp"
#include "engines/wgrad_planar.hpp"

namespace kiln {

namespace {

template <class... Engines>
std::vector<const Engine*> make_engines() {
  return {new Engines...};
}

}  // namespace

std::span<const Engine* const> engines() {
  static constinit Once<std::vector<const Engine*>> all("engines");
  return all.get(
      make_engines<HaloWgmmaEngine, HaloWgmmaPlanarEngine, HaloGemmEngine, HaloGemmWgmmaEngine,
                   HaloGemmPlanarEngine, HaloGemmPlanarWgmmaEngine, FewChannelsEngine,
                   FewChannelsWgmmaEngine, FewRowsEngine, FewRowsWgmmaEngine, ImplicitGemmMmaEngine,
                   ImplicitGemmFmaEngine, SlidingWindowEngine, DirectEngine,
                   WgradChannelsLastEngine, WgradPlanarEngine, WgradPlanarWgmmaEngine,
                   WgradMmaEngine, WgradFmaEngine, DirectWgradEngine, PoolingBackwardTiledEngine,
                   PoolingEngine, SoftmaxEngine, SoftmaxOnlineEngine, TransposeEngine,
                   PointwiseEngine, ReductionEngine>);
}

double OneKernelEngine::seconds(const Problem& problem, const DeviceDescription& device) const {
  return memory_bound_seconds(work_of(problem, false).bytes, device);
}

std::variant<std::vector<Candidate>, Refusal> OneKernelEngine::candidates(
    const Problem& problem, const DeviceDescription& device) const {
  auto answer = propose(problem, device);
  if (auto* refusal = std::get_if<Refusal>(&answer)) return std::move(*refusal);
  std::vector<Candidate> one(1);
  one[0].seconds = seconds(problem, device);
  one[0].made = std::move(std::get<Proposal>(answer));
  return one;
}

Proposal OneKernelEngine::make(const Problem&, const DeviceDescription&,
                               Candidate candidate) const {
  return std::move(candidate.made).value();
}

}  // namespace kiln
