"""kiln::convolution_moments, moments, combine_moments, normalize and normalize_backward, PyTorch operators with fake
kernels and gradients; kiln::block, which is the first and the last of them; and link_backward.
src/torch/normalization/operators.hpp says what they compute.

Moments are a tensor (3, C): how many elements a channel has, their mean, and the sum of (x - mean)^2.
"""

from __future__ import annotations

import functools
from typing import Any, Tuple

import torch

from .. import _activations
from .._activations import IDENTITY
from . import _composed, _rows

Tensor = torch.Tensor

GEOMETRY = (
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups"
)
_NUMBERS = "Tensor mean, Tensor invstd, Tensor? weight, Tensor? bias"
_SCHEMAS = (
    f"convolution_moments(Tensor input, Tensor weight, Tensor? bias, {GEOMETRY}) -> (Tensor, Tensor)",
    "moments(Tensor input) -> Tensor",
    "combine_moments(Tensor moments, Tensor(a!)? running_mean, Tensor(b!)? running_var, float factor, "
    "float epsilon) -> (Tensor, Tensor)",
    f"normalize(Tensor input, {_NUMBERS}, Tensor? residual, int activation, float coefficient, bool own) -> Tensor",
    f"normalize_backward(Tensor grad_output, Tensor input, {_NUMBERS}, Tensor? residual, int activation, "
    "float coefficient, bool own, bool with_residual) -> (Tensor, Tensor, Tensor, Tensor)",
    f"block(Tensor input, Tensor weight, Tensor? bias, {GEOMETRY}, Tensor? norm_weight, Tensor? norm_bias, "
    "Tensor? residual, Tensor(a!)? running_mean, Tensor(b!)? running_var, float factor, float epsilon, "
    "int activation, float coefficient) -> (Tensor, Tensor, Tensor, Tensor)",
    f"block_backward(Tensor grad_output, Tensor convolved, {_NUMBERS}, Tensor? residual, int activation, "
    f"float coefficient, bool with_residual, Tensor input, Tensor weight, SymInt[]? bias_sizes, {GEOMETRY}, "
    "bool[3] output_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    f"link_backward(Tensor? grad_normalized, Tensor convolved, {_NUMBERS}, Tensor? residual, int activation, "
    "float coefficient, bool with_residual, Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
    f"{GEOMETRY}, bool[3] output_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    *_rows.SCHEMAS,
)
ops = torch.ops.kiln


# ---- shapes ----------------------------------------------------------------------------------------------------------


def _numbers(x: Tensor, *sizes: Any) -> Tensor:
    return x.new_empty((*sizes, x.shape[1]), dtype=_composed.wide_type(x.dtype))


def _like(x: Tensor) -> Tensor:
    return torch.empty_like(x, memory_format=torch._prims_common.suggest_memory_format(x))


def _fake_convolution(x: Tensor, weight: Tensor, bias: Any, *geometry: Any) -> Tuple[Tensor, Tensor]:
    y = torch.ops.aten.convolution(x, weight, bias, *geometry)
    return y, _numbers(y, 3)


def _fake_combine(moments: Tensor, *_: Any) -> Tuple[Tensor, Tensor]:
    channels = moments.shape[-1]
    return moments.new_empty(channels), moments.new_empty(channels)


def _fake_normalize(x: Tensor, mean: Tensor, invstd: Tensor, weight: Any, bias: Any, residual: Any, activation: int,
                    *_: Any) -> Tensor:
    _activations.by_number(activation)
    if residual is not None:
        _activations.check_residual(residual, x, "input")
    return _like(x)


def _fake_backward(dy: Tensor, x: Tensor, *rest: Any) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return _like(x), _like(x) if rest[-1] else x.new_empty(0), _numbers(x), _numbers(x)


def _fake_block(x: Tensor, weight: Tensor, bias: Any, *rest: Any) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    y = torch.ops.aten.convolution(x, weight, bias, *rest[:6])
    return _like(y), y, _numbers(y), _numbers(y)


def _fake_block_backward(dz: Tensor, y: Tensor, *rest: Any) -> Tuple[Any, ...]:
    *_, with_residual, x, weight, bias_sizes, s, p, d, transposed, more, groups, mask = rest
    geometry = (s, p, d, transposed, more, groups)
    convolution = torch.ops.aten.convolution_backward(_like(y), x, weight, bias_sizes, *geometry, mask)
    return (*convolution, _like(y) if with_residual else y.new_empty(0), _numbers(y), _numbers(y))


def _fake_link_backward(dz: Any, y: Tensor, *rest: Any) -> Tuple[Any, ...]:
    _, _, _, _, _, _, _, with_residual, *convolution, mask = rest
    _, dweight, dbias = torch.ops.aten.convolution_backward(*convolution, [False, *mask[1:]])
    return _like(y), _like(y) if with_residual else y.new_empty(0), _numbers(y), _numbers(y), dweight, dbias


# ---- gradients -------------------------------------------------------------------------------------------------------


def saved(ctx: Any) -> Any:
    """What was saved for the gradient, with words of Kiln's where it was written to since."""
    try:
        return ctx.saved_tensors
    except RuntimeError as error:
        if "modified by an inplace operation" not in str(error):
            raise
        raise RuntimeError(
            f"{error} A normalization of Kiln's with an addition and an activation needs the tensor that was added, as "
            "PyTorch's own addition does not. If that one was written to, write to a copy of it or, if "
            "kiln.torch.fuse_training() made the call, unfuse() the module."
        ) from None


def _save_convolution(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    x, weight, bias, *ctx.geometry = inputs
    ctx.set_materialize_grads(False)
    ctx.bias_sizes = None if bias is None else list(bias.shape)
    ctx.save_for_backward(x, weight, *output)


def _gradients_of_convolution(ctx: Any, dy: Any, dmoments: Any) -> Tuple[Any, ...]:
    x, weight, y, moments = ctx.saved_tensors
    if dmoments is not None:
        more = _composed.moments_gradient(dmoments, y, moments)
        dy = more if dy is None else dy + more
    wanted = list(ctx.needs_input_grad[:3])
    gradients: Tuple[Any, ...] = (None, None, None)
    if dy is not None and any(wanted):
        made = ops.convolution_backward(dy, x, weight, ctx.bias_sizes, *ctx.geometry, wanted)
        gradients = tuple(g if want else None for g, want in zip(made, wanted))
    return (*gradients, *(None,) * 6)


def _save_moments(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    ctx.save_for_backward(*inputs, output)


def _gradient_of_moments(ctx: Any, dmoments: Tensor) -> Tensor:
    x, moments = ctx.saved_tensors
    return _composed.moments_gradient(dmoments, x, moments)


def _save_normalize(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    x, mean, invstd, weight, bias, residual, ctx.activation, ctx.coefficient, ctx.own = inputs
    # The gradient asks for the residual only where the activation's argument has it.
    ctx.save_for_backward(x, mean, invstd, weight, bias, None if ctx.activation == IDENTITY else residual)


def _gradients_of_normalize(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
    x, mean, invstd, weight, bias, residual = saved(ctx)
    wants = ctx.needs_input_grad
    linear = ctx.activation == IDENTITY
    # With create_graph=True the gradient is differentiated, too.
    run = _composed.normalize_backward if torch.is_grad_enabled() else ops.normalize_backward
    dx, dresidual, dweight, dbias = run(
        dy, x, mean, invstd, weight, bias, residual, ctx.activation, ctx.coefficient, ctx.own, wants[5] and not linear
    )
    dmean = dinvstd = None
    if not ctx.own and (wants[1] or wants[2]):
        scale = 1.0 if weight is None else weight
        dmean, dinvstd = -scale * invstd * dbias, scale * dweight / invstd
    given = (dx, dmean, dinvstd, dweight, dbias, dy if linear else dresidual)
    return (*(g if want else None for g, want in zip(given, wants)), None, None, None)


# ---- definitions -----------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=None)
def define() -> torch.library.Library:
    """Defines the operators, once."""
    library = torch.library.Library("kiln", "FRAGMENT")
    for schema in _SCHEMAS:
        library.define(schema)
    for name, fake in {
        "convolution_moments": _fake_convolution,
        "moments": lambda x: _numbers(x, 3),
        "combine_moments": _fake_combine,
        "normalize": _fake_normalize,
        "normalize_backward": _fake_backward,
        "block": _fake_block,
        "block_backward": _fake_block_backward,
        "link_backward": _fake_link_backward,
        "normalize_rows": _rows.fake,
        "normalize_rows_backward": _rows.fake_backward,
    }.items():
        torch.library.register_fake(f"kiln::{name}", fake, lib=library)
    for name, gradients, save in (
        ("convolution_moments", _gradients_of_convolution, _save_convolution),
        ("moments", _gradient_of_moments, _save_moments),
        ("normalize", _gradients_of_normalize, _save_normalize),
        ("normalize_rows", _rows.gradients, _rows.save),
    ):
        torch.library.register_autograd(f"kiln::{name}", gradients, setup_context=save, lib=library)
    return library
