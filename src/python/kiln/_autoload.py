"""What PyTorch's autoload of backends calls while PyTorch is imported."""

from __future__ import annotations

import os
import warnings


def autoload() -> None:
    """With KILN_TORCH=1 in the environment ``import torch`` imports ``kiln.torch``, which then enables itself.

    A program that imports ``kiln.torch`` first is in the middle of that already. Whatever prevents it is a
    warning: a program that only imports PyTorch goes on without Kiln.
    """
    if os.environ.get("KILN_TORCH", "0") in ("", "0"):
        return
    try:
        import kiln.torch  # noqa: F401
    except ImportError as error:
        warnings.warn(f"KILN_TORCH={os.environ['KILN_TORCH']} has no effect: {error}", RuntimeWarning)
