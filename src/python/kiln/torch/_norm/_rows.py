"""kiln::normalize_rows and its gradient: normalization by the statistics of groups of an image's channels, or, where
groups is 0, of the channels of each pixel. src/torch/normalization/operators.hpp says what they compute; here they are
by PyTorch's functions too, whose derivatives of any order PyTorch has, and with fake kernels and gradients."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch

from .. import _activations
from .._activations import IDENTITY
from . import _composed

Tensor = torch.Tensor
Optionals = Optional[Tensor]

_OPTIONS = "int groups, bool centered, Tensor? weight, Tensor? bias, Tensor? residual"
SCHEMAS = (
    f"normalize_rows(Tensor input, {_OPTIONS}, float epsilon, int activation, float coefficient) "
    "-> (Tensor, Tensor, Tensor)",
    f"normalize_rows_backward(Tensor grad_output, Tensor input, Tensor mean, Tensor invstd, {_OPTIONS}, "
    "int activation, float coefficient, bool with_residual) -> (Tensor, Tensor, Tensor, Tensor)",
)
ops = torch.ops.kiln


# ---- by PyTorch's functions ------------------------------------------------------------------------------------------


def _means(x: Tensor, groups: int) -> Tensor:
    """The mean of each row: (N, groups), or (N, pixels)."""
    if groups > 0:
        return x.reshape(x.shape[0], groups, -1).mean(2)
    return x.mean(1).reshape(x.shape[0], -1)


def _by_element(numbers: Tensor, x: Tensor, groups: int) -> Tensor:
    """A number of each row as what is broadcast to x."""
    if groups > 0:
        return numbers.repeat_interleave(x.shape[1] // groups, 1).view(*x.shape[:2], *(1,) * (x.dim() - 2))
    return numbers.view(x.shape[0], 1, *x.shape[2:])


def _variance(x: Tensor, mean: Optionals, groups: int) -> Tensor:
    return _means((x if mean is None else x - _by_element(mean, x, groups)) ** 2, groups)


def _argument(x: Tensor, mean: Optionals, invstd: Tensor, groups: int, weight: Optionals, bias: Optionals,
              residual: Optionals) -> Tuple[Tensor, Tensor]:
    """x without its mean and deviation, and the activation's argument."""
    normal = (x if mean is None else x - _by_element(mean, x, groups)) * _by_element(invstd, x, groups)
    argument = normal if weight is None else normal * _composed.by_channel(weight, x)
    if bias is not None:
        argument = argument + _composed.by_channel(bias, x)
    return normal, argument if residual is None else argument + residual


def composed(x: Tensor, groups: int, centered: bool, weight: Optionals, bias: Optionals, residual: Optionals,
             epsilon: float, activation: int, coefficient: float) -> Tuple[Tensor, Tensor, Tensor]:
    wide = x.to(_composed.wide_type(x.dtype))
    mean = _means(wide, groups) if centered else None
    invstd = torch.rsqrt(_variance(wide, mean, groups) + epsilon)
    argument = _argument(wide, mean, invstd, groups, weight, bias, residual)[1]
    y = _activations.apply(activation, coefficient, argument).to(x.dtype)
    return y, wide.new_empty(0) if mean is None else mean, invstd


def composed_backward(dy: Tensor, x: Tensor, mean: Tensor, invstd: Tensor, groups: int, centered: bool,
                      weight: Optionals, bias: Optionals, residual: Optionals, activation: int, coefficient: float,
                      with_residual: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    wide = x.to(_composed.wide_type(x.dtype))
    # The statistics as functions of x whose values are those that are given.
    own = _means(wide, groups) if centered else None
    variance = _variance(wide, own, groups)
    invstd = torch.rsqrt(variance + (invstd.detach() ** -2 - variance).detach())
    center = None if own is None else own + (mean - own).detach()
    normal, argument = _argument(wide, center, invstd, groups, weight, bias, residual)
    found = _activations.by_number(activation)
    known = found.apply(argument, coefficient) if found.from_result else argument
    g = found.gradient(dy.to(wide.dtype), known, coefficient)
    h = g if weight is None else g * _composed.by_channel(weight, x)
    rest = h - normal * _by_element(_means(h * normal, groups), x, groups)
    if centered:
        rest = rest - _by_element(_means(h, groups), x, groups)
    dx = (_by_element(invstd, x, groups) * rest).to(x.dtype)
    none, across = wide.new_empty(0), _composed.across(x)
    dweight = none if weight is None else (g * normal).sum(across)
    return dx, g.to(x.dtype) if with_residual else x.new_empty(0), dweight, none if bias is None else g.sum(across)


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _like(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch._prims_common.suggest_memory_format(x))


def fake(x: Tensor, groups: int, centered: bool, weight: Any, bias: Any, residual: Any, epsilon: float,
         activation: int, *_: Any) -> Tuple[Tensor, Tensor, Tensor]:
    _activations.by_number(activation)
    if residual is not None:
        _activations.check_residual(residual, x, "input")
    rows = groups
    if groups == 0:
        rows = 1
        for size in x.shape[2:]:
            rows = rows * size
    numbers = lambda *sizes: x.new_empty(sizes, dtype=_composed.wide_type(x.dtype))
    return _like(x), numbers(x.shape[0], rows) if centered else numbers(0), numbers(x.shape[0], rows)


def fake_backward(dy: Tensor, x: Tensor, mean: Tensor, invstd: Tensor, groups: int, centered: bool, weight: Any,
                  bias: Any, *rest: Any) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    numbers = lambda given: invstd.new_empty(0 if given is None else x.shape[1])
    return _like(x), _like(x) if rest[-1] else x.new_empty(0), numbers(weight), numbers(bias)


# ---- gradients -------------------------------------------------------------------------------------------------------


def save(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    x, ctx.groups, ctx.centered, weight, bias, residual, _, ctx.activation, ctx.coefficient = inputs
    ctx.mark_non_differentiable(*output[1:])
    # The gradient asks for the residual only where the activation's argument has it.
    ctx.save_for_backward(x, *output[1:], weight, bias, None if ctx.activation == IDENTITY else residual)


def gradients(ctx: Any, dy: Tensor, *_: Any) -> Tuple[Any, ...]:
    from ._operators import saved

    x, mean, invstd, weight, bias, residual = saved(ctx)
    # With create_graph=True the gradient is differentiated, too.
    run = composed_backward if torch.is_grad_enabled() else ops.normalize_rows_backward
    dx, dresidual, dweight, dbias = run(
        dy, x, mean, invstd, ctx.groups, ctx.centered, weight, bias, residual, ctx.activation, ctx.coefficient,
        residual is not None,
    )
    wants = ctx.needs_input_grad
    of_residual = dy if ctx.activation == IDENTITY else dresidual
    given = (dx, None, None, dweight, dbias, of_residual)
    return (*(g if want else None for g, want in zip(given, wants)), None, None, None)
