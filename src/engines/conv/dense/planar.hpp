// A gather of one tap from channels-first tensors as the dense engines see it: a matrix product of
// the filter and each image as stored. The maps see a plane of pixels as one dimension.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/conv/maps/tensor_maps.hpp"

namespace kiln {

// Pixels in a line of 128 bytes.
std::int64_t planar_line(DataType type);

// The reason, a clause, why the dense engines do not take it; "" if they do.
Refusal planar_refusal(const ConvolutionProblem& problem, const Gather& gather,
                       const DeviceDescription& device);

// The same for a filter gradient; `gather` is that of its forward pass.
Refusal planar_wgrad_refusal(const ConvolutionProblem& problem, const Gather& gather,
                             const DeviceDescription& device);

// The same as dense_lines(), for the filter.
DenseLines planar_lines(const ConvolutionProblem& problem, const Gather& gather, std::int64_t rows);

// The boxes that a tile copies of each operand.
struct PlanarBoxes {
  DenseLines lines;          // lines of the filter
  std::int64_t images;       // images of the source, a line of pixels of each
  std::int64_t filter_rows;  // rows of the filter, where its channels are contiguous
  std::int64_t slab_pixels;  // pixels of a slab of the output
  std::int64_t slab_rows;
};
// In the order of kernel_sources/conv/dense/params.h.
std::vector<LaunchSpec::Map> planar_maps(const ConvolutionProblem& problem, const Gather& gather,
                                         const PlanarBoxes& boxes);

// The reason why a filter gradient with a channels-last x does not take this channels-first dy; ""
// if it does. A step is then one box of planar_dy_map(): a line of pixels of 64 filters.
Refusal planar_dy_refusal(const ConvolutionProblem& problem, const Gather& gather);
TensorMapSpec planar_dy_map(const ConvolutionProblem& problem, const Gather& gather);

// The maps of x and dy, with boxes of 128 bytes of pixels of `channels` channels and `filters`
// filters.
std::vector<TensorMapSpec> planar_wgrad_maps(const ConvolutionProblem& problem,
                                             const Gather& gather, std::int64_t channels,
                                             std::int64_t filters);

}  // namespace kiln
