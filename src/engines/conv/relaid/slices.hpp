// Slices of a filter gradient by its channels: the gradient of some of the input channels, or of
// some of the output channels, with all images. A slice is a filter gradient of its own, whose dw
// is complete, so nothing is added up from one slice to the next. The other tensor is copied once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/conv/relaid/copies.hpp"
#include "problem/convolution.hpp"

namespace kiln {

struct RelaidSlices {
  bool of_x = true;        // input channels; else output channels
  std::int64_t count = 1;  // slices have equally many
};

// The ways to slice that keep channels in multiples of 16 bytes, fewest slices first; none with
// groups.
std::vector<RelaidSlices> slices_of(const ConvolutionProblem& problem, bool of_x);

// The filter gradient that a slice is. Its strides, and the tensors' layout, are the whole one's.
ConvolutionProblem slice_of(const ConvolutionProblem& problem, const RelaidSlices& slices);
// Where slice `number` begins in the caller's tensors.
RelaidPlaces places_of(const ConvolutionProblem& problem, const RelaidSlices& slices,
                       std::int64_t number);
// "64 channels of x"
std::string describe(const ConvolutionProblem& problem, const RelaidSlices& slices);

}  // namespace kiln
