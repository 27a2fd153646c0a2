"""Poolings in a model's graph."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Optional

import torch
import torch.nn.functional as F
from torch import fx, nn

from .. import _operators, _pool, _transforms
from .._fuse._tracing import is_plain
from .._norm._functions import _TYPES


def _maximum(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):  # type: ignore[no-untyped-def]
    return None if return_indices else {"dilation": dilation, "mode": _pool.MAX}


def _average(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):  # type: ignore[no-untyped-def]
    mode = _pool.AVERAGE if count_include_pad else _pool.AVERAGE_INSIDE
    return None if divisor_override else {"dilation": 1, "mode": mode}


# PyTorch's poolings: the dimensions of space, and a function of their arguments that gives what the two kinds do not
# have in common; None for what Kiln does not have.
_MODULES = {
    nn.MaxPool1d: (1, _maximum), nn.MaxPool2d: (2, _maximum), nn.MaxPool3d: (3, _maximum),
    nn.AvgPool1d: (1, _average), nn.AvgPool2d: (2, _average), nn.AvgPool3d: (3, _average),
}
_FUNCTIONS = {
    F.max_pool1d: (1, _maximum), F.max_pool2d: (2, _maximum), F.max_pool3d: (3, _maximum),
    torch.max_pool1d: (1, _maximum), torch.max_pool2d: (2, _maximum), torch.max_pool3d: (3, _maximum),
    F.avg_pool1d: (1, _average), F.avg_pool2d: (2, _average), F.avg_pool3d: (3, _average),
}


def _is_widened(x: torch.Tensor, mode: int) -> bool:
    """Whether autocast makes the pooling one of f32."""
    return mode != _pool.MAX and x.device.type == "cpu" and torch.is_autocast_enabled("cpu")


def run_pool(x: torch.Tensor, spatial: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
             mode: int) -> torch.Tensor:
    """The pooling of ``spatial`` dimensions that PyTorch's function has. mode: see _pool."""
    windows = [_pool.expanded(v, spatial) for v in (kernel_size, stride or kernel_size, padding, dilation)]
    served = x.dim() == spatial + 2 and x.dtype in _TYPES and x.numel() > 0 and not _is_widened(x, mode)
    if torch.compiler.is_compiling() or not served or _transforms.active():
        return _pool.native(x, spatial, *windows, ceil_mode, mode)
    _operators.register()
    return torch.ops.kiln.pool(x, *windows, ceil_mode, mode)


def _call(function: Callable[..., Any], spatial: int, *positional: Any, **by_name: Any) -> Optional[Dict[str, Any]]:
    """The arguments of run_pool(); None if Kiln does not have the pooling."""
    try:
        bound = inspect.signature(function).bind(*positional, **by_name)
    except TypeError:
        return None
    bound.apply_defaults()
    given = bound.arguments
    if any(isinstance(value, fx.Node) for name, value in given.items() if name != "input"):
        return None
    own = function(*bound.args, **bound.kwargs)
    if own is None:
        return None
    common = {name: given[name] for name in ("kernel_size", "stride", "padding", "ceil_mode")}
    return {"x": given["input"], "spatial": spatial, **common, **own}


def _arguments(node: fx.Node, traced: fx.GraphModule) -> Optional[Dict[str, Any]]:
    if node.op == "call_module":
        module = traced.get_submodule(str(node.target))
        if type(module) not in _MODULES or not is_plain(module) or len(node.args) != 1 or node.kwargs:
            return None
        spatial, function = _MODULES[type(module)]
        names = [name for name in inspect.signature(function).parameters if hasattr(module, name)]
        return _call(function, spatial, node.args[0], **{name: getattr(module, name) for name in names})
    if node.op != "call_function" or node.target not in _FUNCTIONS:
        return None
    spatial, function = _FUNCTIONS[node.target]
    return _call(function, spatial, *node.args, **node.kwargs)


def fuse_pools(traced: fx.GraphModule) -> None:
    """Puts calls of run_pool() into the place of poolings."""
    for node in list(traced.graph.nodes):
        arguments = _arguments(node, traced)
        if arguments is None:
            continue
        with traced.graph.inserting_before(node):
            call = traced.graph.call_function(run_pool, kwargs=arguments)
        node.replace_all_uses_with(call)
        traced.graph.erase_node(node)
