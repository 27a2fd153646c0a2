"""Whether a tensor of a graph may change after a block has kept it for its gradient."""

from __future__ import annotations

import operator
from typing import Any, Dict, List, Optional, Set

import torch
import torch.nn.functional as F
from torch import fx

from .._fuse._chains import activation_of, operand_of
from .._fuse._in_place import iadd, iand, ifloordiv, imod, imul, ior, ipow, isub, itruediv, ixor
from .._fuse._kinds import is_norm, kind_of
from .._fuse._safety import is_of_torch, writes_nothing
from .._fuse._tracing import is_plain
from ._image_norms import run_image_norm
from ._run import gather_moments, run_block, run_measured, run_moments

_MAKERS = tuple(f"torch.nn.modules.{name}" for name in ("conv", "batchnorm", "pooling", "activation"))
_ARITHMETIC = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow, operator.matmul,
    torch.add, torch.sub, torch.mul, torch.cat, "add", "sub", "mul",
}
_BLOCKS = {run_block: 4, run_image_norm: 3}  # where their argument `addition` is, behind the residual
_IN_PLACE = {iadd, isub, imul, itruediv, ifloordiv, imod, ipow, iand, ior, ixor, torch.relu_, F.relu_}


def _is_new(node: fx.Node, traced: fx.GraphModule) -> bool:
    """Whether the node's result is known to share memory with none of its operands."""
    if node.op == "call_module":
        module = traced.get_submodule(str(node.target))
        made = type(module).__module__ in _MAKERS or kind_of(module) is not None or is_norm(module)
        return made and is_plain(module) and not getattr(module, "inplace", False)
    if node.target in _BLOCKS:
        return node.args[_BLOCKS[node.target]] != "into residual"
    if node.target in _ARITHMETIC:
        return "out" not in node.kwargs
    return activation_of(node, traced) is not None and writes_nothing(node, traced)


def _place(node: fx.Node, traced: fx.GraphModule) -> Optional[fx.Node]:
    """The one operand that an operation in place writes to, and returns; None if it is not known to be one."""
    named = node.op == "call_method" and str(node.target).endswith("_") and node.target != "set_"
    in_place = named or node.target in _IN_PLACE
    if not in_place and activation_of(node, traced) is not None and not writes_nothing(node, traced):
        return operand_of(node)
    first = node.args[0] if in_place and node.args and not node.kwargs else None
    return first if isinstance(first, fx.Node) else None


def _written(node: fx.Node, traced: fx.GraphModule) -> List[fx.Node]:
    """The operands whose memory the node may write to."""
    if node.op == "call_module":
        module = traced.get_submodule(str(node.target))
        own = is_of_torch(module) and is_plain(module)
        return [] if own and not getattr(module, "inplace", False) else node.all_input_nodes
    if node.target in (run_measured, run_moments, gather_moments):
        return []
    if node.target in _BLOCKS:
        addition = _BLOCKS[node.target]
        residual = node.args[addition - 1]
        return [residual] if isinstance(residual, fx.Node) and node.args[addition] == "into residual" else []
    if writes_nothing(node, traced):
        return []
    place = _place(node, traced)
    return node.all_input_nodes if place is None else [place]


def changes_later(tensor: fx.Node, after: fx.Node, traced: fx.GraphModule) -> bool:
    """Whether a node behind ``after`` may write to the memory of ``tensor``."""
    memory: Dict[fx.Node, Set[Any]] = {}  # what made the memory that a node's result may lie in
    behind = False
    for node in traced.graph.nodes:
        if behind and any(memory[operand] & memory[tensor] for operand in _written(node, traced)):
            return True
        made: Set[Any] = set()
        if not _is_new(node, traced):
            place = _place(node, traced)
            made = made.union(*(memory[operand] for operand in (node.all_input_nodes if place is None else [place])))
        memory[node] = made or {node.target if node.op == "get_attr" else node}
        behind = behind or node is after
    return False
