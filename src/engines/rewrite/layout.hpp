// The layout of a convolution's tensors, and the number of channels of their copies.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engines/conv/relayout/copies.hpp"
#include "engines/engine.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// The channels of a copy: rounded up to 16 bytes, as channels-last engines require. Tensors with
// fewer channels than that, or with groups, keep theirs: they are left to engines of few channels.
std::int64_t padded_channels(const ConvolutionProblem& problem, std::int64_t channels);

// The operand of this name, which has to exist, and its copy.
RelayoutTensor relayout_tensor(const ConvolutionProblem& problem,
                               const std::vector<Operand>& operands, std::string_view name);
inline bool is_planar(const RelayoutTensor& tensor) {
  return tensor.order == RelayoutTensor::Order::planes;
}
inline bool is_padded(const RelayoutTensor& tensor) {
  return tensor.copied_channels != tensor.channels || tensor.copied_images != tensor.images;
}

// The reason, a clause, why a tensor cannot be copied; "" if it can. The pixels of a channel
// (planes), or the channels of all pixels (rows), have to be contiguous.
Refusal copy_refusal(const Operand& operand, const RelayoutTensor& tensor);

// The reason, a clause, why a tensor cannot be used without a copy; "" if it can. A chunk may begin
// at any image, so each has to begin at a multiple of 16 bytes.
Refusal apart_refusal(const Operand& operand);

}  // namespace kiln
