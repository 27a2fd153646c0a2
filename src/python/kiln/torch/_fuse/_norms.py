"""Batch normalizations: PyTorch's, and timm's, which have an activation inside."""

from __future__ import annotations

from typing import Dict, Type

from torch import nn

from ._activations import Found, activation_of_module
from ._tracing import has_activation_inside

_NORMS: Dict[Type[nn.Module], int] = {nn.BatchNorm1d: 1, nn.BatchNorm2d: 2, nn.BatchNorm3d: 3}


def _inside(module: nn.Module) -> nn.Module:
    return getattr(module, "act", nn.Identity())


def dimensions_of_norm(module: nn.Module) -> int:
    """The dimensions of space of a batch normalization; 0 if the module is none, or more than that and an activation
    of Kiln's."""
    if not has_activation_inside(module):
        return _NORMS.get(type(module), 0)
    drops = type(getattr(module, "drop", None)) is not nn.Identity
    known = type(_inside(module)) is nn.Identity or activation_of_module(_inside(module)) is not None
    return 2 if known and not drops else 0


def activation_inside(norm: nn.Module) -> Found:
    """The activation that a batch normalization applies itself."""
    return activation_of_module(_inside(norm)) if has_activation_inside(norm) else None
