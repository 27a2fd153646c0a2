"""Modules that compute what a convolution or a norm of torch.nn does: of that class, or of one that keeps its forward."""

from __future__ import annotations

from typing import Dict, Optional, Tuple, Type

from torch import nn

CONVOLUTIONS: Dict[Type[nn.Module], Tuple[int, bool]] = {  # dimensions of space, and whether it is transposed
    nn.Conv1d: (1, False),
    nn.Conv2d: (2, False),
    nn.Conv3d: (3, False),
    nn.ConvTranspose1d: (1, True),
    nn.ConvTranspose2d: (2, True),
    nn.ConvTranspose3d: (3, True),
}

NORMS: Dict[Type[nn.Module], Optional[int]] = {  # None: any
    nn.BatchNorm1d: 1, nn.BatchNorm2d: 2, nn.BatchNorm3d: 3, nn.SyncBatchNorm: None,
}


def kind_of(module: nn.Module) -> Optional[Tuple[int, bool]]:
    """Of a module whose call is that of one of these: as above; else None."""
    for base, kind in CONVOLUTIONS.items():
        if isinstance(module, base):
            methods = ("forward", "_output_padding" if kind[1] else "_conv_forward")
            return kind if all(getattr(type(module), name) is getattr(base, name) for name in methods) else None
    return None


def base_of(norm: nn.Module) -> Optional[Type[nn.Module]]:
    """The class of torch.nn that a norm is of; None if it is no norm of batches."""
    return next((base for base in NORMS if isinstance(norm, base)), None)


def is_norm(module: nn.Module) -> bool:
    """Whether a call of the module is one of torch.nn's norms."""
    base = base_of(module)
    return base is not None and type(module).forward is base.forward


def has_activation_inside(module: nn.Module) -> bool:
    """Whether the module is timm's batch normalization and activation in one. By name, for timm need not be there."""
    return (type(module).__module__, type(module).__name__) == ("timm.layers.norm_act", "BatchNormAct2d")
