"""Kiln's convolutions as functions, with bias, residual and activation in the same kernel."""

from __future__ import annotations

import operator
from typing import Any, List, Optional, Sequence, Tuple, Union

import torch
import torch.nn.functional as F

from . import _activations, _operators, _transforms

Tensor = torch.Tensor
Ints = Union[int, Sequence[int]]


def _integer(value: Any, name: str) -> Any:
    if isinstance(value, (int, torch.SymInt)):
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; expected integers") from None


def _expand(value: Ints, spatial: int, name: str) -> List[int]:
    """An integer for each dimension of space."""
    # NumPy's arrays can be iterated over, and have __index__, whatever their dimensions are.
    several = hasattr(value, "__iter__") and not isinstance(value, str) and getattr(value, "shape", None) != ()
    if isinstance(value, (list, tuple, torch.Size)) or several:
        values = [_integer(v, name) for v in value]
    else:
        values = [_integer(value, name)] * spatial
    if len(values) == 1:
        values *= spatial
    if len(values) != spatial:
        raise ValueError(f"{name} has {len(values)} values; expected 1 or {spatial}")
    return values


def _autocast_type(input: Tensor) -> Optional[torch.dtype]:
    """Autocast's type on the input's device; None if autocast is off there, or there is none."""
    kind = input.device.type
    if kind not in ("cuda", "cpu") or not torch.is_autocast_enabled(kind):
        return None
    return torch.get_autocast_dtype(kind)


def _is_lowered(tensor: Optional[Tensor]) -> bool:
    return tensor is not None and tensor.is_floating_point() and tensor.dtype != torch.float64


def _lower(tensors: Sequence[Optional[Tensor]]) -> List[Optional[Tensor]]:
    """The tensors cast to autocast's type if autocast is on, as PyTorch does for its own convolutions."""
    dtype = _autocast_type(tensors[0])  # type: ignore[arg-type]
    if dtype is None:
        return list(tensors)
    return [t.to(dtype) if _is_lowered(t) else t for t in tensors]  # type: ignore[union-attr]


def result_type(input: Tensor) -> torch.dtype:
    """The type of a convolution's result."""
    dtype = _autocast_type(input)
    return dtype if dtype is not None and _is_lowered(input) else input.dtype


