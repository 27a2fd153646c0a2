"""kiln::convolution_bias_activation and kiln::convolution_backward, PyTorch operators with fake kernels and
gradients of any order.

Kiln computes both whether it is enabled or not. If it does not support the arguments, PyTorch's functions
compute the result.
"""

from __future__ import annotations

import functools
from typing import Any, Tuple

import torch

from . import _activations, _channels, _control, _flags, _matmul, _native, _pool, _sides
from ._extension import extension, must
from ._norm import _operators as _norm_operators

_GEOMETRY = (
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups"
)
_FORWARD = "convolution_bias_activation"
_INTO = "convolution_into"  # the same into a tensor or a part of one; without gradients
_BACKWARD = "convolution_backward"
_ARGUMENTS = (
    f"Tensor input, Tensor weight, Tensor? bias, Tensor? residual, {_GEOMETRY}, int activation, float coefficient"
)
_SCHEMAS = (
    f"{_FORWARD}({_ARGUMENTS}) -> Tensor",
    f"{_INTO}(Tensor(a!) out, {_ARGUMENTS}) -> ()",
    f"{_BACKWARD}(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, {_GEOMETRY}, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
)


def _fake_forward(
    x: Any, weight: Any, bias: Any, residual: Any, *rest: Any
) -> torch.Tensor:
    *geometry, activation, _ = rest
    _activations.by_number(activation)
    x, geometry = _sides.for_pytorch(x, geometry)
    y = torch.ops.aten.convolution(x, weight, bias, *geometry)
    if residual is not None:
        _activations.check_residual(residual, y)
    return y


def _save_for_forward(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    x, weight, bias, residual, *geometry, activation, coefficient = inputs
    ctx.geometry, ctx.activation, ctx.coefficient = geometry, activation, coefficient
    ctx.bias_sizes = None if bias is None else list(bias.shape)
    if _activations.by_number(activation).from_result:
        ctx.save_for_backward(x, weight, None, None, None if activation == _activations.IDENTITY else output)
    else:  # the gradient needs the activation's argument, so it is computed again
        ctx.save_for_backward(x, weight, bias, residual, None)


def _gradients_of_forward(ctx: Any, dy: torch.Tensor) -> Tuple[Any, ...]:
    x, weight, bias, residual, y = ctx.saved_tensors
    activation = _activations.by_number(ctx.activation)
    if not activation.from_result:
        identity = (_activations.IDENTITY, 0.0)
        y = torch.ops.kiln.convolution_bias_activation(x, weight, bias, residual, *ctx.geometry, *identity)
    dz = dy if ctx.activation == _activations.IDENTITY else activation.gradient(dy, y, ctx.coefficient)
    wanted = [ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.needs_input_grad[2]]
    gradients: Tuple[Any, ...] = (None, None, None)
    if any(wanted):
        computed = torch.ops.kiln.convolution_backward(dz, x, weight, ctx.bias_sizes, *ctx.geometry, wanted)
        gradients = tuple(g if want else None for g, want in zip(computed, wanted))
    return (*gradients, dz if ctx.needs_input_grad[3] else None, *(None,) * 8)


def _save_for_backward(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    dy, x, weight, _, *ctx.geometry, _ = inputs
    ctx.save_for_backward(dy, x, weight)


def _gradients_of_backward(ctx: Any, ddx: Any, ddw: Any, ddb: Any) -> Tuple[Any, ...]:
    dy, x, weight = ctx.saved_tensors
    wanted = list(ctx.needs_input_grad[:3])
    padded, geometry = _sides.for_pytorch(x, ctx.geometry)
    if ddx is not None:
        ddx, _ = _sides.for_pytorch(ddx, ctx.geometry)
    ddy, dx, dw = torch.ops.aten._convolution_double_backward(
        ddx, ddw, ddb, dy, weight, padded, *geometry, wanted
    )
    if padded is not x and wanted[1]:
        dx = _sides.crop(dx, *_sides.split(ctx.geometry[1], x.dim() - 2))
    computed = (ddy, dx, dw)
    return (*(g if want else None for g, want in zip(computed, wanted)), *(None,) * 8)


@functools.lru_cache(maxsize=None)
def define() -> torch.library.Library:
    """Defines the operators, once."""
    library = torch.library.Library("kiln", "DEF")
    for schema in _SCHEMAS:
        library.define(schema)
    forward, backward = f"kiln::{_FORWARD}", f"kiln::{_BACKWARD}"
    torch.library.register_fake(forward, _fake_forward, lib=library)
    torch.library.register_fake(f"kiln::{_INTO}", lambda *_: None, lib=library)
    fake_backward = functools.partial(_sides.backward, torch.ops.aten.convolution_backward)
    torch.library.register_fake(backward, fake_backward, lib=library)
    torch.library.register_autograd(
        forward, _gradients_of_forward, setup_context=_save_for_forward, lib=library
    )
    torch.library.register_autograd(
        backward, _gradients_of_backward, setup_context=_save_for_backward, lib=library
    )
    _matmul.define(library)
    return library


@functools.lru_cache(maxsize=None)
def _register() -> bool:
    library = extension()
    _flags.watch()
    _flags.push()
    _control.use_choices()
    _pool.define(define())
    _channels.define(define())
    _norm_operators.define()
    for key in ("CUDA", "CPU"):
        _native.keep(key)
        must(library.kilnTorchRegisterFused(key.encode()))
    return True


@torch.compiler.assume_constant_result  # torch.compile calls it without tracing it
def register() -> bool:
    """Defines the operators and registers Kiln's kernels of them for CUDA and the CPU, once."""
    return _register()
