"""Locally connected layers, with separate weights for every output pixel: kiln::local_convolution and its two
gradients, as PyTorch operators with fake kernels and gradients of any order.
"""

from __future__ import annotations

import functools
from typing import Any, List, Optional, Sequence, Tuple, Union

import torch

from ..arrays import _buffers, _local
from . import _transforms
from ._functions import Ints, _expand, _integer, _lower, _pad

Tensor = torch.Tensor

_GEOMETRY = "int[] stride, int[] padding, int[] dilation, int groups"
_SCHEMAS = (
    f"local_convolution(Tensor input, Tensor weight, Tensor? bias, {_GEOMETRY}) -> Tensor",
    f"local_convolution_input(Tensor grad_output, Tensor weight, SymInt[] sizes, {_GEOMETRY}) -> Tensor",
    f"local_convolution_weight(Tensor input, Tensor grad_output, SymInt[] sizes, {_GEOMETRY}) -> Tensor",
)
_TYPES = {
    torch.float32: "float32",
    torch.float64: "float64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
}


def _buffer(tensor: Optional[Tensor], name: str) -> Optional[_buffers.Buffer]:
    if tensor is None:
        return None
    if tensor.dtype not in _TYPES:
        raise ValueError(f"{name} is of {tensor.dtype}; expected one of {', '.join(map(str, _TYPES))}")
    device = (_buffers.CUDA, tensor.device.index) if tensor.is_cuda else (_buffers.HOST, 0)
    sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
    return _buffers.Buffer(tensor, tensor.data_ptr(), device, _TYPES[tensor.dtype], sizes, strides, True)


def _stream(tensor: Tensor) -> Optional[int]:
    return torch.cuda.current_stream(tensor.device).cuda_stream if tensor.is_cuda else None


def _new(like: Tensor, sizes: Sequence[Any]) -> Tensor:
    """The tensor as channels last if ``like`` is channels last."""
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    last = formats.get(like.dim())
    if last is None or like.is_contiguous() or not like.is_contiguous(memory_format=last):
        last = torch.contiguous_format
    return like.new_empty(tuple(sizes)).contiguous(memory_format=last)


def _named(geometry: Sequence[Any]) -> Any:
    stride, padding, dilation, groups = geometry
    return dict(stride=stride, padding=padding, dilation=dilation, groups=groups)


def _forward(x: Tensor, weight: Tensor, bias: Optional[Tensor], *geometry: Any) -> Tensor:
    y = _new(x, _local.output_sizes(x.shape, weight.shape))
    if y.numel() > 0:
        _local.local(
            _buffer(x, "input"), _buffer(weight, "weight"), bias=_buffer(bias, "bias"), out=_buffer(y, "output"),
            stream=_stream(x), **_named(geometry),
        )
    return y


def _input(dy: Tensor, weight: Tensor, sizes: Sequence[int], *geometry: Any) -> Tensor:
    dx = _new(dy, sizes)
    if dx.numel() > 0:
        _local.local_data_gradient(
            _buffer(dy, "grad_output"), _buffer(weight, "weight"), tuple(sizes), out=_buffer(dx, "grad_input"),
            stream=_stream(dy), **_named(geometry),
        )
    return dx


def _weight(x: Tensor, dy: Tensor, sizes: Sequence[int], *geometry: Any) -> Tensor:
    if x.numel() == 0:
        return x.new_zeros(tuple(sizes))
    dw = x.new_empty(tuple(sizes))
    _local.local_filter_gradient(
        _buffer(x, "input"), _buffer(dy, "grad_output"), tuple(sizes), out=_buffer(dw, "grad_weight"),
        stream=_stream(x), **_named(geometry),
    )
    return dw


# Each of the three is linear in two tensors, so its gradients are the other two.


