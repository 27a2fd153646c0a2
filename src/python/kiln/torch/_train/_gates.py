"""Squeeze-and-excitation in a model's graph: the means of a tensor's channels, and the product with what was made of them.

PyTorch's kernels of either, and of their gradients, are several times slower than a copy with channels last.
"""

from __future__ import annotations

import operator
from typing import Any, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import fx, nn

from .. import _channels, _operators, _transforms
from .._fuse._chains import operand_of
from .._fuse._tracing import is_plain
from .._norm._functions import _TYPES
from ._run import run_block, run_linked

_MODULES = {nn.AdaptiveAvgPool1d: 1, nn.AdaptiveAvgPool2d: 2, nn.AdaptiveAvgPool3d: 3}
_POOLS = {1: F.adaptive_avg_pool1d, 2: F.adaptive_avg_pool2d, 3: F.adaptive_avg_pool3d}
_FUNCTIONS = {function: spatial for spatial, function in _POOLS.items()}
_PRODUCTS = (operator.mul, torch.mul, "mul")


def _is_served(x: Any) -> bool:
    plain = type(x) in (torch.Tensor, nn.Parameter) and x.layout is torch.strided
    fits = plain and 3 <= x.dim() <= 5 and x.dtype in _TYPES and x.numel() > 0
    return fits and not torch.compiler.is_compiling() and not _transforms.active()


def run_squeeze(x: Any, dims: Tuple[int, ...], pools: bool) -> Tuple[Any, Any]:
    """x, and its means over ``dims``, which are kept with size 1. pools: by PyTorch's pooling, if Kiln does not serve it."""
    if not _is_served(x) or x.dim() != len(dims) + 2 or (x.device.type == "cpu" and torch.is_autocast_enabled("cpu")):
        return x, _POOLS[len(dims)](x, 1) if pools else x.mean(dims, keepdim=True)
    _operators.register()
    return _channels.Squeeze.apply(x)


def run_product(a: Any, b: Any) -> Any:
    """a * b."""
    if not _is_served(a) or not _is_served(b) or a.dtype != b.dtype or a.device != b.device:
        return a * b
    x, numbers = (a, b) if a.numel() >= b.numel() else (b, a)
    if numbers.shape != (*x.shape[:2], *(1,) * (x.dim() - 2)):
        return a * b
    _operators.register()
    return torch.ops.kiln.multiply_channels(x, numbers)


def _is_one(size: Any) -> bool:
    return size == 1 or (isinstance(size, (tuple, list)) and all(s == 1 for s in size))


def _dimensions(args: Any, kwargs: Any) -> Optional[int]:
    """The dimensions of space over which mean(x, *args) is, if it keeps them."""
    given = dict(zip(("dim", "keepdim"), args), **kwargs)
    dims = given.pop("dim", None)
    if given != {"keepdim": True} or not isinstance(dims, (tuple, list)):
        return None
    return len(dims) if sorted(dims) == list(range(2, 2 + len(dims))) else None


def _squeezed(node: fx.Node, traced: fx.GraphModule) -> Optional[Tuple[fx.Node, Tuple[int, ...], bool]]:
    """The arguments of run_squeeze(), if the node is such means."""
    spatial: Optional[int] = None
    pools = True
    if node.op == "call_module":
        module = traced.get_submodule(str(node.target))
        if type(module) in _MODULES and is_plain(module) and _is_one(module.output_size) and operand_of(node):
            spatial = _MODULES[type(module)]
    elif node.target in _FUNCTIONS and len(node.args) == 2 and not node.kwargs and _is_one(node.args[1]):
        spatial = _FUNCTIONS[node.target]
    elif (node.op, node.target) in (("call_method", "mean"), ("call_function", torch.mean)) and node.args:
        spatial, pools = _dimensions(node.args[1:], node.kwargs), False
    x = node.args[0] if node.args else None
    return (x, tuple(range(2, 2 + spatial)), pools) if spatial and isinstance(x, fx.Node) else None


def _is_product(node: fx.Node) -> bool:
    named = node.op in ("call_function", "call_method") and node.target in _PRODUCTS
    return named and len(node.args) == 2 and not node.kwargs and all(isinstance(a, fx.Node) for a in node.args)


def _is_of_block(node: fx.Node) -> bool:
    """Whether the node is a new tensor that a block makes."""
    if node.target is operator.getitem and isinstance(node.args[0], fx.Node):
        return node.args[0].target is run_linked and node.args[1] == 0
    return node.target is run_block


def fuse_gates(traced: fx.GraphModule) -> None:
    """Puts calls of run_squeeze() into the place of means of what is multiplied later, and of run_product() into that
    of products."""
    place = {node: i for i, node in enumerate(traced.graph.nodes)}
    for node in list(traced.graph.nodes):
        found = _squeezed(node, traced)
        if found is None:
            continue
        x = found[0]
        products = [user for user in x.users if _is_product(user) and place[user] > place[node]]
        last = max((place[user] for user in products), default=0)
        # No one else has x until then, or a view of it, that might write to it.
        alone = all(user is node or user in products or place[user] > last for user in x.users)
        if not products or not alone or not _is_of_block(x):
            continue
        with traced.graph.inserting_before(node):
            call = traced.graph.call_function(run_squeeze, found)
            kept = traced.graph.call_function(operator.getitem, (call, 0))
            means = traced.graph.call_function(operator.getitem, (call, 1))
        for user in products:
            user.replace_input_with(x, kept)
        node.replace_all_uses_with(means)
        traced.graph.erase_node(node)
    for node in list(traced.graph.nodes):
        if _is_product(node):
            node.op, node.target = "call_function", run_product
