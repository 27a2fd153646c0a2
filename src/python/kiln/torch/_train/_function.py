"""Blocks in eager mode, as nodes of autograd's graph.

A block by itself is one node, ``Block``. Where its result goes into the next block's convolution, nodes are cut at the
convolutions' results instead, so that a convolution's gradient goes on through the normalization before it:

    x -> First -> y -> Link -> y -> ... -> Link -> y -> Last -> z
                        |                  |
                        z                  z       for other readers, such as the addition of a shortcut

``First`` and ``Link`` normalize what their own convolution makes, too, but the gradient of that is the next node's.
Where no one else reads z, a Link may leave it, and make it again for the gradient of its convolution's weight.

torch.compile gets the operators that kiln::block consists of, whose gradients it can record.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Tuple

import torch

from .._activations import IDENTITY
from .._norm import _composed
from .._norm._operators import saved

Tensor = torch.Tensor
ops = torch.ops.kiln


class Norm(NamedTuple):
    """What follows a convolution in its block."""

    weight: Optional[Tensor]
    bias: Optional[Tensor]
    residual: Optional[Tensor]
    activation: int
    coefficient: float


class Pending(NamedTuple):
    """A block's result whose gradient the next block takes: y is the convolution's result, of which z = act(norm(y) +
    residual) is known, but nothing of autograd's graph."""

    y: Tensor
    z: Tensor
    mean: Tensor
    invstd: Tensor
    norm: Norm


def _forward(x: Tensor, weight: Tensor, bias: Any, geometry: Tuple[Any, ...], norm: Optional[Norm],
             statistics: Tuple[Any, ...], factor: float, epsilon: float) -> Tuple[Tensor, ...]:
    """The convolution's result y and, of its block, z, mean and invstd; without a norm, the moments of y."""
    with torch._C._AutoDispatchBelowAutograd():  # past the operators' own kernels for autograd, which are Python
        if norm is None:
            return ops.convolution_moments.default(x, weight, bias, *geometry)
        z, y, mean, invstd = ops.block.default(
            x, weight, bias, *geometry, norm.weight, norm.bias, norm.residual, *statistics, factor, epsilon,
            norm.activation, norm.coefficient,
        )
    return y, z, mean, invstd


def _gradients_of_convolution(dy: Tensor, x: Tensor, weight: Tensor, bias: Any, geometry: Tuple[Any, ...],
                              wanted: Any) -> Tuple[Any, ...]:
    """Those that are not wanted are None."""
    sizes = None if bias is None else list(bias.shape)
    if torch.is_grad_enabled():
        made = ops.convolution_backward(dy, x, weight, sizes, *geometry, list(wanted))
    else:
        with torch._C._AutoDispatchBelowAutograd():
            made = ops.convolution_backward.default(dy, x, weight, sizes, *geometry, list(wanted))
    return tuple(g if want else None for g, want in zip(made, wanted))