def _save_forward(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    x, weight, bias, *ctx.geometry = inputs
    ctx.save_for_backward(x, weight)
    ctx.bias_rank = None if bias is None else bias.dim()


def _gradients_of_forward(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
    x, weight = ctx.saved_tensors
    ops, wanted = torch.ops.kiln, ctx.needs_input_grad
    dx = ops.local_convolution_input(dy, weight, list(x.shape), *ctx.geometry) if wanted[0] else None
    dw = ops.local_convolution_weight(x, dy, list(weight.shape), *ctx.geometry) if wanted[1] else None
    db = None
    if wanted[2]:
        db = dy.sum(0) if ctx.bias_rank > 1 else dy.sum([0, *range(2, dy.dim())])
    return dx, dw, db, None, None, None, None


def _save_two(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    first, second, _, *ctx.geometry = inputs
    ctx.save_for_backward(first, second)


def _gradients_of_input(ctx: Any, ddx: Tensor) -> Tuple[Any, ...]:
    dy, weight = ctx.saved_tensors
    ops, wanted = torch.ops.kiln, ctx.needs_input_grad
    ddy = ops.local_convolution(ddx, weight, None, *ctx.geometry) if wanted[0] else None
    dw = ops.local_convolution_weight(ddx, dy, list(weight.shape), *ctx.geometry) if wanted[1] else None
    return ddy, dw, None, None, None, None, None


def _gradients_of_weight(ctx: Any, ddw: Tensor) -> Tuple[Any, ...]:
    x, dy = ctx.saved_tensors
    ops, wanted = torch.ops.kiln, ctx.needs_input_grad
    dx = ops.local_convolution_input(dy, ddw, list(x.shape), *ctx.geometry) if wanted[0] else None
    ddy = ops.local_convolution(x, ddw, None, *ctx.geometry) if wanted[1] else None
    return dx, ddy, None, None, None, None, None


@functools.lru_cache(maxsize=None)
def define() -> torch.library.Library:
    """Defines the operators, once."""
    library = torch.library.Library("kiln", "FRAGMENT")
    for schema in _SCHEMAS:
        library.define(schema)
    operators = (
        ("local_convolution", _forward, _save_forward, _gradients_of_forward),
        ("local_convolution_input", _input, _save_two, _gradients_of_input),
        ("local_convolution_weight", _weight, _save_two, _gradients_of_weight),
    )
    for name, kernel, save, gradients in operators:
        for key in ("CPU", "CUDA"):
            library.impl(name, kernel, key)
        torch.library.register_autograd(f"kiln::{name}", gradients, setup_context=save, lib=library)
    fake = lambda x, weight, *_: _new(x, _local.output_sizes(x.shape, weight.shape))
    torch.library.register_fake("kiln::local_convolution", fake, lib=library)
    fake_input = lambda dy, weight, sizes, *_: _new(dy, sizes)
    torch.library.register_fake("kiln::local_convolution_input", fake_input, lib=library)
    fake_weight = lambda x, dy, sizes, *_: x.new_empty(tuple(sizes))
    torch.library.register_fake("kiln::local_convolution_weight", fake_weight, lib=library)
    return library


@torch.compiler.assume_constant_result  # torch.compile calls it without tracing it
def _register() -> bool:
    define()
    return True


def _local_convolution(spatial: int, input: Tensor, weight: Tensor, bias: Optional[Tensor], stride: Ints,
                       padding: Union[Ints, str], dilation: Ints, groups: int) -> Tensor:
    if input.dim() == spatial + 1:  # one image, without a batch
        one = _local_convolution(spatial, input.unsqueeze(0), weight, bias, stride, padding, dilation, groups)
        return one.squeeze(0)
    if input.dim() != spatial + 2:
        raise ValueError(f"input has {input.dim()} dimensions; expected {spatial + 2}, or {spatial + 1} without a batch")
    _register()
    input, weight, bias = _lower((input, weight, bias))  # type: ignore[assignment]
    strides, dilations = _expand(stride, spatial, "stride"), _expand(dilation, spatial, "dilation")
    if isinstance(padding, str):
        input, padding = _pad(input, weight[(0,) * (weight.dim() - spatial - 2)], spatial, strides, padding, dilations)
    geometry: List[Any] = [
        strides,
        _expand(padding, spatial, "padding"),  # type: ignore[arg-type]
        dilations,
        _integer(groups, "groups"),
    ]
    if _transforms.active():
        return _transforms.local_convolution(input, weight, bias, *geometry)
    return torch.ops.kiln.local_convolution(input, weight, bias, *geometry)


_DOC = """A locally connected layer in {n} dimension{s} of space: a convolution with separate weights for every
    output pixel.

    Works in eager mode and under torch.compile, with gradients of any order, whether
    ``kiln.torch.enable()`` was called or not; on the CPU the slow host device computes it, for trying things
    out.

    input: ({shape}), or without the batch N. weight: ({weight}), with the output's sizes of space first{more}. bias: (K,),
    one element per channel, or (K, {out}), one per output pixel and channel. stride, padding, dilation: an
    integer, or one for each dimension of space; padding also "same" or "valid". Weights in another order, such as Keras' (P, Q, R, S, C, K),
    can be passed as a permuted view.
    Raises ValueError or RuntimeError if arguments do not fit together.
    """


def local_conv1d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
                 padding: Union[Ints, str] = 0, dilation: Ints = 1, groups: int = 1) -> Tensor:
    return _local_convolution(1, input, weight, bias, stride, padding, dilation, groups)


def local_conv2d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
                 padding: Union[Ints, str] = 0, dilation: Ints = 1, groups: int = 1) -> Tensor:
    return _local_convolution(2, input, weight, bias, stride, padding, dilation, groups)


def local_conv3d(input: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
                 padding: Union[Ints, str] = 0, dilation: Ints = 1, groups: int = 1) -> Tensor:
    return _local_convolution(3, input, weight, bias, stride, padding, dilation, groups)


for _spatial, _function in enumerate((local_conv1d, local_conv2d, local_conv3d), 1):
    _out = ", ".join("OPQ"[-_spatial:])
    _function.__doc__ = _DOC.format(
        n=_spatial,
        s="" if _spatial == 1 else "s",
        shape="N, C" + ", D, H, W"[-3 * _spatial :],
        weight=f"{_out}, K, C / groups, {', '.join('TRS'[-_spatial:])}",
        out=_out,
        more="" if _spatial == 3 else ", or (N, ...) where each image has weights of its own",
    )
