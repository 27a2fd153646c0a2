"""kiln::max_pool and its gradient, PyTorch operators with fake kernels and gradients of any order.

The gradient goes to the first maximum of each window, which is looked for again: no indices are kept.
"""

from __future__ import annotations

from typing import Any, Sequence, Tuple

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
_WINDOWS = "SymInt[] kernel_size, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool ceil_mode"
SCHEMAS = (
    f"max_pool(Tensor input, {_WINDOWS}) -> Tensor",
    f"max_pool_backward(Tensor grad_output, Tensor input, {_WINDOWS}) -> Tensor",
)
_FUNCTIONS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


def native(x: Tensor, spatial: int, *windows: Any) -> Tensor:
    """By PyTorch. spatial: the dimensions of space."""
    return _FUNCTIONS[spatial](x, *windows)


def composed(x: Tensor, *windows: Any) -> Tensor:
    return native(x, x.dim() - 2, *windows)


def composed_backward(dy: Tensor, x: Tensor, *windows: Any) -> Tensor:
    with torch.enable_grad():
        operand = x if x.requires_grad else x.detach().requires_grad_()
        y = composed(operand, *windows)
    (dx,) = torch.autograd.grad(y, operand, dy, create_graph=x.requires_grad)
    return dx


def _fake(x: Tensor, *windows: Any) -> Tensor:
    y = composed(x, *windows)
    return torch.empty_like(y, memory_format=torch._prims_common.suggest_memory_format(x))


def _fake_backward(dy: Tensor, x: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(x, memory_format=torch._prims_common.suggest_memory_format(x))


def _save(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    x, *ctx.windows = inputs
    ctx.save_for_backward(x)


def _gradients(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
    (x,) = ctx.saved_tensors
    run = composed_backward if torch.is_grad_enabled() else torch.ops.kiln.max_pool_backward
    return (run(dy, x, *ctx.windows), *(None,) * 5)


def define(library: torch.library.Library) -> None:
    for schema in SCHEMAS:
        library.define(schema)
    torch.library.register_fake("kiln::max_pool", _fake, lib=library)
    torch.library.register_fake("kiln::max_pool_backward", _fake_backward, lib=library)
    torch.library.register_autograd("kiln::max_pool", _gradients, setup_context=_save, lib=library)


def expanded(value: Any, spatial: int) -> Sequence[int]:
    return [value] * spatial if isinstance(value, int) else list(value) * (spatial if len(value) == 1 else 1)
