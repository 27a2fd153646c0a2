// A convolution as one of copies with channels last, in multiples of 16 bytes: what is copied, and
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
  ConvolutionProblem inner;               // of the copies, of all images
  std::vector<RelaidTensor> once;         // copied whole: a filter, its gradient, a bias
  std::vector<RelaidTensor> tensors;      // with a copy of each image
  std::vector<RelaidTensor> as_they_lie;  // those that are not copied and have images
  bool padded = false;                    // copies have more channels

  std::size_t image_bytes() const;  // of the copies of one image
};

// Of forward propagation and data gradients; a pixel that a stride of a filter of one tap leaves
// out is not copied. Results (and z) that engines could store as they lie are copied too, or not.
std::variant<RelaidProblem, Refusal> relaid_gather(const ConvolutionProblem& problem,
                                                   const DeviceDescription& device,
                                                   bool copy_results);
// Of filter gradients. A dy that engines could read as it lies is copied too, or not. The inner
// problem's dw is the caller's, or a copy of it that is padded; with `sums` it is the caller's to
// say where these are.
std::variant<RelaidProblem, Refusal> relaid_wgrad(const ConvolutionProblem& problem,
                                                  const DeviceDescription& device, bool copy_dy,
                                                  bool sums);

}  // namespace kiln
