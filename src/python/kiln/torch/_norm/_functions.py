"""Normalization as functions."""

from __future__ import annotations

from typing import Any, Optional, Tuple, Union

import torch
import torch.nn.functional as F

from .. import _activations, _operators, _transforms
from .._functions import Ints, _expand, _integer, _lower, _pad
from . import _composed

Tensor = torch.Tensor
_TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def geometry_of(spatial: int, stride: Ints, padding: Ints, dilation: Ints, groups: int) -> Any:
    return (
        _expand(stride, spatial, "stride"), _expand(padding, spatial, "padding"), _expand(dilation, spatial, "dilation"),
        False, [0] * spatial, _integer(groups, "groups"),
    )


def conv_moments(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
                 padding: Union[Ints, str] = 0, dilation: Ints = 1, groups: int = 1) -> Tuple[Tensor, Tensor, Tensor]:
    """A convolution and the moments of its result, ``y, mean, m2``, for normalizations.

    ``y`` is that of ``torch.nn.functional.conv1d`` to ``conv3d``, by the dimensions of ``weight``. ``mean`` and
    ``m2``, a number for each channel, are the mean of its elements as they are stored and the sum of (y - mean)^2, in
    f32 (f64 for f64). Kernels that can make them while they store y; else a pass reads y. All three are differentiable:
    the gradient of y is dy + dmean / n + 2 (y - mean) dm2, with n elements in a channel.

    input: (N, C, ...). Other arguments are those of PyTorch's function.
    Raises ValueError or RuntimeError if arguments do not fit together.
    """
    spatial = weight.dim() - 2
    if spatial not in (1, 2, 3):
        raise ValueError(f"weight has {weight.dim()} dimensions; expected 3, 4 or 5")
    if input.dim() != weight.dim():
        raise ValueError(f"input has {input.dim()} dimensions; expected {weight.dim()}, a batch, as weight has")
    input, weight, bias = _lower((input, weight, bias))  # type: ignore[assignment]
    if isinstance(padding, str):
        strides, dilations = _expand(stride, spatial, "stride"), _expand(dilation, spatial, "dilation")
        input, padding = _pad(input, weight, spatial, strides, padding, dilations)
    geometry = geometry_of(spatial, stride, padding, dilation, groups)
    if _transforms.active() or input.is_complex() or weight.is_complex():
        y = torch.convolution(input, weight, bias, *geometry)
        moments = _composed.moments(y)
    else:
        _operators.register()
        y, moments = torch.ops.kiln.convolution_moments(input, weight, bias, *geometry)
    return y, moments[1], moments[2]


def _activation(name: str, coefficient: Optional[float]) -> Tuple[_activations.Activation, float]:
    found = _activations.find(name)
    if found.coefficient is None and coefficient is not None:
        raise ValueError(f"coefficient is {coefficient}; the activation {name!r} takes none")
    return found, (found.coefficient if coefficient is None else coefficient) or 0.0


def _check_numbers(name: str, numbers: Optional[Tensor], x: Tensor) -> None:
    if numbers is not None and tuple(numbers.shape) != (x.shape[1],):
        raise ValueError(f"{name} has sizes {tuple(numbers.shape)}; expected ({x.shape[1]},), one number for each channel")


def _check_input(x: Tensor) -> None:
    if not 2 <= x.dim() <= 5:
        raise ValueError(f"input has {x.dim()} dimensions; expected 2 to 5: a batch, channels, and space")


def _is_served(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], residual: Optional[Tensor],
               *others: Optional[Tensor]) -> bool:
    """Whether Kiln's kernels take these tensors."""
    if x.dtype not in _TYPES or x.numel() == 0 or (weight is None) != (bias is None):
        return False
    if residual is not None and (
        residual.shape != x.shape or residual.dtype != x.dtype or residual.device != x.device
    ):
        return False
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    return all(t is None or (t.dtype == wide and t.device == x.device) for t in (weight, bias, *others))


