// A gather as the dense engines see it: channels-last tensors of two dimensions of space, each of
// which the copy engine knows by a tensor map.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

// {W, H} of one phase. The taps of a pixel are numbered from the one whose place is lowest on.
struct DensePhase {
  std::array<std::int64_t, 2> lower{};  // place of pixel 0's lowest tap
  std::array<std::int64_t, 2> upper{};  // of the last pixel's, from the source's last place
};
DensePhase dense_phase(const Gather& gather, const Gather::Phase& phase);

// Why the copy engine cannot read a tensor of these strides, {N, channel, D, H, W}; "" if it can.
std::string dense_stride_refusal(const char* tensor, const Dims& strides);
// Why it cannot be told of one phase; "" if it can.
std::string dense_phase_refusal(const Gather& gather, const Gather::Phase& phase);

// The source, 64 channels of so many of the phase's pixels at a time.
TensorMapSpec dense_source_map(const ConvolutionProblem& problem, const Gather& gather,
                               const Gather::Phase& phase, std::int64_t pixels);
// What has one place for each of the phase's output pixels; as a `line` of them, if in_line().
TensorMapSpec dense_pixel_map(const ConvolutionProblem& problem, const Gather& gather,
                              const Gather::Phase& phase, const Dims& strides, bool line,
                              std::int64_t pixels);

// Why a device of warpgroups cannot be told of tensors by maps; "" if it can.
std::string copy_engine_refusal(const DeviceDescription& device);

// Why the dense engines do not take it; "" if they do.
std::string dense_refusal(const ConvolutionProblem& problem, const Gather& gather,
                          const DeviceDescription& device);

// Whether the filter's rows lie side by side, and not its channels.
bool filter_by_channels(const Gather& gather);

// PROMOTE and PROMOTE_LOCAL, for sums over so many steps of 64.
void add_dense_promotion(std::vector<Constant>& constants, std::int64_t steps);

// Whether the output's pixels, those of all images, are equally far apart; {N, row, ..., W}
// strides.
bool in_line(const Dims& strides, const Spatial& pixels);

// What a tile takes of each operand at a time.
struct DenseBoxes {
  std::int64_t pixels;       // of the source
  std::int64_t filter_rows;  // with channels side by side
  std::int64_t slab_pixels;  // of the output
};
// In the order of kernel_sources/conv/dense/params.h.
std::vector<LaunchSpec::Map> dense_maps(const ConvolutionProblem& problem, const Gather& gather,
                                        const DenseBoxes& boxes);
// The same of patches of 8 columns of pixels: so many rows of each, and what they meet of the
// source.
struct PatchBoxes {
  std::int64_t halo_columns, halo_rows;
  std::int64_t rows;
};
std::vector<LaunchSpec::Map> dense_patch_maps(const ConvolutionProblem& problem,
                                              const Gather& gather, const PatchBoxes& boxes);
std::int64_t dense_map_count(const ConvolutionProblem& problem, const Gather& gather);

// The holes of DenseParams.
void add_dense_patches(LaunchSpec& launch, const ConvolutionProblem& problem);

}  // namespace kiln
