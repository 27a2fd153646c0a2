// Turns a convolution into one of channels-last copies whose pixels are multiples of 16 bytes:
// which tensors are copied, and the problem that engines for such tensors are asked about.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/device.hpp"
#include "engines/conv/relayout/copies.hpp"
#include "engines/engine.hpp"
#include "engines/rewrite/cut.hpp"
#include "problem/convolution.hpp"

namespace kiln {

struct RelayoutProblem {
  ConvolutionProblem inner;                 // of the copies, with all images
  std::string engine{};                     // that computes the copies; "": the best estimate's
  std::vector<RelayoutTensor> once;         // copied once: a filter, its gradient, a bias
  std::vector<RelayoutTensor> tensors;      // copied for each chunk
  std::vector<RelayoutTensor> as_they_lie;  // not copied, but offset for each chunk
  bool padded = false;                      // copies have more channels than the tensors
  std::string slice{};  // of the caller's channels that the problem is, for people; "": all
  RelayoutCut cut;      // of images into parts

  RelayoutRange range(const RelayoutTensor& tensor, const RelayoutChunk& chunk) const {
    return range_of(inner, cut, tensor, chunk);
  }
  std::size_t bytes(const RelayoutChunk& chunk) const;  // of all copies of a chunk
  // From now on images with depth are cut along their height. False, and nothing is changed, if
  // they have no depth or such a cut is refused.
  bool cut_inside_planes();
};

// Forward propagation and data gradients. If the filter has one tap, pixels that the stride skips
// are not copied. copy_results: whether results (and z) that need no copy are copied nonetheless.
std::variant<RelayoutProblem, Refusal> relayout_gather(const ConvolutionProblem& problem,
                                                       const DeviceDescription& device,
                                                       bool copy_results);
// What the engine of the copies computes of a filter gradient: dw as the caller has it or, if it is
// padded, its copy; a copy in any case; or f32 sums, which whoever asks places in the workspace.
enum class WgradResult { as_it_lies, copied, sums };
// Filter gradients. copy_dy: whether a dy that needs no copy is copied nonetheless.
std::variant<RelayoutProblem, Refusal> relayout_wgrad(const ConvolutionProblem& problem,
                                                      const DeviceDescription& device, bool copy_dy,
                                                      WgradResult result);

}  // namespace kiln