def _pad(input: Tensor, weight: Tensor, spatial: int, stride: Sequence[int], padding: str,
         dilation: Sequence[int]) -> Tuple[Tensor, List[int]]:
    """The input and the padding for PyTorch's words "same" and "valid"."""
    if padding == "valid":
        return input, [0] * spatial
    if padding != "same":
        raise ValueError(f"padding is {padding!r}; expected integers, 'same' or 'valid'")
    if any(s != 1 for s in stride):
        raise ValueError(f"padding is 'same' and stride {tuple(stride)}; expected a stride of 1")
    before, more = [], []  # the second: what is wanted after the last element beyond that
    for i in range(spatial):
        total = dilation[i] * (weight.shape[2 + i] - 1)
        before.append(total // 2)
        more = [0, total - 2 * before[i], *more]  # F.pad begins with the last dimension
    return (F.pad(input, more) if any(more) else input), before


def _complex(input: Tensor, weight: Tensor, bias: Optional[Tensor], stride: Ints, padding: Ints, dilation: Ints,
             transposed: bool, output_padding: Ints, groups: int) -> Tensor:
    """PyTorch composes complex convolutions of real ones, in its functions alone and not in aten::convolution."""
    if transposed:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[input.dim() - 3]
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    function = (F.conv1d, F.conv2d, F.conv3d)[input.dim() - 3]
    return function(input, weight, bias, stride, padding, dilation, groups)


def convolution(
    spatial: int,
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    residual: Optional[Tensor],
    stride: Ints,
    padding: Union[Ints, str],
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    activation: str,
    coefficient: Optional[float],
) -> Tensor:
    """The common implementation of this module's functions."""
    found = _activations.find(activation)
    value = found.coefficient if coefficient is None else coefficient
    if found.coefficient is None and coefficient is not None:
        raise ValueError(f"coefficient is {coefficient}; the activation {activation!r} takes none")
    if input.dim() == spatial + 1:  # one image, without a batch
        batch = lambda t: None if t is None else t.unsqueeze(0)
        return convolution(
            spatial, input.unsqueeze(0), weight, bias, batch(residual), stride, padding, dilation, transposed,
            output_padding, groups, activation, coefficient,
        ).squeeze(0)
    _operators.register()
    input, weight, bias, residual = _lower((input, weight, bias, residual))  # type: ignore[assignment]
    strides, dilations = _expand(stride, spatial, "stride"), _expand(dilation, spatial, "dilation")
    if isinstance(padding, str) and not transposed:
        input, padding = _pad(input, weight, spatial, strides, padding, dilations)
    geometry = [
        strides,
        _expand(padding, spatial, "padding"),  # type: ignore[arg-type]
        dilations,
        transposed,
        _expand(output_padding, spatial, "output_padding"),
        _integer(groups, "groups"),
    ]
    transformed = _transforms.active()
    run = torch.ops.kiln.convolution_bias_activation
    is_complex = input.is_complex() or weight.is_complex()
    if not transposed and not transformed and not is_complex:
        return run(input, weight, bias, residual, *geometry, found.number, value or 0.0)
    if is_complex:
        y = _complex(input, weight, bias, *geometry)
    elif transformed:
        y = torch.convolution(input, weight, bias, *geometry)
    else:  # the kernel of a transposed convolution cannot apply an epilogue
        y = run(input, weight, bias, None, *geometry, 700, 0.0)
    if residual is not None:
        _activations.check_residual(residual, y)
        y = y + residual
    return found.apply(y, value or 0.0)


_DOC = """{kind} in {n} dimension{s}, with bias, residual and activation{where}.

    ``activation(convolution(input, weight) + bias + residual)`` with the convolution of
    ``torch.nn.functional.{name}``, in eager mode and under torch.compile, with gradients of any order. Kiln
    computes it whether ``kiln.torch.enable()`` was called or not; on the CPU its slow host device does, for
    trying things out. If Kiln does not support the arguments, PyTorch's functions compute the result, and
    ``kiln.torch.report()`` has the reason. Under torch.func and forward-mode derivatives it is composed of PyTorch's.

    input: ({shape}), or without the batch N. weight: {weight}. bias: one element for each channel of the
    result. stride, padding, dilation{more}: an integer, or one for each dimension of space{words}.
    residual: a tensor with the sizes and the type of the result. activation: one of {activations}.
    coefficient: the bound of "clipped_relu" (6), the slope of "leaky_relu" (0.01), the scale of "elu" (1).
    Raises ValueError or RuntimeError if arguments do not fit together.
    """


def _document(function: Any, spatial: int, transposed: bool) -> None:
    shape = "N, C" + ", D, H, W"[-3 * spatial :]
    function.__doc__ = _DOC.format(
        kind="Transposed convolution" if transposed else "Convolution",
        n=spatial,
        s="" if spatial == 1 else "s",
        where="" if transposed else " in the same kernel",
        name=function.__name__,
        shape=shape,
        weight="(C, K / groups, ...)" if transposed else "(K, C / groups, ...)",
        more=", output_padding" if transposed else "",
        words="" if transposed else '; padding also "same" or "valid"',
        activations=", ".join(f'"{name}"' for name in _activations.ACTIVATIONS),
    )


def conv1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
           padding: Union[Ints, str] = 0, dilation: Ints = 1, groups: int = 1, *, residual: Optional[Tensor] = None,
           activation: str = "identity", coefficient: Optional[float] = None) -> Tensor:
    return convolution(1, input, weight, bias, residual, stride, padding, dilation, False, 0, groups,
                       activation, coefficient)


def conv2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
           padding: Union[Ints, str] = 0, dilation: Ints = 1, groups: int = 1, *, residual: Optional[Tensor] = None,
           activation: str = "identity", coefficient: Optional[float] = None) -> Tensor:
    return convolution(2, input, weight, bias, residual, stride, padding, dilation, False, 0, groups,
                       activation, coefficient)


def conv3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
           padding: Union[Ints, str] = 0, dilation: Ints = 1, groups: int = 1, *, residual: Optional[Tensor] = None,
           activation: str = "identity", coefficient: Optional[float] = None) -> Tensor:
    return convolution(3, input, weight, bias, residual, stride, padding, dilation, False, 0, groups,
                       activation, coefficient)


def conv_transpose1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
                     padding: Ints = 0, output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1, *,
                     residual: Optional[Tensor] = None, activation: str = "identity",
                     coefficient: Optional[float] = None) -> Tensor:
    return convolution(1, input, weight, bias, residual, stride, padding, dilation, True, output_padding,
                       groups, activation, coefficient)


def conv_transpose2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
                     padding: Ints = 0, output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1, *,
                     residual: Optional[Tensor] = None, activation: str = "identity",
                     coefficient: Optional[float] = None) -> Tensor:
    return convolution(2, input, weight, bias, residual, stride, padding, dilation, True, output_padding,
                       groups, activation, coefficient)


def conv_transpose3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
                     padding: Ints = 0, output_padding: Ints = 0, groups: int = 1, dilation: Ints = 1, *,
                     residual: Optional[Tensor] = None, activation: str = "identity",
                     coefficient: Optional[float] = None) -> Tensor:
    return convolution(3, input, weight, bias, residual, stride, padding, dilation, True, output_padding,
                       groups, activation, coefficient)


for _spatial, _function in enumerate((conv1d, conv2d, conv3d), 1):
    _document(_function, _spatial, False)
for _spatial, _function in enumerate((conv_transpose1d, conv_transpose2d, conv_transpose3d), 1):
    _document(_function, _spatial, True)
