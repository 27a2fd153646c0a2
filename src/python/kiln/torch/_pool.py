"""kiln::pool and its gradient, PyTorch operators with fake kernels and gradients of any order.

A maximum's gradient goes to the first maximum of each window, which is looked for again: no indices are kept. An
average's does not need the input.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
MAX, AVERAGE, AVERAGE_INSIDE = 0, 1, 2  # the last one does not count the padding
_WINDOWS = "SymInt[] kernel_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool ceil_mode, int mode"
SCHEMAS = (
    f"pool(Tensor input, {_WINDOWS}) -> Tensor",
    f"pool_backward(Tensor grad_output, Tensor? input, SymInt[] input_sizes, {_WINDOWS}) -> Tensor",
)
_MAXIMA = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
_AVERAGES = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}


def native(x: Tensor, spatial: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
           mode: int) -> Tensor:
    """By PyTorch. spatial: the dimensions of space."""
    if mode == MAX:
        return _MAXIMA[spatial](x, kernel_size, stride, padding, dilation, ceil_mode)
    return _AVERAGES[spatial](x, kernel_size, stride, padding, ceil_mode, mode == AVERAGE)


def composed(x: Tensor, *windows: Any) -> Tensor:
    return native(x, x.dim() - 2, *windows)


def composed_backward(dy: Tensor, x: Optional[Tensor], sizes: Sequence[int], *windows: Any) -> Tensor:
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        if x is None:  # an average: of any input of these sizes
            layout = torch._prims_common.suggest_memory_format(dy)
            x = torch.zeros(sizes, dtype=dy.dtype, device=dy.device).contiguous(memory_format=layout)
        operand = x if x.requires_grad else x.detach().requires_grad_()
        y = composed(operand, *windows)
    (dx,) = torch.autograd.grad(y, operand, dy, create_graph=again)
    return dx


def _fake(x: Tensor, *windows: Any) -> Tensor:
    y = composed(x, *windows)
    return torch.empty_like(y, memory_format=torch._prims_common.suggest_memory_format(x))


def _fake_backward(dy: Tensor, x: Optional[Tensor], sizes: Sequence[int], *_: Any) -> Tensor:
    layout = torch._prims_common.suggest_memory_format(dy if x is None else x)
    return dy.new_empty(sizes).contiguous(memory_format=layout)


def _save(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    x, *ctx.windows = inputs
    ctx.sizes = list(x.shape)
    ctx.save_for_backward(x if ctx.windows[-1] == MAX else None)


def _gradients(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
    (x,) = ctx.saved_tensors
    run = composed_backward if torch.is_grad_enabled() else torch.ops.kiln.pool_backward
    return (run(dy, x, ctx.sizes, *ctx.windows), *(None,) * 6)


def define(library: torch.library.Library) -> None:
    for schema in SCHEMAS:
        library.define(schema)
    torch.library.register_fake("kiln::pool", _fake, lib=library)
    torch.library.register_fake("kiln::pool_backward", _fake_backward, lib=library)
    torch.library.register_autograd("kiln::pool", _gradients, setup_context=_save, lib=library)


def expanded(value: Any, spatial: int) -> Sequence[int]:
    return [value] * spatial if isinstance(value, int) else list(value) * (spatial if len(value) == 1 else 1)
