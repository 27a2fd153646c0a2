"""Kiln's convolutions as functions, with bias, residual and activation in the same kernel."""

from __future__ import annotations

import operator
from typing import Any, List, Optional, Sequence, Tuple, Union

import torch
import torch.nn.functional as F

from . import _activations, _cached, _operators, _sides, _transforms

Tensor = torch.Tensor
Ints = Union[int, Sequence[int]]
Padding = Union[Ints, str, Sequence[Union[int, Sequence[int]]]]
Modes = Union[str, Sequence[str]]
MODES = ("zeros", "reflect", "replicate", "circular")


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


def _of_word(weight: Tensor, spatial: int, stride: Sequence[int], padding: str,
             dilation: Sequence[int]) -> Tuple[List[int], List[int]]:
    """The padding before and after for PyTorch's words "same" and "valid"."""
    if padding == "valid":
        return [0] * spatial, [0] * spatial
    if padding != "same":
        raise ValueError(f"padding is {padding!r}; expected integers, 'same' or 'valid'")
    if any(s != 1 for s in stride):
        raise ValueError(f"padding is 'same' and stride {tuple(stride)}; expected a stride of 1")
    totals = [dilation[i] * (weight.shape[2 + i] - 1) for i in range(spatial)]
    return [t // 2 for t in totals], [t - t // 2 for t in totals]


def _pad(input: Tensor, weight: Tensor, spatial: int, stride: Sequence[int], padding: str,
         dilation: Sequence[int]) -> Tuple[Tensor, List[int]]:
    """The input and the padding for PyTorch's words, for operators whose padding is the same on both sides."""
    before, after = _of_word(weight, spatial, stride, padding, dilation)
    return _sides.pad(input, [0] * spatial, [a - b for b, a in zip(before, after)]), before


def sides_of(padding: Any, spatial: int) -> Tuple[List[int], List[int]]:
    """The padding before and after: of an integer, or of an integer or a pair for each dimension of space."""
    if not isinstance(padding, (list, tuple)) or not any(isinstance(p, (list, tuple)) for p in padding):
        both = _expand(padding, spatial, "padding")
        return both, both
    if len(padding) != spatial:
        raise ValueError(f"padding has {len(padding)} values or pairs; expected {spatial}")
    before, after = [], []
    for p in padding:
        pair = [_integer(v, "padding") for v in (p if isinstance(p, (list, tuple)) else (p, p))]
        if len(pair) != 2:
            raise ValueError(f"padding has {tuple(pair)} for a dimension; expected an integer, or (before, after)")
        if any(isinstance(v, int) and v < 0 for v in pair):
            raise ValueError(f"padding has {tuple(pair)} for a dimension; expected 0 or more")
        before.append(pair[0])
        after.append(pair[1])
    return before, after


def modes_of(padding_mode: Modes, spatial: int) -> List[str]:
    """A padding mode for each dimension of space."""
    modes = [padding_mode] * spatial if isinstance(padding_mode, str) else list(padding_mode)
    if len(modes) != spatial:
        raise ValueError(f"padding_mode has {len(modes)} words; expected 1 or {spatial}")
    for mode in modes:
        if mode not in MODES:
            raise ValueError(f"padding_mode is {mode!r}; expected one of {', '.join(MODES)}")
    return modes


def pad_by_mode(input: Tensor, before: List[int], after: List[int],
                modes: List[str]) -> Tuple[Tensor, List[int], List[int]]:
    """A copy padded where the mode is another than zeros, and the padding that is left."""
    for mode in dict.fromkeys(modes):
        if mode == "zeros":
            continue
        now = [[p if m == mode else 0 for p, m in zip(side, modes)] for side in (before, after)]
        input = _sides.pad(input, *now, mode=mode)
    zeros = [[p if m == "zeros" else 0 for p, m in zip(side, modes)] for side in (before, after)]
    return (input, *zeros)  # type: ignore[return-value]


def _complex(input: Tensor, weight: Tensor, bias: Optional[Tensor], stride: Ints, padding: Ints, dilation: Ints,
             transposed: bool, output_padding: Ints, groups: int) -> Tensor:
    """PyTorch composes complex convolutions of real ones, in its functions alone and not in aten::convolution."""
    if transposed:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[input.dim() - 3]
        return function(input, weight, bias, stride, padding, output_padding, groups, dilation)
    function = (F.conv1d, F.conv2d, F.conv3d)[input.dim() - 3]
    return function(input, weight, bias, stride, padding, dilation, groups)


def activation_of(name: str, coefficient: Optional[float]) -> Tuple[_activations.Activation, float]:
    """An activation by its name, and its coefficient, 0 if it has none."""
    found = _activations.find(name)
    if found.coefficient is None and coefficient is not None:
        raise ValueError(f"coefficient is {coefficient}; the activation {name!r} takes none")
    return found, (found.coefficient if coefficient is None else coefficient) or 0.0


def after_cache(
    spatial: int,
    input: Tensor,
    cache: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    residual: Optional[Tensor],
    strides: List[int],
    sides: Tuple[List[int], List[int]],
    dilations: List[int],
    groups: int,
    activation: str,
    coefficient: Optional[float],
    modes: List[str],
) -> Tensor:
    """A convolution over cache and input, one after the other in the first dimension of space, which is not padded.

    The arguments fit together as _streaming checks; ``sides`` and ``modes`` are of all dimensions.
    """
    input, before, after = pad_by_mode(input, *sides, modes)
    cache, _, _ = pad_by_mode(cache, *sides, modes)
    is_complex = input.is_complex() or weight.is_complex()
    if cache.shape[2] == 0 or _transforms.active() or is_complex:
        whole = input if cache.shape[2] == 0 else torch.cat((cache, input), 2)
        return convolution(spatial, whole, weight, bias, residual, strides, list(zip(before, after)), dilations, False,
                           0, groups, activation, coefficient)
    found, value = activation_of(activation, coefficient)
    _cached.register()
    input, cache, weight, bias, residual = _lower((input, cache, weight, bias, residual))  # type: ignore[assignment]
    return torch.ops.kiln.convolution_cached(
        input, cache, weight, bias, residual, strides, [*before, *after], dilations, _integer(groups, "groups"),
        found.number, value,
    )


def _repeats_first(input: Tensor, weight: Tensor, dilation: List[int], before: List[int], after: List[int],
                   modes: List[str]) -> bool:
    """Whether the first plane is repeated before the others alone, as a cache can hold it."""
    if modes[0] != "replicate" or after[0] != 0 or weight.dim() != input.dim() or input.dim() != len(modes) + 2:
        return False
    reach = (weight.shape[2] - 1) * dilation[0]
    return 0 < before[0] <= reach and 0 < input.shape[2] and before[0] + input.shape[2] > reach


def convolution(
    spatial: int,
    input: Tensor,
    weight: Tensor,
    bias: Optional[Tensor],
    residual: Optional[Tensor],
    stride: Ints,
    padding: Padding,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    activation: str,
    coefficient: Optional[float],
    padding_mode: Modes = "zeros",
) -> Tensor:
    """The common implementation of this module's functions."""
    found, value = activation_of(activation, coefficient)
    if input.dim() == spatial + 1:  # one image, without a batch
        batch = lambda t: None if t is None else t.unsqueeze(0)
        return convolution(
            spatial, input.unsqueeze(0), weight, bias, batch(residual), stride, padding, dilation, transposed,
            output_padding, groups, activation, coefficient, padding_mode,
        ).squeeze(0)
    _operators.register()
    input, weight, bias, residual = _lower((input, weight, bias, residual))  # type: ignore[assignment]
    strides, dilations = _expand(stride, spatial, "stride"), _expand(dilation, spatial, "dilation")
    if isinstance(padding, str) and not transposed:
        before, after = _of_word(weight, spatial, strides, padding, dilations)
    elif transposed:
        before = after = _expand(padding, spatial, "padding")  # type: ignore[arg-type]
    else:
        before, after = sides_of(padding, spatial)
    if padding_mode != "zeros":
        modes = modes_of(padding_mode, spatial)
        if _repeats_first(input, weight, dilations, before, after, modes):
            cache = input.narrow(2, 0, 1).expand(*input.shape[:2], before[0], *input.shape[3:])
            sides = [0, *before[1:]], after
            return after_cache(spatial, input, cache, weight, bias, residual, strides, sides, dilations, groups,
                               activation, coefficient, ["zeros", *modes[1:]])
        input, before, after = pad_by_mode(input, before, after, modes)
    geometry = [
        strides,
        _sides.joined(before, after),
        dilations,
        transposed,
        _expand(output_padding, spatial, "output_padding"),
        _integer(groups, "groups"),
    ]
    transformed = _transforms.active()
    run = torch.ops.kiln.convolution_bias_activation
    is_complex = input.is_complex() or weight.is_complex()
    if not transformed and not is_complex:
        return run(input, weight, bias, residual, *geometry, found.number, value)
    input, geometry = _sides.for_pytorch(input, geometry)
    y = (_complex if is_complex else torch.convolution)(input, weight, bias, *geometry)
    if residual is not None:
        _activations.check_residual(residual, y)
        y = y + residual
    return found.apply(y, value)


_WORDS = """; padding
    also "same" or "valid", or a pair (before, after) in place of an integer: ((2, 0), (1, 1), (1, 1)) looks back alone
    in the first dimension. padding_mode: "zeros", "reflect", "replicate" or "circular", or one for each dimension of
    space. All but "zeros" pad a copy of the input, except "replicate" before the first dimension alone, as causal
    networks repeat the first frame."""

_DOC = """{kind} in {n} dimension{s}, with bias, residual and activation in the same kernel.

    ``activation(convolution(input, weight) + bias + residual)`` with the convolution of
    ``torch.nn.functional.{name}``, in eager mode and under torch.compile, with gradients of any order. Kiln
    computes it whether ``kiln.torch.enable()`` was called or not; on the CPU its slow host device does, for
    trying things out. If Kiln does not support the arguments, PyTorch's functions compute the result, and
    ``kiln.torch.report()`` has the reason. Under torch.func and forward-mode derivatives it is composed of PyTorch's.

    input: ({shape}), or without the batch N. weight: {weight}. bias: one element for each channel of the
    result. stride, padding, dilation{more}: an integer, or one for each dimension of space{words}
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
        name=function.__name__,
        shape=shape,
        weight="(C, K / groups, ...)" if transposed else "(K, C / groups, ...)",
        more=", output_padding" if transposed else "",
        words="." if transposed else _WORDS,
        activations=", ".join(f'"{name}"' for name in _activations.ACTIVATIONS),
    )


def conv1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
           padding: Padding = 0, dilation: Ints = 1, groups: int = 1, *, residual: Optional[Tensor] = None,
           activation: str = "identity", coefficient: Optional[float] = None,
           padding_mode: Modes = "zeros") -> Tensor:
    return convolution(1, input, weight, bias, residual, stride, padding, dilation, False, 0, groups,
                       activation, coefficient, padding_mode)


def conv2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
           padding: Padding = 0, dilation: Ints = 1, groups: int = 1, *, residual: Optional[Tensor] = None,
           activation: str = "identity", coefficient: Optional[float] = None,
           padding_mode: Modes = "zeros") -> Tensor:
    return convolution(2, input, weight, bias, residual, stride, padding, dilation, False, 0, groups,
                       activation, coefficient, padding_mode)


def conv3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
           padding: Padding = 0, dilation: Ints = 1, groups: int = 1, *, residual: Optional[Tensor] = None,
           activation: str = "identity", coefficient: Optional[float] = None,
           padding_mode: Modes = "zeros") -> Tensor:
    return convolution(3, input, weight, bias, residual, stride, padding, dilation, False, 0, groups,
                       activation, coefficient, padding_mode)


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
