"""Instance, group, layer and RMS normalization as functions."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple, Union

import torch
import torch.nn.functional as F

from .. import _operators, _transforms
from ._composed import wide_type
from ._functions import _TYPES, _activation

Tensor = torch.Tensor
Optionals = Optional[Tensor]
Shape = Union[int, Sequence[int]]


def _is_served(x: Tensor, numbers: int, weight: Optionals, bias: Optionals, residual: Optionals) -> bool:
    """Whether Kiln's kernels take these tensors; weight and bias of other real types are converted."""
    if x.dtype not in _TYPES or x.numel() == 0 or _transforms.active():
        return False
    if residual is not None and (
        residual.shape != x.shape or residual.dtype != x.dtype or residual.device != x.device
    ):
        return False
    return all(
        t is None or (t.is_floating_point() and t.numel() == numbers and t.device == x.device) for t in (weight, bias)
    )


def _run(x: Tensor, groups: int, centered: bool, weight: Optionals, bias: Optionals, residual: Optionals, eps: float,
         found: Any, value: float) -> Tensor:
    wide = wide_type(x.dtype)
    if weight is None and bias is not None:
        weight = torch.ones_like(bias)
    weight, bias = (None if t is None else t.reshape(-1).to(wide) for t in (weight, bias))
    _operators.register()
    return torch.ops.kiln.normalize_rows(x, groups, centered, weight, bias, residual, eps, found.number, value)[0]


def _finish(y: Tensor, residual: Optionals, found: Any, value: float) -> Tensor:
    return found.apply(y if residual is None else y + residual, value)


def group_norm_act_add(input: Tensor, num_groups: int, weight: Optionals = None, bias: Optionals = None,
                       eps: float = 1e-5, *, residual: Optionals = None, activation: str = "identity",
                       coefficient: Optional[float] = None) -> Tensor:
    """``activation(group_norm(input, num_groups, weight, bias, eps) + residual)``, with the arguments and the meaning
    of ``torch.nn.functional.group_norm``, in one kernel that reads input once where registers hold a group.

    residual: a tensor with the sizes and the type of input. activation, coefficient: as in ``kiln.torch.conv2d``. The
    result has the type of input, under autocast too; sums are in f32, f64 for f64. What Kiln does not serve (residuals
    of other sizes, more than three dimensions of space, torch.func) is composed of PyTorch's functions, whose words
    errors have.
    """
    found, value = _activation(activation, coefficient)
    if 2 <= input.dim() <= 5 and num_groups > 0 and input.shape[1] % num_groups == 0:
        sizes = [input.shape[0] * input.shape[1] // num_groups, num_groups, *input.shape[2:]]
        F._verify_batch_size(sizes)
        if _is_served(input, input.shape[1], weight, bias, residual):
            return _run(input, num_groups, True, weight, bias, residual, eps, found, value)
    return _finish(F.group_norm(input, num_groups, weight, bias, eps), residual, found, value)


def instance_norm_act_add(input: Tensor, weight: Optionals = None, bias: Optionals = None, eps: float = 1e-5, *,
                          residual: Optionals = None, activation: str = "identity",
                          coefficient: Optional[float] = None) -> Tensor:
    """``activation(instance_norm(input, weight=weight, bias=bias, eps=eps) + residual)`` by the statistics of input, as
    ``torch.nn.functional.instance_norm`` has it without running statistics. The rest as in ``group_norm_act_add()``."""
    found, value = _activation(activation, coefficient)
    if 3 <= input.dim() <= 5:
        F._verify_spatial_size(input.size())
        if _is_served(input, input.shape[1], weight, bias, residual):
            return _run(input, input.shape[1], True, weight, bias, residual, eps, found, value)
    return _finish(F.instance_norm(input, weight=weight, bias=bias, eps=eps), residual, found, value)


def _shape(shape: Shape) -> Tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _rows(x: Tensor, shape: Tuple[int, ...], centered: bool, weight: Optionals, bias: Optionals, residual: Optionals,
          eps: float, channels_first: bool, found: Any, value: float) -> Optional[Tensor]:
    """The result, where Kiln serves the call."""
    numbers = 1
    for size in shape:
        numbers = numbers * size
    if any(t is not None and tuple(t.shape) != shape for t in (weight, bias)):
        return None
    if not _is_served(x, numbers, weight, bias, residual):
        return None
    if channels_first:
        fits = 2 <= x.dim() <= 5 and shape == (x.shape[1],)
        return _run(x, 0, centered, weight, bias, residual, eps, found, value) if fits else None
    if not shape or tuple(x.shape[x.dim() - len(shape):]) != shape:
        return None
    as_rows = lambda t: None if t is None else t.reshape(-1, numbers)
    y = _run(as_rows(x), 0, centered, weight, bias, as_rows(residual), eps, found, value)
    return y.view(x.shape)


def layer_norm_act_add(input: Tensor, normalized_shape: Shape, weight: Optionals = None, bias: Optionals = None,
                       eps: float = 1e-5, *, channels_first: bool = False, residual: Optionals = None,
                       activation: str = "identity", coefficient: Optional[float] = None) -> Tensor:
    """``activation(layer_norm(input, normalized_shape, weight, bias, eps) + residual)``, with the arguments and the
    meaning of ``torch.nn.functional.layer_norm``, in one kernel.

    channels_first: the channels of an input (N, C, ...) are normalized at each place, as ConvNeXt's LayerNorm2d does,
    and normalized_shape is C. The rest as in ``group_norm_act_add()``.
    """
    found, value = _activation(activation, coefficient)
    shape = _shape(normalized_shape)
    y = _rows(input, shape, True, weight, bias, residual, eps, channels_first, found, value)
    if y is not None:
        return y
    x = input.movedim(1, -1) if channels_first else input
    y = F.layer_norm(x, shape, weight, bias, eps)
    return _finish(y.movedim(-1, 1) if channels_first else y, residual, found, value)


def rms_norm_act_add(input: Tensor, normalized_shape: Shape, weight: Optionals = None, eps: Optional[float] = None, *,
                     bias: Optionals = None, channels_first: bool = False, residual: Optionals = None,
                     activation: str = "identity", coefficient: Optional[float] = None) -> Tensor:
    """``activation(rms_norm(input, normalized_shape, weight, eps) + bias + residual)``, with the arguments and the
    meaning of ``torch.nn.functional.rms_norm``, in one kernel. The rest as in ``layer_norm_act_add()``."""
    found, value = _activation(activation, coefficient)
    shape = _shape(normalized_shape)
    if eps is None and input.dtype in _TYPES:
        eps = torch.finfo(wide_type(input.dtype)).eps
    y = None
    if eps is not None:
        y = _rows(input, shape, False, weight, bias, residual, eps, channels_first, found, value)
    if y is not None:
        return y
    x = input.movedim(1, -1) if channels_first else input
    y = F.rms_norm(x, shape, weight, eps)
    if bias is not None:
        y = y + bias
    return _finish(y.movedim(-1, 1) if channels_first else y, residual, found, value)
