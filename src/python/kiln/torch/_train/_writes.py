"""Whether a tensor of a graph may change after a block has kept it for its gradient."""

from __future__ import annotations

import operator
from typing import Any, Dict, List, Set

import torch
from torch import fx

from .._fuse._chains import activation_of
from .._fuse._kinds import is_norm, kind_of
from .._fuse._safety import is_of_torch, writes_nothing
from .._fuse._tracing import is_plain
from ._run import run_block

_MAKERS = tuple(f"torch.nn.modules.{name}" for name in ("conv", "batchnorm", "pooling", "activation"))
_ARITHMETIC = {
    operator.add, operator.sub, operator.mul, operator.truediv, operator.neg, operator.pow, operator.matmul,
    torch.add, torch.sub, torch.mul, torch.cat, "add", "sub", "mul",
}


def _is_new(node: fx.Node, traced: fx.GraphModule) -> bool:
    """Whether the node's result is known to share memory with none of its operands."""
    if node.op == "call_module":
        module = traced.get_submodule(str(node.target))
        made = type(module).__module__ in _MAKERS or kind_of(module) is not None or is_norm(module)
        return made and is_plain(module) and not getattr(module, "inplace", False)
    if node.target is run_block:
        return node.args[4] != "into residual"
    if node.target in _ARITHMETIC:
        return "out" not in node.kwargs
    return activation_of(node, traced) is not None and writes_nothing(node, traced)


def _written(node: fx.Node, traced: fx.GraphModule) -> List[fx.Node]:
    """The operands whose memory the node may write to."""
    if node.op == "call_module":
        module = traced.get_submodule(str(node.target))
        own = is_of_torch(module) and is_plain(module)
        return [] if own and not getattr(module, "inplace", False) else node.all_input_nodes
    if node.target is run_block:
        return [a for a in node.args[3:4] if isinstance(a, fx.Node) and node.args[4] == "into residual"]
    return [] if writes_nothing(node, traced) else node.all_input_nodes


def changes_later(tensor: fx.Node, after: fx.Node, traced: fx.GraphModule) -> bool:
    """Whether a node behind ``after`` may write to the memory of ``tensor``."""
    memory: Dict[fx.Node, Set[Any]] = {}  # what made the memory that a node's result may lie in
    behind = False
    for node in traced.graph.nodes:
        if behind and any(memory[operand] & memory[tensor] for operand in _written(node, traced)):
            return True
        made: Set[Any] = set()
        if not _is_new(node, traced):
            made = made.union(*(memory[operand] for operand in node.all_input_nodes))
        memory[node] = made or {node.target if node.op == "get_attr" else node}
        behind = behind or node is after
    return False
