"""Whether a chain of operations can be computed at the place of its last one: whether nothing between writes to
memory. What is not known to leave memory alone counts as writing."""

from __future__ import annotations

import builtins
import inspect
import operator
from typing import Any, Sequence

import torch
import torch.nn.functional as F
from torch import fx, nn

from ._kinds import is_norm, kind_of
from ._module import FusedConvolution
from ._tracing import is_plain

_PURE = {
    builtins.getattr, builtins.len, builtins.int, builtins.float, builtins.max, builtins.min, operator.getitem,
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.neg,
    operator.pow, operator.matmul, operator.eq, operator.ne, operator.lt, operator.gt, operator.le, operator.ge,
}


def _asks_for_place(function: Any, node: fx.Node) -> bool:
    """Whether the arguments ask for a result in place, by whatever name or position."""
    if any(name in node.kwargs and node.kwargs[name] not in (None, False) for name in ("inplace", "out")):
        return True
    if not any(argument is True for argument in node.args):
        return False
    try:
        bound = inspect.signature(function).bind(*node.args, **node.kwargs).arguments
    except (TypeError, ValueError):
        return True  # a builtin without a signature: True may be anything
    return bound.get("inplace", False) is not False


def _is_torchs(function: Any) -> bool:
    name = getattr(function, "__name__", "")
    return bool(name) and any(getattr(owner, name, None) is function for owner in (torch, F))


def is_of_torch(module: nn.Module) -> bool:
    """Whether the module computes what one of torch.nn does."""
    return type(module).__module__.startswith("torch.nn.modules") or is_norm(module) or kind_of(module) is not None


def writes_nothing(node: fx.Node, traced: fx.GraphModule) -> bool:
    """Whether the node is known to change no tensor that was there before it."""
    if node.op in ("placeholder", "get_attr", "output"):
        return True
    if node.op == "call_module":
        module = traced.get_submodule(str(node.target))
        if isinstance(module, FusedConvolution):
            return is_plain(module) and module.addition != "into residual"
        counts = module.training and kind_of(module) is None  # norms then change their running statistics
        return is_of_torch(module) and is_plain(module) and not getattr(module, "inplace", False) and not counts
    if node.op == "call_method":
        return not str(node.target).endswith("_") and "out" not in node.kwargs
    if node.target in _PURE:
        return True
    name = getattr(node.target, "__name__", "_")
    harmless = _is_torchs(node.target) and not name.endswith("_") and name not in ("batch_norm", "instance_norm")
    return harmless and not _asks_for_place(node.target, node)


def can_move(nodes: Sequence[fx.Node], traced: fx.GraphModule) -> bool:
    """Whether the chain's operands are the same at its first and at its last node."""
    chain = set(nodes)
    node = nodes[0]
    while node is not nodes[-1]:
        if node not in chain and not writes_nothing(node, traced):
            return False
        node = node.next
    return True


def is_fresh(node: fx.Node, traced: fx.GraphModule) -> bool:
    """Whether the node makes a new tensor that only one other node uses, so that no one sees it change."""
    if node.op != "call_module" or len(node.users) != 1:
        return False
    module = traced.get_submodule(str(node.target))
    fresh = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
             nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
    return is_plain(module) and (type(module) in fresh or isinstance(module, FusedConvolution))
