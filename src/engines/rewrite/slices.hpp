// Slices of a convolution by its channels. A slice is a convolution of its own: some of the
// results' channels and, for filter gradients, where dw has two kinds of channels, some of either,
// with all images. So nothing is added up from one slice to the next, and the tensor that all
// slices read is copied once.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engines/conv/relayout/copies.hpp"
#include "problem/convolution.hpp"

namespace kiln {

struct RelayoutSlices {
  bool of_x = true;        // input channels; else output channels
  std::int64_t count = 1;  // slices have equally many
};

// The ways to slice that keep channels in multiples of 16 bytes, fewest slices first; none with
// groups. of_x: of what, for filter gradients; those of results are given.
std::vector<RelayoutSlices> slices_of(const ConvolutionProblem& problem, bool of_x);

// The convolution that a slice is. Its strides, and the tensors' layout, are the whole one's.
ConvolutionProblem slice_of(const ConvolutionProblem& problem, const RelayoutSlices& slices);
// Whether all slices read this tensor, an index into operands_of(problem).
bool is_shared(const ConvolutionProblem& problem, const RelayoutSlices& slices,
               std::size_t operand);
// "64 channels of x"
std::string describe(const ConvolutionProblem& problem, const RelayoutSlices& slices);

// What a slice's proposal begins with, copies, and the names of their kernel for people.
struct SliceCopies {
  std::span<const RelayoutMove> first;   // of the first slice
  std::span<const RelayoutMove> others;  // of the others, to which shared copies are there already
  const char* engine;
};
// Turns the first slice's proposal into that of all slices, unless it has no steps but is an
// estimate, and its estimated time too.
void repeat_slices(Proposal& proposal, double& seconds, const ConvolutionProblem& problem,
                   const RelayoutSlices& slices, const SliceCopies& copies,
                   const DeviceDescription& device);

}  // namespace kiln
