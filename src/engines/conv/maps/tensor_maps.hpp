// A gather as tensor maps show it to the copy engine: channels-last tensors with two dimensions of
// space, or three where there is depth, in lines of shared memory.
#pragma once

#include <array>
#include <cstdint>

#include "device/tensor_map.hpp"
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
// The bounds of one phase as {W, H, D}. The taps of a pixel are numbered from the one with the
// lowest position in the source.
struct DensePhase {
  std::array<std::int64_t, 3> lower{};  // position of pixel 0's lowest tap
  // Position of the last pixel's lowest tap, relative to the last pixel of the source.
  std::array<std::int64_t, 3> upper{};
};
DensePhase dense_phase(const Gather& gather, const Gather::Phase& phase);

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

// The map of a batch's matrices, with sizes {channels, matrices, 1, pixels}; a stride of 0 from one
// matrix to the next: there is one.
TensorMapSpec dense_matrix_map(const ConvolutionProblem& problem, std::int64_t matrices,
                               std::int64_t channels, std::int64_t pixel, std::int64_t matrix,
                               const PixelBox& box);

// Whether the filter's rows are contiguous instead of its channels.
bool filter_by_channels(const Gather& gather);

// Whether the pixels of all images lie at one constant distance from each other. `strides` are {N,
// row, D, H, W}.
bool in_line(const Dims& strides, const Spatial& pixels);

// The map of the filter's taps of one phase. `rows`: rows of a box, where channels are contiguous.
TensorMapSpec dense_filter_map(const ConvolutionProblem& problem, const Gather& gather,
                               const Gather::Phase& phase, const DenseLines& lines,
                               std::int64_t rows);

// A tiled map with sizes {channels, W, H (, D), N} and a box of {channels, columns, rows}.
TensorMapSpec dense_box_map(const ConvolutionProblem& problem, int space, std::int64_t channels,
                            const Spatial& pixels, const Dims& strides,
                            const std::array<std::int64_t, 3>& box);

}  // namespace kiln
