// A gather as the dense engines see it: channels-last tensors, each of which the copy engine knows
// by a tensor map, in two dimensions of space or, where there is depth, three.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

// The dimensions of space that maps have: 3 with depth, else 2.
int dense_space(const Gather& gather);

// Elements of which strides and channels are multiples.
std::int64_t dense_vector(DataType type);

// What a line of shared memory holds of a pixel, elements: channels of the source, of which a step
// is one line; rows of the output. 128 bytes, or fewer where these do not divide a group.
struct DenseLines {
  std::int64_t channels, rows;
};
// rows: of a tile with pixels on the left; else 0.
DenseLines dense_lines(const ConvolutionProblem& problem, const Gather& gather, std::int64_t rows);
// STEP_CHANNELS and the like.
void add_dense_lines(std::vector<Constant>& constants, const DenseLines& lines,
                     const ConvolutionProblem& problem);

// {W, H, D} of one phase. The taps of a pixel are numbered from the one whose place is lowest on.
struct DensePhase {
  std::array<std::int64_t, 3> lower{};  // place of pixel 0's lowest tap
  std::array<std::int64_t, 3> upper{};  // of the last pixel's, from the source's last place
};
DensePhase dense_phase(const Gather& gather, const Gather::Phase& phase);

// Why the copy engine cannot read a tensor of these strides, {N, channel, D, H, W}; "" if it can.
std::string dense_stride_refusal(const char* tensor, DataType type, const Dims& strides);
// Why it cannot be told of one phase; "" if it can.
std::string dense_phase_refusal(const Gather& gather, const Gather::Phase& phase);
// Why a map cannot have its strides for steps; "" if it can.
std::string dense_step_refusal(const Gather& gather);

// A box of so many channels of so many pixels.
struct PixelBox {
  std::int64_t channels, pixels;
};
// The source, by pixels of the phase.
TensorMapSpec dense_source_map(const ConvolutionProblem& problem, const Gather& gather,
                               const Gather::Phase& phase, const PixelBox& box);
// What has one place for each of the phase's output pixels; as a `line` of them, if in_line().
TensorMapSpec dense_pixel_map(const ConvolutionProblem& problem, const Gather& gather,
                              const Gather::Phase& phase, const Dims& strides, bool line,
                              const PixelBox& box);

// Why the dense engines do not take its type; "" if they do.
std::string dense_type_refusal(const ConvolutionProblem& problem);

// Why a device of warpgroups cannot be told of tensors by maps; "" if it can.
std::string copy_engine_refusal(const DeviceDescription& device);

// Why the dense engines do not take it, whatever its layout; "" if they do.
std::string dense_product_refusal(const ConvolutionProblem& problem, const Gather& gather,
                                  const DeviceDescription& device);
// The same of a channels-last source.
std::string dense_refusal(const ConvolutionProblem& problem, const Gather& gather,
                          const DeviceDescription& device);

// Why the copy engine cannot take results to their places, nor bring what beta scales; "" if it
// can.
std::string dense_results_refusal(const ConvolutionProblem& problem, const Gather& gather);
// Where it cannot: pixels of a row that lie side by side, and at multiples of their bytes, so that
// threads may store so many at a time. Else 0.
std::int64_t dense_store_pixels(const ConvolutionProblem& problem, const Gather& gather);

// Whether the filter's rows lie side by side, and not its channels.
bool filter_by_channels(const Gather& gather);

// Steps of so many channels, after which a sum is promoted.
std::int64_t dense_promotion(std::int64_t channels);
// PROMOTE and PROMOTE_LOCAL, for sums over so many steps of so many channels.
void add_dense_promotion(std::vector<Constant>& constants, std::int64_t steps,
                         std::int64_t channels);

// SPACE, and what kernels know of taps that lie apart.
void add_dense_space(std::vector<Constant>& constants, const Gather& gather);

// Whether the output's pixels, those of all images, are equally far apart; {N, row, ..., W}
// strides.
bool in_line(const Dims& strides, const Spatial& pixels);

// The filter's taps of one phase: boxes of so many rows, with channels side by side.
TensorMapSpec dense_filter_map(const ConvolutionProblem& problem, const Gather& gather,
                               const Gather::Phase& phase, const DenseLines& lines,
                               std::int64_t rows);

// The maps that follow DenseParams, in the order in which they are added.
class DenseMaps {
 public:
  explicit DenseMaps(const ConvolutionProblem& problem) : operands_(operands_of(problem)) {}

  // Of the named operand, from an element on.
  void add(const TensorMapSpec& spec, std::string_view name, std::int64_t first);
  const char* source() const;  // what a gather reads
  const char* result() const { return operands_.back().name; }

  std::vector<LaunchSpec::Map> all{};

 private:
  std::vector<Operand> operands_;
};

// What a tile takes of each operand at a time.
struct DenseBoxes {
  DenseLines lines;
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
  DenseLines lines;
  std::int64_t halo_columns, halo_rows;
  std::int64_t rows;
};
std::vector<LaunchSpec::Map> dense_patch_maps(const ConvolutionProblem& problem,
                                              const Gather& gather, const PatchBoxes& boxes);
std::int64_t dense_map_count(const ConvolutionProblem& problem, const Gather& gather);

// The holes of DenseParams.
void add_dense_patches(LaunchSpec& launch, const ConvolutionProblem& problem);

}  // namespace kiln
