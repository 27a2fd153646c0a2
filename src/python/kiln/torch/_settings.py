"""The settings of libkiln that ``enable()`` makes: its bundle, and strict mode.

libkiln reads them from the environment, once, when it makes its first plan. Afterwards a change has no effect, so it
is refused.
"""

from __future__ import annotations

import os
import subprocess
from typing import Dict, Optional, Union

from .. import _library
from ._extension import extension

_CACHE, _BUNDLE = "KILN_CACHE", "KILN_BUNDLE_PATH"
_before: Dict[str, Optional[str]] = {}  # the values of the variables that enable() has changed


def _check_bundle(given: str, path: str) -> None:
    if not os.path.isfile(path):
        raise ValueError(f"bundle is {given!r}, which is no file")
    done = subprocess.run(
        [_library.program(), "bundle", "verify", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode != 0:
        raise ValueError(f"bundle is {given!r}, which kiln.torch.prewarm() did not make, or not whole: {done.stdout.strip()}")


def _set(name: str, value: Optional[str]) -> None:
    _before.setdefault(name, os.environ.get(name))
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def choose(bundle: Optional[Union[str, os.PathLike]], strict: Optional[bool]) -> None:
    """Makes the settings; None leaves one as it is. Raises ValueError if the file is no bundle, and RuntimeError if
    a setting would change that libkiln has read."""
    wanted: Dict[str, Optional[str]] = {}
    if bundle is not None:
        path = os.path.abspath(bundle)
        _check_bundle(os.fspath(bundle), path)
        wanted[_BUNDLE] = path
    if strict:
        wanted[_CACHE] = "strict"
    elif strict is not None and _CACHE in _before:
        wanted[_CACHE] = _before[_CACHE]
    changed = [name for name, value in wanted.items() if os.environ.get(name) != value]
    if changed and (_library.has_begun() or extension().kilnTorchHasBegun()):
        arguments = {_CACHE: f"strict={strict}", _BUNDLE: f"bundle={os.fspath(bundle)!r}" if bundle is not None else ""}
        raise RuntimeError(
            f"enable({', '.join(arguments[name] for name in changed)}) comes too late: libkiln read "
            f"{' and '.join(changed)} when it made this process's first plan. Call it before the first convolution "
            "by Kiln, or in a new process"
        )
    for name in changed:
        _set(name, wanted[name])


def environment_of_programs() -> Dict[str, str]:
    """The environment as it was before ``enable()``, for programs that compile kernels."""
    environment = dict(os.environ)
    for name, value in _before.items():
        environment.pop(name, None)
        if value is not None:
            environment[name] = value
    return environment
