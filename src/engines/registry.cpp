// The engines in the order in which they are asked; of each operation's, the last takes every legal
// problem.
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

std::span<const Engine* const> engines() {
  static const HaloWgmmaEngine halo_wgmma;
  static const HaloWgmmaPlanarEngine halo_wgmma_planar;
  static const HaloGemmEngine halo_gemm;
  static const HaloGemmWgmmaEngine halo_gemm_wgmma;
  static const HaloGemmPlanarEngine halo_gemm_planar;
  static const HaloGemmPlanarWgmmaEngine halo_gemm_planar_wgmma;
  static const FewChannelsEngine few_channels;
  static const FewChannelsWgmmaEngine few_channels_wgmma;
  static const FewRowsEngine few_rows;
  static const FewRowsWgmmaEngine few_rows_wgmma;
  static const ImplicitGemmMmaEngine implicit_gemm_mma;
  static const ImplicitGemmFmaEngine implicit_gemm_fma;
  static const SlidingWindowEngine sliding_window;
  static const DirectEngine direct;
  static const WgradChannelsLastEngine wgrad_channels_last;
  static const WgradPlanarEngine wgrad_planar;
  static const WgradPlanarWgmmaEngine wgrad_planar_wgmma;
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
  static const Engine* const list[] = {&halo_wgmma,
                                       &halo_wgmma_planar,
                                       &halo_gemm,
                                       &halo_gemm_wgmma,
                                       &halo_gemm_planar,
                                       &halo_gemm_planar_wgmma,
                                       &few_channels,
                                       &few_channels_wgmma,
                                       &few_rows,
                                       &few_rows_wgmma,
                                       &implicit_gemm_mma,
                                       &implicit_gemm_fma,
                                       &sliding_window,
                                       &direct,
                                       &wgrad_channels_last,
                                       &wgrad_planar,
                                       &wgrad_planar_wgmma,
                                       &wgrad_mma,
                                       &wgrad_fma,
                                       &direct_wgrad,
                                       &pooling_backward_tiled,
                                       &pooling,
                                       &softmax,
                                       &softmax_online,
                                       &transpose,
                                       &pointwise,
                                       &reduction};
  return list;
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
