"""The module that a convolution and the operations after it become."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from torch import fx, nn

from .. import _activations
from .._functions import convolution, result_type
from ._kinds import kind_of


def _compute(x: torch.Tensor, residual: Any, weight: torch.Tensor, bias: Optional[torch.Tensor],
             settings: Dict[str, Any], addition: str) -> torch.Tensor:
    """The fused call, or its parts one by one where the kernel cannot add the residual."""
    epilogue = {name: settings[name] for name in ("activation", "coefficient")}
    geometry = {name: value for name, value in settings.items() if name not in epilogue}
    if settings["folded"] and x.dim() != settings["spatial"] + 2:
        raise ValueError(
            f"input has {x.dim()} dimensions; expected {settings['spatial'] + 2}, a batch, because batch "
            "normalization was folded into this convolution"
        )
    del geometry["folded"]
    run = lambda r, e: convolution(input=x, weight=weight, bias=bias, residual=r, **geometry, **e)
    if residual is None:
        return run(None, epilogue)
    if _fits(x, residual, weight, geometry):
        return run(residual, epilogue)
    y = run(None, {"activation": "identity", "coefficient": None})
    if addition == "into result":
        y += residual
    elif addition == "into residual":
        residual += y
        y = residual
    else:
        y = y + residual
    found = _activations.find(epilogue["activation"])
    return found.apply(y, epilogue["coefficient"] if epilogue["coefficient"] is not None else found.coefficient or 0.0)


def _fits(x: torch.Tensor, residual: Any, weight: torch.Tensor, geometry: Dict[str, Any]) -> bool:
    """Whether the residual has the sizes and the type of the convolution's result."""
    if not isinstance(residual, torch.Tensor) or residual.dim() != x.dim() or residual.dtype != result_type(x):
        return False
    if residual.device != x.device:
        return False
    spatial, transposed = geometry["spatial"], geometry["transposed"]
    expand = lambda value: [value] * spatial if isinstance(value, int) else list(value)
    before = x.dim() - spatial - 1  # dimensions before the channels: the batch, or none
    channels = weight.shape[1] * geometry["groups"] if transposed else weight.shape[0]
    if residual.shape[before] != channels or residual.shape[:before] != x.shape[:before]:
        return False
    stride, dilation, more = (expand(geometry[name]) for name in ("stride", "dilation", "output_padding"))
    padding = geometry["padding"]
    for i in range(spatial):
        extent = dilation[i] * (weight.shape[2 + i] - 1)
        around = extent if padding == "same" else 0 if padding == "valid" else 2 * expand(padding)[i]
        size, wanted = x.shape[before + 1 + i], residual.shape[before + 1 + i]
        made = (size - 1) * stride[i] - around + extent + 1 + more[i]
        if wanted != (made if transposed else (size + around - extent - 1) // stride[i] + 1):
            return False
    return True


class FusedConvolution(nn.Module):
    """``activation(convolution(x) + bias + residual)`` in one call; ``fuse()`` puts it into a model.

    addition: what PyTorch adds where the residual's sizes or type are not the result's: "new", a new tensor,
    "into result" or "into residual", in place.
    """

    def __init__(self, conv: nn.Module, weight: nn.Parameter, bias: Optional[nn.Parameter], folded: bool) -> None:
        super().__init__()
        self.spatial, self.transposed = kind_of(conv)  # type: ignore[misc]
        self.weight, self.bias = weight, bias
        self.stride, self.padding, self.dilation = conv.stride, conv.padding, conv.dilation
        self.output_padding, self.groups = conv.output_padding, conv.groups
        self.folded = folded
        self.addition = "new"
        self.activation = "identity"
        self.coefficient: Optional[float] = None

    def forward(self, x: torch.Tensor, residual: Optional[torch.Tensor] = None) -> torch.Tensor:
        names = ("spatial", "stride", "padding", "dilation", "transposed", "output_padding", "groups")
        settings = {name: getattr(self, name) for name in (*names, "folded", "activation", "coefficient")}
        return _compute(x, residual, self.weight, self.bias, settings, self.addition)

    def extra_repr(self) -> str:
        return f"{tuple(self.weight.shape)}, stride={self.stride}, padding={self.padding}, activation={self.activation}"


fx.wrap("_compute")  # so that a trace by torch.fx has the call instead of what is inside of it
