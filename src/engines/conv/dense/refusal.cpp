#include "engines/conv/dense/refusal.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "conv/dense/params.h"
#include "core/integer.hpp"
#include "core/text.hpp"
#include "engines/conv/maps/map_refusal.hpp"
#include "engines/conv/maps/tensor_maps.hpp"
#include "engines/conv/tile/gemm_tile.hpp"

namespace kiln {
namespace {

Refusal filter_refusal(const Gather& gather) {
  const std::int64_t vector = dense_vector(gather.type);
  const auto whole = [&](std::int64_t stride) { return stride % vector == 0; };
  const bool taps = std::all_of(gather.w_tap.begin(), gather.w_tap.end(), whole) &&
                    std::all_of(gather.phases.begin(), gather.phases.end(),
                                [&](const Gather::Phase& phase) { return whole(phase.w_first); });
  if (taps && gather.w_channel == 1 && whole(gather.w_row)) return {};
  if (taps && gather.w_row == 1 && whole(gather.w_channel)) {
    if (size_of(gather.type) == 2) return {};
    return "the channels of w are not contiguous; wgmma cannot transpose f32 operands";
  }
  return "in w neither channels nor filters are contiguous, in multiples of 16 bytes";
}

// Why the maps cannot have a batch's matrices in place of columns.
Refusal matrices_refusal(const ConvolutionProblem& problem, const Gather& gather) {
  if (!problem.group_strides) return {};
  const auto& [x, w, y, z] = *problem.group_strides;
  if (problem.in_pixels() != 1 || problem.out_pixels() != 1)
    return "a batch of matrices whose rows lie side by side";
  if (auto refused = dense_results_refusal(problem, gather)) return refused;
  const std::int64_t vector = dense_vector(problem.type());
  constexpr std::int64_t most_elements = std::int64_t{1}
                                         << 37;  // a map's strides end at 2^40 bytes
  for (const std::int64_t stride : {x, w, y, z})
    if (stride % vector != 0)
      return cat("matrices ", stride, " elements apart; expected multiples of ", vector);
    else if (stride > most_elements / gather.groups)
      return cat(gather.groups, " matrices ", stride, " elements apart; expected them within ",
                 most_elements, " elements");
  if (problem.epilogue.residual && z == 0) return "a residual that all matrices share";
  return {};
}

}  // namespace

Refusal dense_type_refusal(const ConvolutionProblem& problem) {
  const bool in_tf32 = problem.type() == KILN_DATA_FLOAT && problem.math == KILN_MATH_TF32;
  if (size_of(problem.type()) == 2 || in_tf32) return {};
  return cat("the data type is ", name_of(problem.type()),
             "; this engine takes f16, bf16 and, in TF32, f32");
}

Refusal dense_product_refusal(const ConvolutionProblem& problem, const Gather& gather,
                              const DeviceDescription& device) {
  const std::int64_t reduction = gather.channels * gather.most_taps();
  if (auto refused = dense_type_refusal(problem)) return refused;
  if (auto refused = mma_refusal(problem, reduction, device)) return refused;
  if (auto refused = warpgroup_refusal(device)) return refused;
  if (auto refused = copy_engine_refusal(device)) return refused;
  if (const DenseLines lines = dense_lines(problem, gather, 0);
      gather.groups > 1 && !problem.group_strides && gather.channels % lines.channels != 0)
    return cat(gather.channels, " input channels a group; expected a multiple of ", lines.channels,
               ", which are multiplied at once");
  if (problem.alignment < 16)
    return cat("the alignment is ", problem.alignment,
               " bytes; expected 16, as the copy engine has it");
  for (const Gather::Phase& phase : gather.phases)
    if (problem.batch * phase.out_pixels() > limit32 / 2)
      return cat(problem.batch * phase.out_pixels(), " pixels; expected at most ", limit32 / 2);
  return {};
}

Refusal dense_refusal(const ConvolutionProblem& problem, const Gather& gather,
                      const DeviceDescription& device) {
  if (auto refused = dense_product_refusal(problem, gather, device)) return refused;
  if (gather.phases.size() > std::size(DenseParams{}.tiles))
    return cat("a data gradient of ", gather.phases.size(),
               " phases, positions modulo the stride; ", "expected at most ",
               std::size(DenseParams{}.tiles));
  if (gather.most_taps() == 0) return "no tap of the filter meets the input";
  for (const Gather::Phase& phase : gather.phases)
    if (auto refused = map_phase_refusal(gather, phase)) return refused;
  if (auto refused = traversal_stride_refusal(gather)) return refused;
  const std::int64_t vector = dense_vector(problem.type());
  for (const auto& [count, what] : {std::pair(gather.channels, "input"), {gather.rows, "output"}})
    if (count % vector != 0)
      return cat(count, " ", what, " channels; expected a multiple of ", vector);
  if (auto refused = matrices_refusal(problem, gather)) return refused;
  const bool dgrad = problem.pass == ConvolutionPass::dgrad;
  if (auto refused = map_strides_refusal(dgrad ? "dy" : "x", problem.type(), gather.source_strides))
    return refused;
  return filter_refusal(gather);
}

}  // namespace kiln
