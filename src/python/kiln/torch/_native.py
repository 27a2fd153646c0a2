"""PyTorch's own convolutions as operators that the extension can call, also with bias, residual and
activation composed of PyTorch's functions; and normalizations, poolings and others composed of them.

PyTorch's kernels are looked up before Kiln's are registered. Exceptions cannot pass through PyTorch's C
functions, so an exception is stored as text and the extension raises it again.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from . import _activations, _channels, _matmul, _pool, _sides
from ._norm import _composed, _rows
from ._extension import extension

_NAMES = ("convolution", "convolution_backward")
_SCHEMAS = (
    "native_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, "
    "SymInt groups) -> Tensor",
    "native_convolution_backward(Tensor grad_output, Tensor input, Tensor weight, "
    "SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    "SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
    "native_convolution_bias_activation(Tensor input, Tensor weight, Tensor? bias, "
    "Tensor? residual, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    "SymInt[] output_padding, SymInt groups, int activation, float coefficient) -> Tensor",
    "native_add(Tensor input, Tensor other) -> Tensor",
    *(f"native_{schema}" for schema in (*_pool.SCHEMAS, *_channels.SCHEMAS, *_matmul.SCHEMAS)),
    "native_moments(Tensor input) -> Tensor",
    "native_combine_moments(Tensor moments, Tensor(a!)? running_mean, Tensor(b!)? running_var, float factor, "
    "float epsilon) -> (Tensor, Tensor)",
    "native_normalize(Tensor input, Tensor mean, Tensor invstd, Tensor? weight, Tensor? bias, Tensor? residual, "
    "int activation, float coefficient, bool own) -> Tensor",
    "native_normalize_backward(Tensor grad_output, Tensor input, Tensor mean, Tensor invstd, Tensor? weight, "
    "Tensor? bias, Tensor? residual, int activation, float coefficient, bool own, bool with_residual) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    *(f"native_{schema}" for schema in _rows.SCHEMAS),
)
_GEOMETRY = (
    "Tensor input, Tensor weight, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    "SymInt[] output_padding, SymInt groups"
)
_libraries = []


def _is_channels_last(x: torch.Tensor, weight: torch.Tensor, *geometry: Any) -> bool:
    """Whether PyTorch's result is channels last: on the CPU that depends on the kernel that it selects."""
    x, geometry = _sides.for_pytorch(x, geometry)  # type: ignore[assignment]
    backend = torch._C._select_conv_backend(x, weight, None, *geometry, None)
    found = torch._C._conv_determine_backend_memory_format(x, weight, backend)
    return found in (torch.channels_last, torch.channels_last_3d)


def _guarded(kernel: Any, results: int, keys: Any, *arguments: Any) -> Any:
    try:
        answer = kernel.call_boxed(keys, *arguments)
    except Exception as error:  # of any kind: the message is kept
        extension().kilnTorchSetNativeError((str(error) or repr(error)).encode())
        nothing = torch.empty(0)
        return nothing if results == 1 else (nothing,) * results
    if results == 1:
        return answer
    # An operator cannot return None as a Tensor; the extension uses only the requested results.
    return tuple(torch.empty(0) if tensor is None else tensor for tensor in answer)


class _Composed:
    """act(convolution + bias + residual), computed by PyTorch's functions."""

    def __init__(self, convolution: Any) -> None:
        self._convolution = convolution

    def call_boxed(self, keys: Any, *arguments: Any) -> torch.Tensor:
        x, weight, bias, residual, *geometry, activation, coefficient = arguments
        x, geometry = _sides.for_pytorch(x, geometry)
        y = self._convolution.call_boxed(keys, x, weight, bias, *geometry)
        if residual is not None:
            _activations.check_residual(residual, y)
            y.add_(residual)
        return _activations.apply(activation, coefficient, y)


class _Backward:
    """The gradients, also where the padding differs before and after."""

    def __init__(self, backward: Any) -> None:
        self._backward = backward

    def call_boxed(self, keys: Any, *arguments: Any) -> Any:
        return _sides.backward(functools.partial(self._backward.call_boxed, keys), *arguments)


class _Function:
    """A function that composes an operator of PyTorch's."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def call_boxed(self, keys: Any, *arguments: Any) -> Any:
        return self._function(*arguments)


@functools.lru_cache(maxsize=None)
def _definitions() -> torch.library.Library:
    library = torch.library.Library("kiln_torch", "DEF")
    for schema in (*_SCHEMAS, f"is_channels_last({_GEOMETRY}) -> bool"):
        library.define(schema)
        name = schema.split("(")[0]
        library.impl(name, torch.library.fallthrough_kernel, "Tracer")  # a trace records PyTorch's operators only
    return library


@functools.lru_cache(maxsize=None)
def keep(key: str) -> None:
    """Defines the operators for a dispatch key, once, before Kiln's kernels are registered for it."""
    _definitions()
    library = torch.library.Library("kiln_torch", "IMPL")
    convolution, backward = (torch.library.get_kernel(f"aten::{name}", key) for name in _NAMES)
    for name, kernel, results in (
        ("convolution", convolution, 1),
        ("convolution_backward", _Backward(backward), 3),
        ("convolution_bias_activation", _Composed(convolution), 1),
        ("add", _Function(torch.add), 1),
        ("pool", _Function(_pool.composed), 1),
        ("pool_backward", _Function(_pool.composed_backward), 1),
        ("channel_means", _Function(_channels.means), 1),
        ("multiply_channels", _Function(_channels.multiply), 1),
        ("multiply_channels_backward", _Function(_channels.multiply_backward), 2),
        ("add_channels", _Function(_channels.add), 1),
        ("matmul_bias_activation", _Function(_matmul.composed), 1),
        ("moments", _Function(_composed.moments), 1),
        ("combine_moments", _Function(_composed.combine_moments), 2),
        ("normalize", _Function(_composed.normalize), 1),
        ("normalize_backward", _Function(_composed.normalize_backward), 4),
        ("normalize_rows", _Function(_rows.composed), 3),
        ("normalize_rows_backward", _Function(_rows.composed_backward), 4),
    ):
        library.impl(
            f"native_{name}", functools.partial(_guarded, kernel, results), key, with_keyset=True
        )
    if key == "CPU":
        library.impl("is_channels_last", _is_channels_last, key)
    _libraries.append(library)
