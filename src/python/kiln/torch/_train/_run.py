"""Computes a block of a model: a convolution, a batch normalization, an addition and an activation."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple, Type

import torch
import torch.nn.functional as F
from torch import nn

from .. import _activations, _operators, _transforms
from .._functions import _lower, result_type
from .._norm._functions import _is_served, geometry_of, normalized

Tensor = torch.Tensor
CONVOLUTIONS: Dict[Type[nn.Module], int] = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}  # dimensions of space
NORMS: Dict[Type[nn.Module], int] = {nn.BatchNorm1d: 1, nn.BatchNorm2d: 2, nn.BatchNorm3d: 3}


def _can_carry_moments(conv: Any, norm: Any, x: Tensor) -> bool:
    """Whether the convolution's kernel should make the moments: whether Kiln will take them."""
    if x.dim() != CONVOLUTIONS[type(conv)] + 2 or x.is_complex() or _transforms.active():
        return False
    wide = torch.float64 if result_type(x) == torch.float64 else torch.float32
    return norm.weight is None or norm.weight.dtype == wide


def _convolve(conv: Any, x: Tensor) -> Tuple[Tensor, Tensor]:
    """The convolution and the moments of its result."""
    geometry = geometry_of(x.dim() - 2, conv.stride, conv.padding, conv.dilation, conv.groups)
    x, weight, bias = _lower((x, conv.weight, conv.bias))  # type: ignore[assignment]
    return torch.ops.kiln.convolution_moments(x, weight, bias, *geometry)


def _momentum(norm: Any) -> float:
    """The share of this batch in the running statistics; counts the batch, as PyTorch's module does."""
    if norm.training and norm.track_running_stats and norm.num_batches_tracked is not None:
        norm.num_batches_tracked.add_(1)
        if norm.momentum is None:
            return 1.0 / float(norm.num_batches_tracked)
    return 0.0 if norm.momentum is None else norm.momentum


def _by_pytorch(y: Tensor, norm: Any, statistics: Any, own: bool, momentum: float, residual: Any, addition: str,
                activation: str, coefficient: Optional[float]) -> Tensor:
    y = F.batch_norm(y, *statistics, norm.weight, norm.bias, own, momentum, norm.eps)
    if residual is not None:
        if addition == "into result":
            y += residual
        elif addition == "into residual":
            residual += y
            y = residual
        else:
            y = y + residual
    found = _activations.find(activation)
    return found.apply(y, coefficient if coefficient is not None else found.coefficient or 0.0)


def run_block(conv: Any, norm: Any, x: Tensor, residual: Any, addition: str, activation: str,
              coefficient: Optional[float]) -> Tensor:
    """``activation(norm(conv(x)) + residual)``; ``conv`` may be None.

    addition: what PyTorch does where Kiln does not serve the call: see _fuse.FusedConvolution.
    """
    own = norm.training or (norm.running_mean is None and norm.running_var is None)
    moments = None
    if conv is None:
        y = x
    elif own and _can_carry_moments(conv, norm, x):
        _operators.register()
        y, moments = _convolve(conv, x)
    else:
        y = conv(x)
    norm._check_input_dim(y)
    momentum = _momentum(norm)
    statistics = (norm.running_mean, norm.running_var)
    if norm.training and not norm.track_running_stats:
        statistics = (None, None)
    tensor = residual is None or isinstance(residual, torch.Tensor)
    served = tensor and _is_served(y, norm.weight, norm.bias, residual, *statistics) and not _transforms.active()
    if not served:
        return _by_pytorch(y, norm, statistics, own, momentum, residual, addition, activation, coefficient)
    if own:
        F._verify_batch_size(y.size())
    found = _activations.find(activation)
    value = found.coefficient if coefficient is None else coefficient
    _operators.register()
    return normalized(
        y, moments, *statistics, norm.weight, norm.bias, own, momentum, norm.eps, residual, found.number, value or 0.0
    )
