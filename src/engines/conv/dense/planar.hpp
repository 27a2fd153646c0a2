// A gather of one tap from channels-first tensors as the dense engines see it: a matrix product of
// the filter and each image as it lies, whose planes of pixels the copy engine knows as lines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engines/conv/dense/geometry.hpp"

namespace kiln {

// Why they do not take it; "" if they do.
std::string planar_refusal(const ConvolutionProblem& problem, const Gather& gather,
                           const DeviceDescription& device);

// The same of a filter gradient, of which `gather` is the forward pass.
std::string planar_wgrad_refusal(const ConvolutionProblem& problem, const Gather& gather,
                                 const DeviceDescription& device);

// As dense_lines(), of the filter; space has one dimension here.
DenseLines planar_lines(const ConvolutionProblem& problem, const Gather& gather, std::int64_t rows);

// What a tile takes at a time.
struct PlanarBoxes {
  DenseLines lines;          // of the filter: channels of a step
  std::int64_t images;       // of the source, 64 pixels each
  std::int64_t filter_rows;  // with channels side by side
  std::int64_t slab_pixels;  // of the output
  std::int64_t slab_rows;
};
// In the order of kernel_sources/conv/dense/params.h.
std::vector<LaunchSpec::Map> planar_maps(const ConvolutionProblem& problem, const Gather& gather,
                                         const PlanarBoxes& boxes);

// Why a filter gradient of a channels-last x does not take a channels-first dy; "" if it does: a
// step is then a line of pixels of 64 filters, which a box of this map brings.
std::string planar_dy_refusal(const ConvolutionProblem& problem, const Gather& gather);
TensorMapSpec planar_dy_map(const ConvolutionProblem& problem, const Gather& gather);

// Those of x and of dy: lines of 128 bytes of pixels of so many channels and filters.
std::vector<TensorMapSpec> planar_wgrad_maps(const ConvolutionProblem& problem,
                                             const Gather& gather, std::int64_t channels,
                                             std::int64_t filters);

}  // namespace kiln
