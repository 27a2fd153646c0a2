// The engines and rewrites in the order in which they are asked. The last engine of each operation
// takes every legal problem.
#include "core/process/per_process.hpp"
#include "engines/conv/dense/dense_halo_nchw_wgmma.hpp"
#include "engines/conv/dense/dense_halo_nhwc_wgmma.hpp"
#include "engines/conv/dense/dense_wgmma.hpp"
#include "engines/conv/dense/wgrad/wgrad_dense_wgmma.hpp"
#include "engines/conv/direct/depthwise_fma.hpp"
#include "engines/conv/direct/depthwise_halo_nhwc_fma.hpp"
#include "engines/conv/direct/depthwise_nhwc_fma.hpp"
#include "engines/conv/direct/depthwise_rows_nhwc_fma.hpp"
#include "engines/conv/direct/direct.hpp"
#include "engines/conv/direct/wgrad_depthwise_fma.hpp"
#include "engines/conv/direct/wgrad_depthwise_nhwc_fma.hpp"
#include "engines/conv/direct/wgrad_depthwise_rows_nhwc_fma.hpp"
#include "engines/conv/direct/wgrad_direct.hpp"
#include "engines/conv/few_input_channels/few_input_channels.hpp"
#include "engines/conv/few_input_channels/few_input_channels_nhwc_mma.hpp"
#include "engines/conv/few_output_channels/few_output_channels.hpp"
#include "engines/conv/few_rows/few_rows.hpp"
#include "engines/conv/grouped/grouped_halo_nhwc_mma.hpp"
#include "engines/conv/grouped/grouped_nhwc_mma.hpp"
#include "engines/conv/grouped/wgrad_depthwise_nhwc_mma.hpp"
#include "engines/conv/grouped/wgrad_grouped_nhwc_mma.hpp"
#include "engines/conv/halo/recipe.hpp"
#include "engines/conv/implicit_gemm/implicit_gemm.hpp"
#include "engines/conv/recipe/recipe_engine.hpp"
#include "engines/conv/toeplitz/toeplitz_nhwc_mma.hpp"
#include "engines/conv/toeplitz/wgrad_toeplitz_nhwc_mma.hpp"
#include "engines/conv/wgrad/wgrad_few_channels_mma.hpp"
#include "engines/conv/wgrad/wgrad_implicit_gemm.hpp"
#include "engines/conv/wgrad/wgrad_nchw.hpp"
#include "engines/conv/wgrad/wgrad_nhwc_mma.hpp"
#include "engines/cost/cost_model.hpp"
#include "engines/engine.hpp"
#include "engines/local/local_dgrad_fma.hpp"
#include "engines/local/local_direct.hpp"
#include "engines/local/local_fma.hpp"
#include "engines/local/wgrad_local_fma.hpp"
#include "engines/normalization/normalization.hpp"
#include "engines/normalization/normalization_rows.hpp"
#include "engines/pointwise/pointwise.hpp"
#include "engines/pointwise/transpose.hpp"
#include "engines/pooling/pooling.hpp"
#include "engines/pooling/pooling_backward_tiled.hpp"
#include "engines/reduction/reduction.hpp"
#include "engines/rewrite/channels_last_copies.hpp"
#include "engines/rewrite/patches.hpp"
#include "engines/rewrite/result_pass.hpp"
#include "engines/rewrite/stride_phases.hpp"
#include "engines/rewrite/wgrad_channels_first_copies.hpp"
#include "engines/softmax/softmax.hpp"
#include "engines/softmax/softmax_online.hpp"
#include "engines/stand_in/stand_in_dense.hpp"
#include "engines/stand_in/stand_in_direct.hpp"
#include "engines/stand_in/stand_in_gemm.hpp"

