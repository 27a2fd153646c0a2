"""Convolutions, locally connected layers and products of matrices on arrays of any library, without PyTorch.

Takes objects with ``__cuda_array_interface__`` (CuPy, numba), ``__array_interface__`` (NumPy) or
``__dlpack__`` (JAX and others). Arrays in the CPU's memory are computed by Kiln's slow host device, for
trying things out. Results are new dense arrays of the first operand's library, or go into ``out=``.

    import cupy, kiln.arrays
    y = kiln.arrays.convolution(x, w, padding=1, bias=b, activation="relu")

Sizes: x (N, C, space), w (K, C / groups, space), y (N, K, space), with one to three dimensions of space.
Types: f32, f64, f16 and bf16. Strides may be any non-negative numbers.
"""

from ._functions import (
    bias_gradient,
    convolution,
    convolution_transposed,
    data_gradient,
    filter_gradient,
)
from ._local import local, local_data_gradient, local_filter_gradient
from ._matmul import matmul

__all__ = [
    "bias_gradient",
    "convolution",
    "convolution_transposed",
    "data_gradient",
    "filter_gradient",
    "local",
    "local_data_gradient",
    "local_filter_gradient",
    "matmul",
]
