"""PyTorch's own convolutions as operators that the extension can call.

The kernels are taken before Kiln's are registered. An exception becomes text that the extension
raises again, because none passes through PyTorch's C functions.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ._extension import extension

_NAMES = ("convolution", "convolution_backward")
_SCHEMAS = (
    "native_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding, "
    "SymInt groups) -> Tensor",
    "native_convolution_backward(Tensor grad_output, Tensor input, Tensor weight, "
    "SymInt[]? bias_sizes, SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    "SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
)
_libraries = []


def _guarded(kernel: Any, results: int, keys: Any, *arguments: Any) -> Any:
    try:
        answer = kernel.call_boxed(keys, *arguments)
    except Exception as error:  # whatever PyTorch raises, its words are kept
        extension().kilnTorchSetNativeError((str(error) or repr(error)).encode())
        nothing = torch.empty(0)
        return nothing if results == 1 else (nothing,) * results
    if results == 1:
        return answer
    # None is no Tensor; the extension passes on those that were asked for alone.
    return tuple(torch.empty(0) if tensor is None else tensor for tensor in answer)


@functools.lru_cache(maxsize=None)
def _definitions() -> torch.library.Library:
    library = torch.library.Library("kiln_torch", "DEF")
    for schema in _SCHEMAS:
        library.define(schema)
    return library


@functools.lru_cache(maxsize=None)
def keep(key: str) -> None:
    """Defines the operators for a dispatch key; once, before Kiln's kernels are registered for it."""
    _definitions()
    library = torch.library.Library("kiln_torch", "IMPL")
    for name, results in zip(_NAMES, (1, 3)):
        kernel = torch.library.get_kernel(f"aten::{name}", key)
        library.impl(
            f"native_{name}", functools.partial(_guarded, kernel, results), key, with_keyset=True
        )
    _libraries.append(library)
