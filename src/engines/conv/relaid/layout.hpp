// How the tensors of a convolution lie, and how many channels their copies have.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engines/conv/relaid/copies.hpp"
#include "problem/convolution.hpp"

namespace kiln {

// Channels of copies: so many that pixels begin at multiples of 16 bytes, as engines of channels
// last want them. Fewer than that are left to engines of few channels, and so are groups.
std::int64_t padded_channels(const ConvolutionProblem& problem, std::int64_t channels);

// An operand by its name, and its copy.
RelaidTensor relaid_tensor(const ConvolutionProblem& problem, const std::vector<Operand>& operands,
                           std::string_view name);
inline bool is_planar(const RelaidTensor& tensor) {
  return tensor.order == RelaidTensor::Order::planes;
}
inline bool is_padded(const RelaidTensor& tensor) {
  return tensor.copied_channels != tensor.channels || tensor.copied_images != tensor.images;
}

// Why it cannot be copied in its order; "" if it can: the pixels of a channel, or the channels of
// all pixels, lie side by side.
std::string copy_refusal(const Operand& operand, const RelaidTensor& tensor);

// Of a tensor that is not copied, of which a chunk begins at any image.
std::string apart_refusal(const Operand& operand);

}  // namespace kiln