class Block(torch.autograd.Function):
    """A convolution, batch normalization by the statistics of its result, an addition and an activation."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Any, norm_weight: Any, norm_bias: Any, residual: Any,
                geometry: Tuple[Any, ...], statistics: Tuple[Any, ...], factor: float, epsilon: float,
                activation: int, coefficient: float) -> Tensor:
        norm = Norm(norm_weight, norm_bias, residual, activation, coefficient)
        y, z, mean, invstd = _forward(x, weight, bias, geometry, norm, statistics, factor, epsilon)
        ctx.geometry, ctx.activation, ctx.coefficient = geometry, activation, coefficient
        kept = None if activation == IDENTITY else residual
        ctx.save_for_backward(x, weight, bias, y, mean, invstd, norm_weight, norm_bias, kept)
        return z

    @staticmethod
    def backward(ctx: Any, dz: Tensor) -> Tuple[Any, ...]:  # type: ignore[override]
        x, weight, bias, y, mean, invstd, norm_weight, norm_bias, residual = saved(ctx)
        wants = ctx.needs_input_grad
        linear = ctx.activation == IDENTITY
        mask, sizes = list(wants[:3]), None if bias is None else list(bias.shape)
        numbers = (mean, invstd, norm_weight, norm_bias, residual, ctx.activation, ctx.coefficient)
        with_residual = wants[5] and not linear
        if torch.is_grad_enabled():  # the gradient is differentiated, too
            again = torch.convolution(x, weight, bias, *ctx.geometry)
            dy, dresidual, dweight, dbias = _composed.normalize_backward(dz, again, *numbers, True, with_residual)
            made = ops.convolution_backward(dy, x, weight, sizes, *ctx.geometry, mask)
        else:
            with torch._C._AutoDispatchBelowAutograd():
                *made, dresidual, dweight, dbias = ops.block_backward.default(
                    dz, y, *numbers, with_residual, x, weight, sizes, *ctx.geometry, mask
                )
        given = (*made, dweight, dbias, dz if linear else dresidual)
        return (*(g if want else None for g, want in zip(given, wants)), *(None,) * 6)


class First(torch.autograd.Function):
    """A convolution, whose result's normalization is another node's: what _forward() gives, of which y has a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Any, geometry: Tuple[Any, ...], norm: Optional[Norm],
                statistics: Tuple[Any, ...], factor: float, epsilon: float) -> Tuple[Tensor, ...]:
        y, *others = _forward(x, weight, bias, geometry, norm, statistics, factor, epsilon)
        ctx.geometry = geometry
        ctx.save_for_backward(x, weight, bias)
        ctx.mark_non_differentiable(*others)
        ctx.set_materialize_grads(False)
        return (y, *others)

    @staticmethod
    def backward(ctx: Any, dy: Any, *_: Any) -> Tuple[Any, ...]:  # type: ignore[override]
        x, weight, bias = ctx.saved_tensors
        return (*_gradients_of_convolution(dy, x, weight, bias, ctx.geometry, ctx.needs_input_grad[:3]), *(None,) * 5)


def _gradients_of_norm(ctx: Any, dz: Tensor, y: Tensor, mean: Tensor, invstd: Tensor, weight: Any, bias: Any,
                       residual: Any, with_residual: bool) -> Tuple[Tensor, Any, Tensor, Tensor]:
    """Of y, residual, weight and bias."""
    linear = ctx.activation == IDENTITY
    added = None if linear else residual
    numbers = (mean, invstd, weight, bias, added, ctx.activation, ctx.coefficient, True, with_residual and not linear)
    if torch.is_grad_enabled():
        dy, dresidual, dweight, dbias = _composed.normalize_backward(dz, y, *numbers)
    else:
        with torch._C._AutoDispatchBelowAutograd():
            dy, dresidual, dweight, dbias = ops.normalize_backward.default(dz, y, *numbers)
    return dy, dz if linear else dresidual, dweight, dbias


def _normalized_again(ctx: Any, *numbers: Any) -> Tensor:
    """act(norm(y) + residual), the same bits as in the forward pass."""
    with torch._C._AutoDispatchBelowAutograd():
        return ops.normalize.default(*numbers, ctx.activation, ctx.coefficient, True)


