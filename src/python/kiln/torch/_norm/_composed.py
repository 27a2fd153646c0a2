"""Kiln's operators of batch normalization by PyTorch's functions, whose derivatives of any order PyTorch has."""

from __future__ import annotations

from typing import Optional, Sequence, Tuple

import torch

from .. import _activations

Tensor = torch.Tensor
Optionals = Optional[Tensor]


def wide_type(dtype: torch.dtype) -> torch.dtype:
    """The type of a channel's numbers."""
    return torch.promote_types(dtype, torch.float32)


def across(x: Tensor) -> Sequence[int]:
    """The dimensions that belong to one channel."""
    return [0, *range(2, x.dim())]


def count(x: Tensor) -> int:
    """How many elements a channel has."""
    n = x.shape[0]
    for size in x.shape[2:]:
        n = n * size
    return n


def by_channel(numbers: Tensor, x: Tensor) -> Tensor:
    return numbers.view(1, -1, *(1,) * (x.dim() - 2))


def moments(x: Tensor) -> Tensor:
    if x.numel() == 0:
        return x.new_zeros((3, x.shape[1]), dtype=wide_type(x.dtype))
    variance, mean = torch.var_mean(x.to(wide_type(x.dtype)), across(x), correction=0)
    n = torch.full_like(mean, float(count(x)))
    return torch.stack((n, mean, variance * n))


def moments_gradient(gradient: Tensor, x: Tensor, made: Tensor) -> Tensor:
    """The gradient of x from that of ``made``, which are its moments."""
    of_mean, of_m2 = by_channel(gradient[1], x), by_channel(gradient[2], x)
    return (of_mean / count(x) + 2 * (x - by_channel(made[1], x)) * of_m2).to(x.dtype)


def combine_moments(parts: Tensor, running_mean: Optionals, running_var: Optionals, factor: float,
                    epsilon: float) -> Tuple[Tensor, Tensor]:
    n, means, m2s = parts.reshape(-1, 3, parts.shape[-1]).unbind(1)
    total = n.sum(0)
    mean = (n * means).sum(0) / total
    m2 = (m2s + n * (means - mean) ** 2).sum(0)
    if running_mean is not None and running_var is not None:
        running_mean.lerp_(mean.to(running_mean.dtype), factor)
        running_var.lerp_((m2 / (total - 1)).to(running_var.dtype), factor)
    return mean, torch.rsqrt(m2 / total + epsilon)


def _as_functions(x: Tensor, mean: Tensor, invstd: Tensor) -> Tuple[Tensor, Tensor]:
    """The statistics of x, as functions of x whose values are those that are given."""
    variance, own = torch.var_mean(x, across(x), correction=0)
    rest = (invstd.detach() ** -2 - variance).detach()  # epsilon
    return own + (mean - own).detach(), torch.rsqrt(variance + rest)


def _argument(x: Tensor, mean: Tensor, invstd: Tensor, weight: Optionals, bias: Optionals,
              residual: Optionals) -> Tuple[Tensor, Tensor]:
    """x without its mean and deviation, and the activation's argument."""
    normal = (x - by_channel(mean, x)) * by_channel(invstd, x)
    argument = normal if weight is None else normal * by_channel(weight, x)
    if bias is not None:
        argument = argument + by_channel(bias, x)
    return normal, argument if residual is None else argument + residual


def normalize(x: Tensor, mean: Tensor, invstd: Tensor, weight: Optionals, bias: Optionals, residual: Optionals,
              activation: int, coefficient: float, own: bool) -> Tensor:
    wide = x.to(wide_type(x.dtype))
    if own:
        mean, invstd = _as_functions(wide, mean, invstd)
    argument = _argument(wide, mean, invstd, weight, bias, residual)[1]
    return _activations.apply(activation, coefficient, argument).to(x.dtype)


def normalize_backward(dy: Tensor, x: Tensor, mean: Tensor, invstd: Tensor, weight: Optionals, bias: Optionals,
                       residual: Optionals, activation: int, coefficient: float, own: bool,
                       with_residual: bool) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    wide = x.to(wide_type(x.dtype))
    if own:
        mean, invstd = _as_functions(wide, mean, invstd)
    normal, argument = _argument(wide, mean, invstd, weight, bias, residual)
    found = _activations.by_number(activation)
    known = found.apply(argument, coefficient) if found.from_result else argument
    g = found.gradient(dy.to(wide.dtype), known, coefficient)
    dbias, dweight = g.sum(across(x)), (g * normal).sum(across(x))
    scale = invstd if weight is None else invstd * weight
    rest = g
    if own:
        rest = g - (by_channel(dbias, x) + normal * by_channel(dweight, x)) / count(x)
    dx = (by_channel(scale, x) * rest).to(x.dtype)
    return dx, g.to(x.dtype) if with_residual else x.new_empty(0), dweight, dbias
