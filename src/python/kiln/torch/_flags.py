"""Passes PyTorch's flags for convolutions to the extension whenever they change.

PyTorch has no C function that returns them. Its setters are replaced once by functions that call the
original and then pass the flags on: the setters of ``torch._C``, which ``torch.backends.cudnn.flags()``
calls, and those in the properties of ``torch.backends.cudnn``.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import torch

from ._extension import extension

_SETTERS = (
    "_set_cudnn_enabled",
    "_set_cudnn_benchmark",
    "_set_cudnn_deterministic",
    "_set_cudnn_allow_tf32",
    "_set_deterministic_algorithms",
    "_set_fp32_precision_setter",
)


def _allow_tf32() -> bool:
    try:
        return torch._C._get_fp32_precision_getter("cuda", "conv") == "tf32"
    except (AttributeError, RuntimeError):
        return bool(torch._C._get_cudnn_allow_tf32())


def push() -> None:
    """Passes the current flags on. Only needed after C++ code has changed them."""
    extension().kilnTorchSetFlags(
        torch._C._get_cudnn_enabled(),
        torch._C._get_cudnn_benchmark(),
        torch._C._get_cudnn_deterministic() or torch._C._get_deterministic_algorithms(),
        _allow_tf32(),
    )


def _pushing(setter: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(setter)
    def set_and_push(*arguments: Any, **keywords: Any) -> Any:
        answer = setter(*arguments, **keywords)
        push()
        return answer

    return set_and_push


@functools.lru_cache(maxsize=None)
def watch() -> None:
    """Replaces the setters; once."""
    originals = {}
    for name in _SETTERS:
        setter = getattr(torch._C, name, None)
        if setter is not None:
            originals[setter] = _pushing(setter)
            setattr(torch._C, name, originals[setter])
    for owner in (type(torch.backends.cudnn), type(torch.backends)):
        for prop in vars(owner).values():
            setter = getattr(prop, "setter", None)
            if setter in originals:
                prop.setter = originals[setter]
