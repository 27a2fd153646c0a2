"""Operators between a tensor and one number for each channel of each image, as squeeze-and-excitation has them, with
fake kernels and gradients of any order. The numbers are a tensor (N, C, 1, ...) of the same type.
"""

from __future__ import annotations

from typing import Any, Tuple

import torch

Tensor = torch.Tensor
SCHEMAS = (
    "channel_means(Tensor input) -> Tensor",
    "multiply_channels(Tensor input, Tensor numbers) -> Tensor",
    "multiply_channels_backward(Tensor grad_output, Tensor input, Tensor numbers) -> (Tensor, Tensor)",
    "add_channels(Tensor input, Tensor numbers, float factor) -> Tensor",
)


def space(x: Tensor) -> Tuple[int, ...]:
    """The dimensions of space."""
    return tuple(range(2, x.dim()))


def means(x: Tensor) -> Tensor:
    return x.mean(space(x), keepdim=True)


def multiply(x: Tensor, numbers: Tensor) -> Tensor:
    return x * numbers


def multiply_backward(dy: Tensor, x: Tensor, numbers: Tensor) -> Tuple[Tensor, Tensor]:
    return dy * numbers, (dy * x).sum(space(x), keepdim=True)


def add(x: Tensor, numbers: Tensor, factor: float) -> Tensor:
    return x + factor * numbers


def _layout(x: Tensor) -> Any:
    return torch._prims_common.suggest_memory_format(x)


def _fake(x: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(x, memory_format=_layout(x))


def _fake_means(x: Tensor) -> Tensor:
    return x.new_empty((*x.shape[:2], *(1,) * (x.dim() - 2))).contiguous(memory_format=_layout(x))


def _fake_multiply_backward(dy: Tensor, x: Tensor, numbers: Tensor) -> Tuple[Tensor, Tensor]:
    return _fake(x), _fake_means(x)


def _save_factors(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs)


def _gradients_of_product(ctx: Any, dy: Tensor) -> Tuple[Tensor, Tensor]:
    run = multiply_backward if torch.is_grad_enabled() else torch.ops.kiln.multiply_channels_backward
    return run(dy, *ctx.saved_tensors)


class Squeeze(torch.autograd.Function):
    """x, and its means. Its gradient adds those of both in one pass, and no tensor is made of the means' alone."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tuple[Tensor, Tensor]:
        ctx.sizes = x.shape
        ctx.set_materialize_grads(False)
        return x.view_as(x), torch.ops.kiln.channel_means(x)

    @staticmethod
    def backward(ctx: Any, dx: Any, dmeans: Any) -> Any:
        factor = 1 / ctx.sizes[2:].numel()
        if dmeans is None:
            return dx
        if dx is None:
            return (dmeans * factor).expand(ctx.sizes)
        return (add if torch.is_grad_enabled() else torch.ops.kiln.add_channels)(dx, dmeans, factor)


def define(library: torch.library.Library) -> None:
    for schema in SCHEMAS:
        library.define(schema)
    torch.library.register_fake("kiln::channel_means", _fake_means, lib=library)
    torch.library.register_fake("kiln::multiply_channels", _fake, lib=library)
    torch.library.register_fake("kiln::multiply_channels_backward", _fake_multiply_backward, lib=library)
    torch.library.register_fake("kiln::add_channels", _fake, lib=library)
    torch.library.register_autograd(
        "kiln::multiply_channels", _gradients_of_product, setup_context=_save_factors, lib=library
    )