def norm_act_add(input: Tensor, mean: Tensor, m2: Optional[Tensor] = None, weight: Optional[Tensor] = None,
                 bias: Optional[Tensor] = None, residual: Optional[Tensor] = None, *, invstd: Optional[Tensor] = None,
                 eps: float = 1e-5, count: Optional[float] = None, activation: str = "identity",
                 coefficient: Optional[float] = None) -> Tensor:
    """``activation((input - mean) * invstd * weight + bias + residual)`` in one pass, with gradients of all tensors.

    mean: a number for each channel. Beside it either m2, the sum of (x - mean)^2 over ``count`` elements (None: those
    that a channel of input has), from which invstd = 1 / sqrt(m2 / count + eps); or invstd itself. As ``conv_moments()``
    gives mean and m2, this is batch normalization, and its gradient goes through both. weight, bias: a number for each
    channel; both, or neither. residual: a tensor with the sizes and the type of input. activation, coefficient: as in
    ``kiln.torch.conv2d``. mean, m2, invstd, weight and bias are f32, f64 for an input of f64.
    Raises ValueError if arguments do not fit together.
    """
    _check_input(input)
    found, value = _activation(activation, coefficient)
    if (m2 is None) == (invstd is None):
        raise ValueError(f"{'neither m2 nor' if m2 is None else 'both m2 and'} invstd given; expected one of them")
    for name, numbers in (("mean", mean), ("m2", m2), ("invstd", invstd), ("weight", weight), ("bias", bias)):
        _check_numbers(name, numbers, input)
    if residual is not None:
        _activations.check_residual(residual, input, "input")
    if invstd is None:
        n = _composed.count(input) if count is None else count
        invstd = torch.rsqrt(m2 / n + eps)  # type: ignore[operator]
    served = _is_served(input, weight, bias, residual, mean, invstd) and not _transforms.active()
    run = _composed.normalize
    if served:
        _operators.register()
        run = torch.ops.kiln.normalize
    return run(input, mean, invstd, weight, bias, residual, found.number, value, False)


def _by_pytorch(x: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor],
                bias: Optional[Tensor], training: bool, momentum: float, eps: float, residual: Optional[Tensor],
                found: _activations.Activation, value: float) -> Tensor:
    y = F.batch_norm(x, running_mean, running_var, weight, bias, training, momentum, eps)
    return found.apply(y if residual is None else y + residual, value)


def batch_norm_act_add(input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor],
                       weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, training: bool = False,
                       momentum: float = 0.1, eps: float = 1e-5, *, residual: Optional[Tensor] = None,
                       activation: str = "identity", coefficient: Optional[float] = None,
                       moments: Optional[Tensor] = None) -> Tensor:
    """``activation(batch_norm(input) + residual)``, with the arguments and the meaning of
    ``torch.nn.functional.batch_norm``: in training the statistics of the batch, which also go into the running ones
    (the variance unbiased), else the running statistics, which are then constants to the gradient.

    One pass over the elements, after one for the statistics in training; the gradient takes two. residual,
    activation, coefficient: as in ``norm_act_add()``. moments: those of input, (3, C), where they are known. Types
    stay as they are under autocast, as PyTorch's batch normalization has it. What Kiln does not serve (mixed types,
    weight without bias, residuals of other sizes) is composed of PyTorch's functions.
    Raises ValueError for what PyTorch refuses, such as a channel of one element in training, in its words.
    """
    found, value = _activation(activation, coefficient)
    if momentum is None:
        raise ValueError("momentum is None; expected a number, 1 / (the batches so far) for a cumulative average")
    if not training and (running_mean is None or running_var is None):
        raise ValueError("running_mean or running_var is None and training is False; expected both, or training")
    if training:
        F._verify_batch_size(input.size())
    served = _is_served(input, weight, bias, residual, running_mean, running_var) and not _transforms.active()
    if not served or not 2 <= input.dim() <= 5 or (running_mean is None) != (running_var is None):
        return _by_pytorch(
            input, running_mean, running_var, weight, bias, training, momentum, eps, residual, found, value
        )
    for name, numbers in (("running_mean", running_mean), ("running_var", running_var), ("weight", weight), ("bias", bias)):
        _check_numbers(name, numbers, input)
    _operators.register()
    return normalized(input, moments, running_mean, running_var, weight, bias, training, momentum, eps, residual,
                      found.number, value)


def normalized(x: Tensor, moments: Optional[Tensor], running_mean: Optional[Tensor], running_var: Optional[Tensor],
               weight: Optional[Tensor], bias: Optional[Tensor], training: bool, momentum: Union[float, Tensor],
               eps: float, residual: Optional[Tensor], activation: int, coefficient: float) -> Tensor:
    """``batch_norm_act_add()`` of tensors that Kiln serves, where the operators are registered. momentum: also a
    tensor of one element, which torch.compile does not read."""
    ops = torch.ops.kiln
    if training:
        with torch.no_grad():  # the gradient of x has that of its statistics
            made = ops.moments(x) if moments is None else moments
            if isinstance(momentum, Tensor):
                mean, invstd = ops.combine_moments(made, None, None, 0.0, eps)
                running_mean.lerp_(mean, momentum.to(mean.dtype))  # type: ignore[union-attr]
                running_var.lerp_(made[2] / (made[0] - 1), momentum.to(mean.dtype))  # type: ignore[union-attr]
            else:
                mean, invstd = ops.combine_moments(made, running_mean, running_var, momentum, eps)
    else:
        mean, invstd = running_mean, torch.rsqrt(running_var + eps)  # type: ignore[assignment, operator]
    return ops.normalize(x, mean, invstd, weight, bias, residual, activation, coefficient, training)
