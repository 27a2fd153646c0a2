"""Normalization by the statistics of several processes together: torch.nn.SyncBatchNorm.

One collective each way: the moments of all processes go to each, which combines them in the order of ranks, so that all
have the same bits; and the two sums of the gradient are added. Counts of elements may differ between processes. The
gradients of weight and bias are the process's own, as PyTorch's module has them: DistributedDataParallel adds them.

The second pass of the gradient is a normalization, too: dx = scale * (g - (dbias + normal * dweight) / count) is y
normalized with other weights, to which scale * g, the result of the first pass, is added.
"""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import distributed, nn
from torch.autograd.function import once_differentiable

from .._activations import IDENTITY
from .._norm._operators import saved

Tensor = torch.Tensor
ops = torch.ops.kiln


def _group_of(norm: Any) -> Any:
    return norm.process_group or distributed.group.WORLD


def is_synchronized(norm: Any) -> bool:
    """Whether the norm takes statistics of other processes, too; where it does not, it is a usual one."""
    if type(norm) is not nn.SyncBatchNorm or not norm.training or not distributed.is_available():
        return False
    return distributed.is_initialized() and distributed.get_world_size(_group_of(norm)) > 1


class _Synchronized(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], residual: Optional[Tensor],
                moments: Tensor, statistics: Tuple[Any, ...], factor: float, epsilon: float, activation: int,
                coefficient: float, group: Any) -> Tensor:
        parts = moments.new_empty((distributed.get_world_size(group), *moments.shape))
        distributed.all_gather(list(parts.unbind()), moments.contiguous(), group)
        with torch._C._AutoDispatchBelowAutograd():
            mean, invstd = ops.combine_moments.default(parts, *statistics, factor, epsilon)
            z = ops.normalize.default(y, mean, invstd, weight, bias, residual, activation, coefficient, False)
        ctx.activation, ctx.coefficient, ctx.group = activation, coefficient, group
        kept = None if activation == IDENTITY else residual
        ctx.save_for_backward(y, mean, invstd, weight, bias, kept, parts[:, 0].sum(0))
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dz: Tensor) -> Tuple[Any, ...]:  # type: ignore[override]
        y, mean, invstd, weight, bias, residual, count = saved(ctx)
        wants = ctx.needs_input_grad
        linear = ctx.activation == IDENTITY
        with torch._C._AutoDispatchBelowAutograd():
            scaled, dresidual, dweight, dbias = ops.normalize_backward.default(
                dz, y, mean, invstd, weight, bias, residual, ctx.activation, ctx.coefficient, False,
                wants[3] and not linear,
            )
            sums = torch.stack((dweight, dbias))
            distributed.all_reduce(sums, group=ctx.group)
            scale = invstd if weight is None else invstd * weight
            of_normal, constant = (sums * (-scale / count)).unbind()
            dy = ops.normalize.default(y, mean, invstd, of_normal, constant, scaled, IDENTITY, 0.0, False)
        given = (dy, dweight, dbias, dz if linear else dresidual)
        return (*(g if want else None for g, want in zip(given, wants)), *(None,) * 7)


def synchronize(norm: Any, y: Tensor, moments: Optional[Tensor], statistics: Tuple[Any, ...], factor: float,
                residual: Optional[Tensor], activation: int, coefficient: float) -> Tensor:
    """``activation(norm(y) + residual)``, of tensors that Kiln serves. moments: those of y, where they are known."""
    if moments is None:
        with torch.no_grad():
            moments = ops.moments(y)
    return _Synchronized.apply(
        y, norm.weight, norm.bias, residual, moments, statistics, factor, norm.eps, activation, coefficient,
        _group_of(norm),
    )