class Link(torch.autograd.Function):
    """The normalization of ``before``, and the convolution that reads its result: what First has of the latter, and z of
    ``before``, which has a gradient, too."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, norm_weight: Any, norm_bias: Any, residual: Any, weight: Tensor, bias: Any,
                before: Any, keeps: bool, geometry: Tuple[Any, ...], norm: Optional[Norm], statistics: Tuple[Any, ...],
                factor: float, epsilon: float) -> Tuple[Tensor, ...]:
        x = before.z
        made, *of_made = _forward(x, weight, bias, geometry, norm, statistics, factor, epsilon)
        ctx.geometry, ctx.activation, ctx.coefficient = geometry, before.norm.activation, before.norm.coefficient
        kept = x if keeps else None
        ctx.save_for_backward(y, before.mean, before.invstd, norm_weight, norm_bias, residual, kept, weight, bias)
        ctx.mark_non_differentiable(*of_made)
        ctx.set_materialize_grads(False)
        return (made, *of_made, x)

    @staticmethod
    def backward(ctx: Any, dmade: Any, *others: Any) -> Tuple[Any, ...]:  # type: ignore[override]
        y, mean, invstd, norm_weight, norm_bias, residual, x, weight, bias = saved(ctx)
        dx, wants = others[-1], ctx.needs_input_grad
        of_norm, of_convolution = (None,) * 4, (None, None)
        numbers = (y, mean, invstd, norm_weight, norm_bias, residual)
        if x is None:
            x = _normalized_again(ctx, *numbers) if wants[4] else y  # without dweight, sizes alone count
        if any(wants[:4]) and dmade is not None and not torch.is_grad_enabled():
            sizes = None if bias is None else list(bias.shape)
            with torch._C._AutoDispatchBelowAutograd():
                *of_norm, dweight, dbias = ops.link_backward.default(
                    dx, *numbers, ctx.activation, ctx.coefficient, wants[3], dmade, x, weight, sizes, *ctx.geometry,
                    [True, wants[4], wants[5]],
                )
            of_convolution = (dweight, dbias)
        else:
            if torch.is_grad_enabled():  # x as a function of y
                x = _composed.normalize(*numbers, ctx.activation, ctx.coefficient, True)
            if dmade is not None:
                wanted = (any(wants[:4]), *wants[4:6])
                more, *of_convolution = _gradients_of_convolution(dmade, x, weight, bias, ctx.geometry, wanted)
                dx = more if dx is None else dx if more is None else dx + more
            if any(wants[:4]) and dx is not None:
                of_norm = _gradients_of_norm(ctx, dx, *numbers, wants[3])
        dy, dresidual, dnorm_weight, dnorm_bias = of_norm
        given = (dy, dnorm_weight, dnorm_bias, dresidual, *of_convolution)
        return (*(g if want else None for g, want in zip(given, wants)), *(None,) * 7)


class Last(torch.autograd.Function):
    """The normalization of ``before``: its z."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, norm_weight: Any, norm_bias: Any, residual: Any, before: Any) -> Tensor:
        ctx.activation, ctx.coefficient = before.norm.activation, before.norm.coefficient
        kept = None if ctx.activation == IDENTITY else residual
        ctx.save_for_backward(y, before.mean, before.invstd, norm_weight, norm_bias, kept)
        return before.z

    @staticmethod
    def backward(ctx: Any, dz: Tensor) -> Tuple[Any, ...]:  # type: ignore[override]
        wants = ctx.needs_input_grad
        dy, dresidual, dweight, dbias = _gradients_of_norm(ctx, dz, *saved(ctx), wants[3])
        return (*(g if want else None for g, want in zip((dy, dweight, dbias, dresidual), wants)), None)


def begin(x: Tensor, weight: Tensor, bias: Any, *rest: Any) -> Pending:
    """The block of a tensor. rest: geometry, norm, statistics, factor and epsilon."""
    y, z, mean, invstd = First.apply(x, weight, bias, *rest)
    return Pending(y, z, mean, invstd, rest[1])


def begin_with_norm(x: Tensor, moments: Optional[Tensor], norm: Norm, statistics: Tuple[Any, ...], factor: float,
                    epsilon: float) -> Pending:
    """The block of a tensor without a convolution. moments: those of x, where they are known."""
    with torch.no_grad():
        made = ops.moments(x) if moments is None else moments
        mean, invstd = ops.combine_moments(made, *statistics, factor, epsilon)
        z = ops.normalize(
            x, mean, invstd, norm.weight, norm.bias, norm.residual, norm.activation, norm.coefficient, True
        )
    return Pending(x, z, mean, invstd, norm)


def go_on(before: Pending, keeps: bool, weight: Tensor, bias: Any, *rest: Any) -> Tuple[Pending, Tensor]:
    """The block of another one's result, and that result. keeps: that result is kept for the gradient."""
    norm = before.norm
    y, z, mean, invstd, x = Link.apply(
        before.y, norm.weight, norm.bias, norm.residual, weight, bias, before, keeps, *rest
    )
    return Pending(y, z, mean, invstd, rest[1]), x


def measure(x: Tensor, weight: Tensor, bias: Any, geometry: Tuple[Any, ...]) -> Tuple[Tensor, Tensor]:
    """A convolution of a tensor, and the moments of its result."""
    return First.apply(x, weight, bias, geometry, None, (), 0.0, 0.0)


def measure_on(before: Pending, keeps: bool, weight: Tensor, bias: Any,
               geometry: Tuple[Any, ...]) -> Tuple[Tensor, Tensor, Tensor]:
    """A convolution of another block's result, the moments of its own, and that result. keeps: as of go_on()."""
    norm = before.norm
    return Link.apply(
        before.y, norm.weight, norm.bias, norm.residual, weight, bias, before, keeps, geometry, None, (), 0.0, 0.0
    )


def end(before: Pending) -> Tensor:
    """The result of the block."""
    norm = before.norm
    return Last.apply(before.y, norm.weight, norm.bias, norm.residual, before)
