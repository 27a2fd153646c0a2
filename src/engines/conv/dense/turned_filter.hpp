// Transposed filters for data gradients in TF32. wgmma reads f32 operands only with the reduction
// contiguous; a data gradient's reduction runs over the filters, which are the outermost dimension
// of w. A first step transposes w into the workspace.
#pragma once

#include <cstddef>
#include <string>

#include "codegen/kernel_spec.hpp"
#include "device/device.hpp"
#include "engines/conv/recipe/seen.hpp"
#include "engines/engine.hpp"
#include "problem/convolution.hpp"

namespace kiln {

bool turns_filter(const ConvolutionProblem& problem);

// The reason, a clause, why the filter cannot be transposed; "" if it can. Requires turns_filter().
Refusal turned_filter_refusal(const ConvolutionProblem& problem);
// Bytes of workspace; 0 unless turns_filter().
std::size_t turned_filter_bytes(const ConvolutionProblem& problem);
// Estimated time of the first step, in seconds; 0 unless turns_filter().
double turned_filter_seconds(const ConvolutionProblem& problem, const DeviceDescription& device);

// The problem of the second step, with the strides of the transposed filter; `problem` itself
// unless turns_filter().
ConvolutionProblem with_turned_filter(const ConvolutionProblem& problem);

// Calls of(seen) with the problem of the second step.
template <class Of>
auto seen_turned(const Seen& seen, Of of) {
  if (!turns_filter(seen.problem)) return of(seen);
  const ConvolutionProblem turned = with_turned_filter(seen.problem);
  return of(Seen(turned, seen.device));
}
// The second step's refusal, or that of the first.
inline Refusal refusal_turned(const Seen& seen, Refusal of_second(const Seen&)) {
  if (auto refused = seen_turned(seen, of_second)) return refused;
  return turns_filter(seen.problem) ? turned_filter_refusal(seen.problem) : Refusal{};
}

// A proposal of both steps, made from that of the second; `second` itself unless turns_filter().
Proposal behind_turned_filter(Proposal second, const ConvolutionProblem& problem);

}  // namespace kiln
