"""Finds and loads libkiln and the files that belong to it.

``KILN_LIBRARY_DIR`` names a folder to use instead of the package's own, such as ``src`` of a build folder.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import sys
from typing import List, Optional

_package = pathlib.Path(__file__).resolve().parent


def _folders() -> List[pathlib.Path]:
    given = os.environ.get("KILN_LIBRARY_DIR")
    if given:
        return [pathlib.Path(given), pathlib.Path(given) / "torch"]
    return [_package / "lib", _package / "bin"]


def find(*patterns: str) -> str:
    """The first file that matches one of the patterns.

    Raises ImportError with the folders that were searched if there is none.
    """
    for pattern in patterns:
        for folder in _folders():
            for path in sorted(folder.glob(pattern)):
                if path.is_file():
                    return str(path)
    where = " and ".join(str(folder) for folder in _folders())
    raise ImportError(f"none of {', '.join(patterns)} is in {where}; KILN_LIBRARY_DIR can name the folder")


def program() -> str:
    """The file of the program ``kiln``."""
    return find("kiln")


@functools.lru_cache(maxsize=None)
def load() -> ctypes.CDLL:
    """libkiln. The library reads environment variables at its first call, so they can be set before it."""
    if not sys.platform.startswith("linux"):
        raise ImportError(f"Kiln runs on Linux; this is {sys.platform}")
    # RTLD_GLOBAL, so that libkiln_torch.so uses this library instead of loading another one.
    library = ctypes.CDLL(find("libkiln.so", "libkiln.so.*"), mode=ctypes.RTLD_GLOBAL)
    library.kilnGetErrorString.restype = ctypes.c_char_p
    library.kilnGetLastErrorMessage.restype = ctypes.c_char_p
    return library


_begun = False


def begin() -> None:
    """Notes that libkiln makes plans from now on, so that it has read its environment variables."""
    global _begun
    _begun = True


def has_begun() -> bool:
    """Whether ``begin()`` was called. The extension for PyTorch counts its own plans."""
    return _begun


def cache_folder() -> Optional[pathlib.Path]:
    """The folder of the user's kernel cache, as libkiln finds it; None if there is none."""
    if os.environ.get("KILN_CACHE_DIR"):
        return pathlib.Path(os.environ["KILN_CACHE_DIR"])
    if os.environ.get("XDG_CACHE_HOME"):
        return pathlib.Path(os.environ["XDG_CACHE_HOME"]) / "kiln"
    if os.environ.get("HOME"):
        return pathlib.Path(os.environ["HOME"]) / ".cache" / "kiln"
    return None


def version() -> str:
    """The version of libkiln, such as ``"0.2.0"``."""
    number = load().kilnGetVersion()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
