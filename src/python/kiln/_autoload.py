"""The entry point that PyTorch's autoload of backends calls while PyTorch is imported."""

from __future__ import annotations

import os
import warnings


def autoload() -> None:
    """Imports ``kiln.torch``, which enables itself, if KILN_TORCH=1 is set in the environment.

    Does nothing if the program is importing ``kiln.torch`` already. A failure gives only a warning, so that
    a program that imports PyTorch runs without Kiln.
    """
    if os.environ.get("KILN_TORCH", "0") in ("", "0"):
        return
    try:
        import kiln.torch  # noqa: F401
    except ImportError as error:
        warnings.warn(f"KILN_TORCH={os.environ['KILN_TORCH']} has no effect: {error}", RuntimeWarning)
