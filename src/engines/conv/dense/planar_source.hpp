// A gather of several taps from channels-first tensors of 16 bits as dense_halo_nchw_wgmma sees it:
// with few dimensions of space, and with a filter whose channels are contiguous for each tap.
#pragma once

#include <array>
#include <cstddef>

#include "device/device.hpp"
#include "device/tensor_map.hpp"
#include "engines/conv/recipe/seen.hpp"
#include "engines/engine.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Whether a first step copies the filter to the workspace: its channels are not contiguous.
bool copies_filter(const ConvolutionProblem& problem);

// The reason, a clause, why it cannot be copied; "" if it can, or need not be.
Refusal copied_filter_refusal(const ConvolutionProblem& problem);
// Bytes of workspace, and the estimated time of the first step; 0 unless copies_filter().
std::size_t copied_filter_bytes(const ConvolutionProblem& problem);
double copied_filter_seconds(const ConvolutionProblem& problem, const DeviceDescription& device);

// The problem of the second step. Its filter is the copy. Where only the depth has taps, a plane is
// a row, and the depth is the height: pixels of a plane are then contiguous, whatever its width.
ConvolutionProblem planar_problem(const ConvolutionProblem& problem);

// Calls of(seen) with the problem of the second step.
template <class Of>
auto seen_planar(const Seen& seen, Of of) {
  const ConvolutionProblem planar = planar_problem(seen.problem);
  return of(Seen(planar, seen.device));
}

// A proposal of both steps, made from that of the second; `second` itself unless copies_filter().
Proposal behind_copied_filter(Proposal second, const ConvolutionProblem& problem);

// Why the copy engine cannot read a channels-first tensor row by row.
Refusal planar_rows_refusal(const char* tensor, const Dims& strides, const Spatial& pixels,
                            DataType type);
// A tiled map with sizes {W, channels, H (, D), N} and a box of {columns, channels, rows}.
TensorMapSpec planar_rows_map(const ConvolutionProblem& problem, int space, std::int64_t channels,
                              const Spatial& pixels, const Dims& strides,
                              const std::array<std::int64_t, 3>& box);

}  // namespace kiln
