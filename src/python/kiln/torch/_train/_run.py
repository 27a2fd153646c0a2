"""Computes a block of a model: a convolution, a batch normalization, an addition and an activation."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple, Type

import torch
import torch.nn.functional as F
from torch import nn

from .. import _activations, _operators, _transforms
from .._functions import _autocast_type, _is_lowered
from .._norm._functions import _is_served, normalized
from ._function import Block

Tensor = torch.Tensor
CONVOLUTIONS: Dict[Type[nn.Module], int] = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}  # dimensions of space
NORMS: Dict[Type[nn.Module], int] = {nn.BatchNorm1d: 1, nn.BatchNorm2d: 2, nn.BatchNorm3d: 3}


def _lower(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
    """The tensors cast to autocast's type, as PyTorch does for its own convolutions."""
    dtype = _autocast_type(x)
    if dtype is None:
        return x, weight, bias
    cast = lambda t: t.to(dtype) if t is not None and t.dtype != dtype and _is_lowered(t) else t
    return cast(x), cast(weight), cast(bias)


def _can_carry_moments(conv: Any, norm: Any, x: Tensor) -> bool:
    """Whether the convolution's kernel should make the moments: whether Kiln will take them. ``x`` is lowered."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    weight = norm._parameters["weight"]
    return (weight is None or weight.dtype == wide) and x.shape[1] == conv.in_channels and not _transforms.active()


def _sizes(conv: Any, x: Tensor) -> Tuple[int, ...]:
    """The sizes of the convolution's result."""
    space = (
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip(x.shape[2:], conv.kernel_size, conv.stride, conv.padding, conv.dilation)
    )
    return (x.shape[0], conv.out_channels, *space)


def _geometry(conv: Any) -> Tuple[Any, ...]:
    """Stride, padding, dilation, transposed, output padding and groups; the module holds them expanded."""
    return conv.stride, conv.padding, conv.dilation, False, conv.output_padding, conv.groups


def _momentum(norm: Any) -> float:
    """The share of this batch in the running statistics; counts the batch, as PyTorch's module does."""
    counted = norm._buffers["num_batches_tracked"] if norm.training and norm.track_running_stats else None
    if counted is not None:
        counted.add_(1)
        if norm.momentum is None:
            return 1.0 / float(counted)
    return 0.0 if norm.momentum is None else norm.momentum


def _statistics(norm: Any) -> Tuple[Any, Any]:
    """Running mean and variance; None where the norm does not ask for them."""
    if norm.training and not norm.track_running_stats:
        return None, None
    return norm._buffers["running_mean"], norm._buffers["running_var"]


def _by_pytorch(y: Tensor, norm: Any, statistics: Any, own: bool, momentum: float, residual: Any, addition: str,
                found: _activations.Activation, coefficient: float) -> Tensor:
    y = F.batch_norm(y, *statistics, norm.weight, norm.bias, own, momentum, norm.eps)
    if residual is not None:
        if addition == "into result":
            y += residual
        elif addition == "into residual":
            residual += y
            y = residual
        else:
            y = y + residual
    return found.apply(y, coefficient)


def _is_one_call(conv: Any, norm: Any, x: Tensor, residual: Any) -> bool:
    """Whether kiln::block serves a convolution of x, which autocast has lowered, and what follows."""
    parameters = norm._parameters
    if torch.compiler.is_compiling() or x.shape[0] < 2 or norm.num_features != conv.out_channels:
        return False
    if not isinstance(residual, (torch.Tensor, type(None))):
        return False
    if not _is_served(x, parameters["weight"], parameters["bias"], None, *_statistics(norm)):
        return False
    if residual is None:
        return True
    return residual.dtype == x.dtype and residual.device == x.device and residual.shape == _sizes(conv, x)


def run_block(conv: Any, norm: Any, x: Tensor, residual: Any, addition: str, activation: str,
              coefficient: Optional[float]) -> Tensor:
    """``activation(norm(conv(x)) + residual)``; ``conv`` may be None.

    addition: what PyTorch does where Kiln does not serve the call: see _fuse.FusedConvolution.
    """
    buffers, parameters = norm._buffers, norm._parameters
    own = norm.training or (buffers["running_mean"] is None and buffers["running_var"] is None)
    found = _activations.find(activation)
    value = (found.coefficient if coefficient is None else coefficient) or 0.0
    moments = None
    if conv is None:
        y = x
    elif own and x.dim() == CONVOLUTIONS[type(conv)] + 2 and not x.is_complex():
        _operators.register()
        x, weight, bias = _lower(x, conv._parameters["weight"], conv._parameters["bias"])
        if not _can_carry_moments(conv, norm, x):
            y = conv(x)
        elif _is_one_call(conv, norm, x, residual):
            return Block.apply(
                x, weight, bias, parameters["weight"], parameters["bias"], residual, _geometry(conv), _statistics(norm),
                _momentum(norm), norm.eps, found.number, value,
            )
        else:
            y, moments = torch.ops.kiln.convolution_moments(x, weight, bias, *_geometry(conv))
    else:
        y = conv(x)
    norm._check_input_dim(y)
    momentum, statistics = _momentum(norm), _statistics(norm)
    tensor = residual is None or isinstance(residual, torch.Tensor)
    served = tensor and _is_served(y, norm.weight, norm.bias, residual, *statistics) and not _transforms.active()
    if not served:
        return _by_pytorch(y, norm, statistics, own, momentum, residual, addition, found, value)
    if own:
        F._verify_batch_size(y.size())
    _operators.register()
    return normalized(
        y, moments, *statistics, norm.weight, norm.bias, own, momentum, norm.eps, residual, found.number, value
    )
