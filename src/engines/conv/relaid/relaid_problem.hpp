// A convolution of channels-first tensors as one of copies with channels last: what is copied, and
// the problem that engines of such tensors see.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "device/device.hpp"
#include "engines/conv/relaid/copies.hpp"
#include "engines/engine.hpp"
#include "problem/convolution.hpp"

namespace kiln {

struct RelaidProblem {
  ConvolutionProblem inner;            // of the copies, of all images
  std::optional<RelaidTensor> filter;  // that is read; none: it is taken as it lies
  std::vector<RelaidTensor> tensors;   // with a copy of each image: the source, then z, the result
  std::vector<RelaidTensor> as_they_lie;  // results, z, dy that are not copied

  std::size_t image_bytes() const;  // of the copies of one image
};

// Of forward propagation and data gradients; a pixel that a stride of a filter of one tap leaves
// out is not copied. Results (and z) are copied too, or an engine takes them as they lie.
std::variant<RelaidProblem, Refusal> relaid_gather(const ConvolutionProblem& problem,
                                                   const DeviceDescription& device,
                                                   bool copy_results);
// Of filter gradients: x and dy, or x alone. The inner problem's dw is the caller's.
std::variant<RelaidProblem, Refusal> relaid_wgrad(const ConvolutionProblem& problem,
                                                  const DeviceDescription& device, bool copy_dy);

}  // namespace kiln