namespace kiln {

namespace {

template <class Type>
const Method* one() {
  return new Type;
}
template <class Tile>
const Method* one(const Recipe<Tile>& recipe) {
  return new RecipeEngine(recipe);
}

}  // namespace

std::span<const Method* const> methods() {
  static constinit Once<std::vector<const Method*>> all("engines");
  return all.get([] {
    return std::vector<const Method*>{one(dense_nhwc_wgmma),
                                      one(dense_nchw_wgmma),
                                      one<MomentsPass>(),
                                      one<GradientPass>(),
                                      one<ChannelsLastCopies>(),
                                      one<PatchesNhwc>(),
                                      one<StridePhases>(),
                                      one(dense_halo_nhwc_wgmma),
                                      one(dense_halo_nchw_wgmma),
                                      one(halo_nhwc_wgmma),
                                      one(halo_nchw_wgmma),
                                      one(halo_nhwc_mma),
                                      one(halo_nhwc_wgmma_swap),
                                      one(halo_nchw_mma),
                                      one(halo_nchw_wgmma_swap),
                                      one(few_input_channels_nhwc_mma),
                                      one(few_input_channels_mma),
                                      one(few_input_channels_wgmma_swap),
                                      one(few_output_channels_mma),
                                      one(few_output_channels_wgmma),
                                      one(implicit_gemm_mma),
                                      one(implicit_gemm_fma),
                                      one(grouped_halo_nhwc_mma),
                                      one(grouped_nhwc_mma),
                                      one(toeplitz_nhwc_mma),
                                      one(depthwise_halo_nhwc_fma),
                                      one(depthwise_nhwc_fma),
                                      one(depthwise_rows_nhwc_fma),
                                      one(depthwise_fma),
                                      one<StandInDenseEngine>(),
                                      one<StandInGemmEngine>(),
                                      one<StandInDirectEngine>(),
                                      one(few_rows_mma),
                                      one(few_rows_fma),
                                      one(direct_gather),
                                      one(wgrad_depthwise_fma),
                                      one(wgrad_depthwise_nhwc_fma),
                                      one(wgrad_depthwise_rows_nhwc_fma),
                                      one(wgrad_depthwise_nhwc_mma),
                                      one(wgrad_grouped_nhwc_mma),
                                      one(wgrad_toeplitz_nhwc_mma),
                                      one(wgrad_few_channels_mma),
                                      one(wgrad_dense_nhwc_wgmma),
                                      one(wgrad_dense_nchw_wgmma),
                                      one<WgradChannelsLastCopies>(),
                                      one<WgradChannelsFirstCopies>(),
                                      one<WgradPatchesNhwc>(),
                                      one(wgrad_nhwc_mma),
                                      one(wgrad_nchw_mma),
                                      one(wgrad_nchw_wgmma_swap),
                                      one(wgrad_implicit_gemm_mma),
                                      one(wgrad_implicit_gemm_fma),
                                      one<StandInWgradDenseEngine>(),
                                      one<StandInWgradGemmEngine>(),
                                      one<StandInWgradDirectEngine>(),
                                      one(wgrad_direct),
                                      one<LocalFmaEngine>(),
                                      one<LocalDgradFmaEngine>(),
                                      one<WgradLocalFmaEngine>(),
                                      one<LocalDirectEngine>(),
                                      one<PoolingBackwardStagedEngine>(),
                                      one<PoolingBackwardTiledEngine>(),
                                      one<PoolingEngine>(),
                                      one<SoftmaxEngine>(),
                                      one<SoftmaxOnlineInTurnEngine>(),
                                      one<SoftmaxOnlineEngine>(),
                                      one<TransposeEngine>(),
                                      one<PointwiseEngine>(),
                                      one<ReductionEngine>(),
                                      one<NormalizationEngine>(),
                                      one<NormalizationRowsEngine>()};
  });
}

std::span<const Engine* const> engines() {
  static constinit Once<std::vector<const Engine*>> all("engines without rewrites");
  return all.get([] {
    std::vector<const Engine*> found;
    for (const Method* const method : methods())
      if (const Engine* const engine = method->engine()) found.push_back(engine);
    return found;
  });
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
  one[0].workspace = std::get<Proposal>(answer).workspace;
  one[0].made = std::move(std::get<Proposal>(answer));
  return one;
}

Proposal OneKernelEngine::make(const Problem&, const DeviceDescription&,
                               Candidate candidate) const {
  return std::move(candidate.made).value();
}

}  // namespace kiln
