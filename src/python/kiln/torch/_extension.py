"""libkiln_torch.so through ctypes: its functions are declared in src/torch/control.h."""

from __future__ import annotations

import ctypes
import functools
import json
from typing import Any, Dict, List

from .. import _library


@functools.lru_cache(maxsize=None)
def extension() -> ctypes.CDLL:
    """The loaded extension.

    Raises ImportError if it is missing or this PyTorch is not supported.
    """
    import torch  # noqa: F401  (loads the libraries that the extension looks up)

    _library.load()
    library = ctypes.CDLL(_library.find("libkiln_torch.so"))
    text = ctypes.c_char_p
    for name, arguments in {
        "Load": [],
        "Enable": [text],
        "Disable": [text],
        "RegisterFused": [text],
        "Report": [],
    }.items():
        function = getattr(library, "kilnTorch" + name)
        function.restype = text
        function.argtypes = arguments
    for name, arguments in {
        "SetFlags": [ctypes.c_int] * 4,
        "SetPolicy": [ctypes.c_int],
        "SetThreadPolicy": [ctypes.c_int],
        "SetStandIn": [ctypes.c_int],
        "SetNativeError": [text],
        "UseChoices": [text, ctypes.c_int, text],
        "SetCapacity": [ctypes.c_uint64],
        "Clear": [],
        "Wait": [],
    }.items():
        function = getattr(library, "kilnTorch" + name)
        function.restype = None
        function.argtypes = arguments
    library.kilnTorchSetRecorded.restype = ctypes.c_int
    library.kilnTorchSetRecorded.argtypes = [ctypes.c_int]
    library.kilnTorchHasBegun.restype = ctypes.c_int
    why = library.kilnTorchLoad().decode()
    if why:
        raise ImportError(f"Kiln cannot serve this PyTorch: {why}")
    return library


def must(answer: bytes) -> None:
    """Raises RuntimeError if a function of the extension returned an error message."""
    if answer:
        raise RuntimeError(answer.decode())


def report_rows() -> List[Dict[str, Any]]:
    return json.loads(extension().kilnTorchReport().decode())
