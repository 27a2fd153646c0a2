"""What PyTorch's FlopCounterMode counts for Kiln's operators: two for each product.

A counter knows the formulas that were there when it was made, so they are registered when ``kiln.torch`` is imported.
"""

from __future__ import annotations

import logging
import math
from typing import Any, Sequence

import torch

from . import _cached, _local, _operators
from ._norm import _operators as _norm_operators

_logger = logging.getLogger("torch.utils.flop_counter")
_was, _logger.disabled = _logger.disabled, True  # its import warns where triton is not installed
from torch.utils import flop_counter  # noqa: E402

_logger.disabled = _was


def _convolution(x: Sequence[int], weight: Sequence[int], y: Sequence[int], transposed: bool) -> int:
    """Each weight meets one pixel of the input of a transposed convolution, else one of the output, of each image."""
    return int(2 * x[0] * math.prod(weight) * math.prod((x if transposed else y)[2:]))


def _count_convolutions() -> None:
    ops = torch.ops.kiln

    @flop_counter.register_flop_formula(ops.convolution_bias_activation)
    def forward(x: Any, weight: Any, bias: Any, residual: Any, stride: Any, padding: Any, dilation: Any,
                transposed: bool, *_: Any, out_shape: Any = None, **__: Any) -> int:
        return _convolution(x, weight, out_shape, transposed)

    @flop_counter.register_flop_formula(ops.convolution_cached)
    def after_cache(x: Any, cache: Any, weight: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
        return _convolution(x, weight, out_shape, False)

    @flop_counter.register_flop_formula([ops.convolution_moments, ops.block])
    def first_of_several(x: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
                         transposed: bool, *_: Any, out_shape: Any = None, **__: Any) -> int:
        return _convolution(x, weight, out_shape[0], transposed)

    @flop_counter.register_flop_formula(ops.block_backward)
    def backward_of_block(dz: Any, y: Any, *rest: Any, **_: Any) -> int:
        *_, x, weight, _, _, _, _, transposed, _, _, mask = rest
        return _convolution(x, weight, y, transposed) * sum(map(bool, mask[:2]))

    @flop_counter.register_flop_formula(ops.link_backward)
    def backward_of_link(*arguments: Any, **_: Any) -> int:
        dy, x, weight, _, _, _, _, transposed, _, _, mask = arguments[10:]
        return _convolution(x, weight, dy, transposed) * (1 + sum(map(bool, mask[1:2])))

    @flop_counter.register_flop_formula(ops.convolution_backward)
    def backward(dy: Any, x: Any, weight: Any, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
                 transposed: bool, output_padding: Any, groups: Any, mask: Sequence[bool], **_: Any) -> int:
        return _convolution(x, weight, dy, transposed) * sum(map(bool, mask[:2]))


def _count_products() -> None:
    @flop_counter.register_flop_formula(torch.ops.kiln.matmul_bias_activation)
    def product(a: Any, b: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
        return int(2 * math.prod(out_shape) * a[-1])


def _count_local_convolutions() -> None:
    ops = torch.ops.kiln

    def per_image(weight: Sequence[int], spatial: int) -> int:
        return int(math.prod(weight[-2 * spatial - 2 :]))

    @flop_counter.register_flop_formula(ops.local_convolution)
    def forward(x: Any, weight: Any, *_: Any, **__: Any) -> int:
        return 2 * int(x[0]) * per_image(weight, len(x) - 2)

    @flop_counter.register_flop_formula(ops.local_convolution_input)
    def gradient_of_input(dy: Any, weight: Any, *_: Any, **__: Any) -> int:
        return 2 * int(dy[0]) * per_image(weight, len(dy) - 2)

    @flop_counter.register_flop_formula(ops.local_convolution_weight)
    def gradient_of_weight(x: Any, dy: Any, sizes: Any, *_: Any, **__: Any) -> int:
        return 2 * int(x[0]) * per_image(sizes, len(x) - 2)


def register() -> None:
    """Defines Kiln's operators and registers their formulas."""
    _operators.define()
    _norm_operators.define()
    _cached.define()
    _local.define()
    _count_convolutions()
    _count_products()
    _count_local_convolutions()
