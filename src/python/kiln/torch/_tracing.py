"""Leaves convolutions to PyTorch while it traces.

``torch.jit.trace``, and whatever is built on it (``torch.onnx.export(dynamo=False)``, the graph of TensorBoard),
records ``aten::_convolution``, which PyTorch's own kernel of ``aten::convolution`` calls. Kiln's kernel does not call
it, so the trace would hold the result as a constant. While a trace is active PyTorch's dispatcher goes through the
key ``Tracer``; the kernel below is called then and at no other time.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ._extension import extension


@functools.lru_cache(maxsize=None)
def _below() -> Any:
    """The dispatch keys below ``Tracer``."""
    return torch._C._dispatch_keyset_full_after(torch._C._dispatch_key_parse("Tracer"))


def _traced(keys: Any, *arguments: Any) -> torch.Tensor:
    library = extension()
    before = library.kilnTorchSetRecorded(1)
    try:
        return torch.ops.aten.convolution.default.redispatch(keys & _below(), *arguments)
    finally:
        library.kilnTorchSetRecorded(before)


@functools.lru_cache(maxsize=None)
def register() -> torch.library.Library:
    """Registers the kernel, once."""
    library = torch.library.Library("aten", "IMPL")
    library.impl("convolution", _traced, "Tracer", with_keyset=True)
    return library
