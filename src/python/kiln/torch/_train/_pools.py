"""Maximum pooling in a model's graph."""

from __future__ import annotations

import inspect
from typing import Any, Dict, Optional

import torch
import torch.nn.functional as F
from torch import fx, nn

from .. import _operators, _pool, _transforms
from .._fuse._tracing import is_plain
from .._norm._functions import _TYPES

_MODULES = {nn.MaxPool1d: 1, nn.MaxPool2d: 2, nn.MaxPool3d: 3}
_FUNCTIONS = {
    F.max_pool1d: 1, F.max_pool2d: 2, F.max_pool3d: 3, torch.max_pool1d: 1, torch.max_pool2d: 2, torch.max_pool3d: 3,
}


def _signature(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):  # type: ignore[no-untyped-def]
    """The arguments of all of them."""


def run_pool(x: torch.Tensor, spatial: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
             ceil_mode: bool) -> torch.Tensor:
    """The maximum pooling of ``spatial`` dimensions that PyTorch's function has."""
    windows = [_pool.expanded(v, spatial) for v in (kernel_size, stride or kernel_size, padding, dilation)]
    served = x.dim() == spatial + 2 and x.dtype in _TYPES and x.numel() > 0
    if torch.compiler.is_compiling() or not served or _transforms.active():
        return _pool.native(x, spatial, *windows, ceil_mode)
    _operators.register()
    return torch.ops.kiln.max_pool(x, *windows, ceil_mode)


def _arguments(node: fx.Node, traced: fx.GraphModule) -> Optional[Dict[str, Any]]:
    """The arguments of a pooling of one result; None if the node is none."""
    if node.op == "call_module":
        module = traced.get_submodule(str(node.target))
        if type(module) not in _MODULES or not is_plain(module) or len(node.args) != 1 or node.kwargs:
            return None
        names = list(inspect.signature(_signature).parameters)[1:]
        out = {"input": node.args[0], **{name: getattr(module, name) for name in names}}
        return {**out, "spatial": _MODULES[type(module)]}
    if node.op != "call_function" or node.target not in _FUNCTIONS:
        return None
    try:
        bound = inspect.signature(_signature).bind(*node.args, **node.kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    return {**bound.arguments, "spatial": _FUNCTIONS[node.target]}


def fuse_pools(traced: fx.GraphModule) -> None:
    """Puts calls of run_pool() into the place of maximum poolings."""
    for node in list(traced.graph.nodes):
        arguments = _arguments(node, traced)
        if arguments is None or arguments.pop("return_indices"):
            continue
        if any(isinstance(value, fx.Node) for name, value in arguments.items() if name != "input"):
            continue
        with traced.graph.inserting_before(node):
            call = traced.graph.call_function(run_pool, kwargs={"x": arguments.pop("input"), **arguments})
        node.replace_all_uses_with(call)
        traced.graph.erase_node(node)
