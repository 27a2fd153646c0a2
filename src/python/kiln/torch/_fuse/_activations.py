"""The activations of PyTorch that Kiln's kernels apply, with Kiln's names of them."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Tuple, Type

import torch
import torch.nn.functional as F
from torch import fx, nn

from ._tracing import is_plain

Found = Optional[Tuple[str, Optional[float]]]  # name and coefficient


def _gelu(approximate: str) -> Found:
    return ("gelu_tanh" if approximate == "tanh" else "gelu", None)


_MODULES: Dict[Type[nn.Module], Callable[[Any], Found]] = {
    nn.ReLU: lambda m: ("relu", None),
    nn.ReLU6: lambda m: ("clipped_relu", 6.0),
    nn.Sigmoid: lambda m: ("sigmoid", None),
    nn.Tanh: lambda m: ("tanh", None),
    nn.LeakyReLU: lambda m: ("leaky_relu", float(m.negative_slope)),
    nn.ELU: lambda m: ("elu", float(m.alpha)),
    nn.GELU: lambda m: _gelu(m.approximate),
    nn.SiLU: lambda m: ("silu", None),
    nn.Hardswish: lambda m: ("hard_swish", None),
    nn.Mish: lambda m: ("mish", None),
}
_FUNCTIONS: Dict[Any, Found] = {
    F.relu: ("relu", None),
    torch.relu: ("relu", None),
    torch.relu_: ("relu", None),
    "relu": ("relu", None),
    "relu_": ("relu", None),
    F.relu6: ("clipped_relu", 6.0),
    torch.sigmoid: ("sigmoid", None),
    F.sigmoid: ("sigmoid", None),
    "sigmoid": ("sigmoid", None),
    torch.tanh: ("tanh", None),
    F.tanh: ("tanh", None),
    "tanh": ("tanh", None),
    F.silu: ("silu", None),
    F.hardswish: ("hard_swish", None),
    F.mish: ("mish", None),
}


def activation_of_module(module: nn.Module) -> Found:
    make = _MODULES.get(type(module)) if is_plain(module) else None
    return make(module) if make else None


def activation_of(node: fx.Node, traced: fx.GraphModule) -> Found:
    if node.op == "call_module":
        return activation_of_module(traced.get_submodule(str(node.target)))
    if node.op not in ("call_function", "call_method"):
        return None
    if node.target is F.gelu:
        return _gelu(str(node.kwargs.get("approximate", "none")))
    return _FUNCTIONS.get(node.target) if set(node.kwargs) <= {"inplace", "input"} else None
