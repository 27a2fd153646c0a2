// The strides that PyTorch gives a convolution's results, and copies into the layout that goes with
// them.
#pragma once

#include <cstdint>

#include "torch/libtorch/tensor.hpp"

namespace kiln::torch {

enum class Format : std::uint8_t { contiguous, channels_last };

// Whether PyTorch sees a tensor of two or three dimensions of space as channels last. Where strides
// leave it open (sizes of 1), it does not.
bool suggests_channels_last(int rank, const std::int64_t* sizes, const std::int64_t* strides);

// The layout of all results of a convolution with these operands. On a GPU it is cuDNN's: channels
// last if the input or the filter suggests it, f64 never. On the CPU f64 of two dimensions does
// follow the operands. One dimension of space counts as a row of an image of height 1, whose input
// PyTorch makes contiguous.
Format result_format(const Tensor& x, const Tensor& w);

// Dense strides in a format.
Extents dense_strides(Format format, int rank, const Extents& sizes);

// Whether its elements lie in the format's order, with gaps or without, none of them twice.
bool lies_in_order(const Tensor& tensor, Format format);

// The tensor itself if its elements lie in the format's order, with gaps or without, else a dense
// copy in that format, which `copy` then owns.
const Tensor& in_format(const Tensor& tensor, Format format, Tensor& copy);

}  // namespace kiln::torch
