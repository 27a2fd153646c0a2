// The strides that PyTorch gives a convolution's results, and copies of operands in that layout.
#pragma once

#include <cstdint>

#include "torch/libtorch/tensor.hpp"

namespace kiln::torch {

enum class Format : std::uint8_t { contiguous, channels_last };

// Whether PyTorch regards a tensor with two or three dimensions of space as channels last. Strides
// that fit both formats, because sizes are 1, do not count as channels last.
bool suggests_channels_last(int rank, const std::int64_t* sizes, const std::int64_t* strides);

// The layout of all results of a convolution with these operands. On a GPU it follows cuDNN:
// channels last if the input or the filter suggests it, but never for f64. On the CPU, f64 with two
// dimensions of space follows the operands, too. One dimension of space is treated as an image of
// height 1, whose input PyTorch makes contiguous.
Format result_format(const Tensor& x, const Tensor& w);

// The strides of a dense tensor in a format.
Extents dense_strides(Format format, int rank, const Extents& sizes);

// Whether the tensor's elements are stored in the format's order, gaps allowed, without overlap.
bool lies_in_order(const Tensor& tensor, Format format);

// The tensor itself if lies_in_order() holds, else a dense copy in the format, which `copy` owns.
const Tensor& in_format(const Tensor& tensor, Format format, Tensor& copy);

}  // namespace kiln::torch
