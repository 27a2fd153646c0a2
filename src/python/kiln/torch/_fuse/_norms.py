"""Batch normalizations that are folded: PyTorch's, and timm's, which have an activation inside."""

from __future__ import annotations

from typing import Optional

from torch import nn

from ._activations import Found, activation_of_module
from ._kinds import NORMS, base_of, has_activation_inside, is_norm


def _inside(module: nn.Module) -> nn.Module:
    return getattr(module, "act", nn.Identity())


def dimensions_of_norm(module: nn.Module) -> Optional[int]:
    """The dimensions of space of a batch normalization; None if the module is none, or more than that and an activation
    of Kiln's."""
    base = base_of(module)
    if base is None or is_norm(module):
        return None if base is None else NORMS[base]
    drops = type(getattr(module, "drop", None)) is not nn.Identity
    known = type(_inside(module)) is nn.Identity or activation_of_module(_inside(module)) is not None
    return NORMS[base] if has_activation_inside(module) and known and not drops else None


def activation_inside(norm: nn.Module) -> Found:
    """The activation that a batch normalization applies itself."""
    return activation_of_module(_inside(norm)) if has_activation_inside(norm) else None
