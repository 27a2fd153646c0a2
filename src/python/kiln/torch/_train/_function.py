"""kiln::block in eager mode, as one node of autograd's graph.

torch.compile gets the operators that kiln::block consists of, whose gradients it can record.
"""

from __future__ import annotations

from typing import Any, Tuple

import torch

from .._norm import _composed
from .._norm._operators import IDENTITY

Tensor = torch.Tensor


class Block(torch.autograd.Function):
    """A convolution, batch normalization by the statistics of its result, an addition and an activation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Any, norm_weight: Any, norm_bias: Any, residual: Any,
                geometry: Tuple[Any, ...], statistics: Tuple[Any, ...], factor: float, epsilon: float,
                activation: int, coefficient: float) -> Tensor:
        with torch._C._AutoDispatchBelowAutograd():  # past the operators' own kernels for autograd, which are Python
            z, y, mean, invstd = torch.ops.kiln.block.default(
                x, weight, bias, *geometry, norm_weight, norm_bias, residual, *statistics, factor, epsilon, activation,
                coefficient,
            )
        ctx.geometry, ctx.activation, ctx.coefficient = geometry, activation, coefficient
        kept = None if activation == IDENTITY else residual
        ctx.save_for_backward(x, weight, bias, y, mean, invstd, norm_weight, norm_bias, kept)
        return z

    @staticmethod
    def backward(ctx: Any, dz: Tensor) -> Tuple[Any, ...]:  # type: ignore[override]
        x, weight, bias, y, mean, invstd, norm_weight, norm_bias, residual = ctx.saved_tensors
        wants = ctx.needs_input_grad
        linear = ctx.activation == IDENTITY
        mask, sizes = list(wants[:3]), None if bias is None else list(bias.shape)
        numbers = (mean, invstd, norm_weight, norm_bias, residual, ctx.activation, ctx.coefficient)
        with_residual = wants[5] and not linear
        if torch.is_grad_enabled():  # the gradient is differentiated, too
            again = torch.convolution(x, weight, bias, *ctx.geometry)
            dy, dresidual, dweight, dbias = _composed.normalize_backward(dz, again, *numbers, True, with_residual)
            made = torch.ops.kiln.convolution_backward(dy, x, weight, sizes, *ctx.geometry, mask)
        else:
            with torch._C._AutoDispatchBelowAutograd():
                *made, dresidual, dweight, dbias = torch.ops.kiln.block_backward.default(
                    dz, y, *numbers, with_residual, x, weight, sizes, *ctx.geometry, mask
                )
        given = (*made, dweight, dbias, dz if linear else dresidual)
        return (*(g if want else None for g, want in zip(given, wants)), *(None,) * 6)
