// A gather as the dense engines see it: channels-last tensors that TMA reads by tensor maps with
// two dimensions of space, or three where there is depth.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kernel_spec.hpp"
#include "engines/conv/gather.hpp"

namespace kiln {

// Dimensions of space of the maps: 3 with depth, else 2.
int dense_space(const Gather& gather);

// Elements in 16 bytes; strides and channel counts have to be multiples of it.
std::int64_t dense_vector(DataType type);

// Elements of a pixel in a line of shared memory: channels of the source (a step is one line), and
// rows of the output. A line has 128 bytes, or fewer where 128 do not divide a group.
struct DenseLines {
  std::int64_t channels, rows;
};
// `rows`: rows of a tile whose operand A is pixels; else 0.
DenseLines dense_lines(const ConvolutionProblem& problem, const Gather& gather, std::int64_t rows);
// Adds STEP_CHANNELS and the other constants of lines and groups.
void add_dense_lines(std::vector<Constant>& constants, const DenseLines& lines,
                     const ConvolutionProblem& problem);

// The bounds of one phase as {W, H, D}. The taps of a pixel are numbered from the one with the
// lowest position in the source.
struct DensePhase {
  std::array<std::int64_t, 3> lower{};  // position of pixel 0's lowest tap
  // Position of the last pixel's lowest tap, relative to the last pixel of the source.
  std::array<std::int64_t, 3> upper{};
};
DensePhase dense_phase(const Gather& gather, const Gather::Phase& phase);

// The functions *_refusal return the reason, a clause, why something is not possible; "" if it is.

// Why TMA cannot read a tensor with these strides, {N, channel, D, H, W}.
std::string dense_stride_refusal(const char* tensor, DataType type, const Dims& strides);
// Why no tensor map can describe the source of a phase.
std::string dense_phase_refusal(const Gather& gather, const Gather::Phase& phase);
// Why no tensor map can have the convolution's strides as its traversal strides.
std::string dense_step_refusal(const Gather& gather);

// The size of a box.
struct PixelBox {
  std::int64_t channels, pixels;
};
// The im2col map of the source that reads one tap of consecutive pixels of the phase.
TensorMapSpec dense_source_map(const ConvolutionProblem& problem, const Gather& gather,
                               const Gather::Phase& phase, const PixelBox& box);
// The map of a tensor with one element per output pixel of the phase and row, such as the output.
// `line`: the pixels are one dimension, which needs in_line().
TensorMapSpec dense_pixel_map(const ConvolutionProblem& problem, const Gather& gather,
                              const Gather::Phase& phase, const Dims& strides, bool line,
                              const PixelBox& box);

// Why the dense engines do not take the problem's type.
std::string dense_type_refusal(const ConvolutionProblem& problem);

// Why the device's driver cannot encode tensor maps.
std::string copy_engine_refusal(const DeviceDescription& device);

// Why the dense engines do not take the problem in any layout.
std::string dense_product_refusal(const ConvolutionProblem& problem, const Gather& gather,
                                  const DeviceDescription& device);
// Why they do not take it with a channels-last source.
std::string dense_refusal(const ConvolutionProblem& problem, const Gather& gather,
                          const DeviceDescription& device);

// Why TMA cannot store the results or load the residual.
std::string dense_results_refusal(const ConvolutionProblem& problem, const Gather& gather);
// If dense_results_refusal() has a reason: the number of contiguous, aligned pixels that a thread
// stores at once. Else 0.
std::int64_t dense_store_pixels(const ConvolutionProblem& problem, const Gather& gather);

// Whether the filter's rows are contiguous instead of its channels.
bool filter_by_channels(const Gather& gather);

// Steps of `channels` channels between two promotions.
std::int64_t dense_promotion(std::int64_t channels);
// Adds PROMOTE and PROMOTE_LOCAL for sums over `steps` steps of `channels` channels.
void add_dense_promotion(std::vector<Constant>& constants, std::int64_t steps,
                         std::int64_t channels);

// Adds SPACE and the distances between taps.
void add_dense_space(std::vector<Constant>& constants, const Gather& gather);

// Whether the pixels of all images lie at one constant distance from each other. `strides` are {N,
// row, D, H, W}.
bool in_line(const Dims& strides, const Spatial& pixels);

// The map of the filter's taps of one phase. `rows`: rows of a box, where channels are contiguous.
TensorMapSpec dense_filter_map(const ConvolutionProblem& problem, const Gather& gather,
                               const Gather::Phase& phase, const DenseLines& lines,
                               std::int64_t rows);

// Collects the maps that follow DenseParams in the kernel's parameters, in the order of add().
class DenseMaps {
 public:
  explicit DenseMaps(const ConvolutionProblem& problem) : operands_(operands_of(problem)) {}

  // A map of the named operand that begins at element `first`.
  void add(const TensorMapSpec& spec, std::string_view name, std::int64_t first);
  const char* source() const;  // name of the operand that a gather reads
  const char* result() const { return operands_.back().name; }

  std::vector<LaunchSpec::Map> all{};

 private:
  std::vector<Operand> operands_;
};

// The boxes that a tile copies of each operand.
struct DenseBoxes {
  DenseLines lines;
  std::int64_t pixels;       // pixels of the source
  std::int64_t filter_rows;  // rows of the filter, where its channels are contiguous
  std::int64_t slab_pixels;  // pixels of a slab of the output
  std::int64_t result_line;  // and rows
  bool joined;               // the first phase's filter is that of all phases
};
// In the order of kernel_sources/conv/dense/params.h.
std::vector<LaunchSpec::Map> dense_maps(const ConvolutionProblem& problem, const Gather& gather,
                                        const DenseBoxes& boxes);
// The boxes of a patch of 8 columns of pixels, and of its halo.
struct PatchBoxes {
  DenseLines lines;
  std::int64_t halo_columns, halo_rows;
  std::int64_t rows;
};
std::vector<LaunchSpec::Map> dense_patch_maps(const ConvolutionProblem& problem,
                                              const Gather& gather, const PatchBoxes& boxes);
std::int64_t dense_map_count(const ConvolutionProblem& problem, const Gather& gather);

// Adds the holes of DenseParams to the launch.
void add_dense_patches(LaunchSpec& launch, const ConvolutionProblem& problem);

}  // namespace kiln
