"""Norms whose class has a forward of its own that calls torch.nn.functional.batch_norm, as timm's BatchNormAct2d does:
in the graph that call becomes one of the module, which is then a norm as others are."""

from __future__ import annotations

import builtins
import inspect
import operator
from typing import Any, Dict, List, Optional

import torch
import torch.nn.functional as F
from torch import fx, nn

from .._fuse._kinds import base_of
from .._fuse._tracing import is_plain
from ._run import makes_statistics

_ALONE = "kiln_norm_alone"  # in a node's meta: the call stands for the normalization, not for the module's forward
_DIMENSIONS = {nn.BatchNorm2d: 4, nn.BatchNorm3d: 5}


def is_alone(node: fx.Node) -> bool:
    return _ALONE in node.meta


def _owner(arguments: Dict[str, Any]) -> Optional[str]:
    """The path of the module whose tensors these are, by their names."""
    paths = set()
    for name in ("running_mean", "running_var", "weight", "bias"):
        node = arguments[name]
        if node is None:
            continue
        if not isinstance(node, fx.Node) or node.op != "get_attr":
            return None
        path, _, own = str(node.target).rpartition(".")
        paths.add(path if own == name else "")
    return paths.pop() if len(paths) == 1 else None


def _is_that_of(norm: nn.Module, arguments: Dict[str, Any]) -> bool:
    """Whether a call has the arguments that the forward of torch.nn's class has."""
    given = [arguments[name] is not None for name in ("running_mean", "running_var", "weight", "bias")]
    tracked = norm.track_running_stats or not norm.training
    wanted = [tracked and norm._buffers[name] is not None for name in ("running_mean", "running_var")]
    wanted += [norm._parameters[name] is not None for name in ("weight", "bias")]
    numbers = (arguments["training"], arguments["momentum"], arguments["eps"])
    return given == wanted and numbers == (makes_statistics(norm), norm.momentum, norm.eps)


def _counts(path: str, norm: nn.Module, traced: fx.GraphModule) -> Optional[List[fx.Node]]:
    """The node that counts the batch, if there is to be one; None if it is not so."""
    reads = [n for n in traced.graph.nodes if n.op == "get_attr" and n.target == f"{path}.num_batches_tracked"]
    found = [user for read in reads for user in read.users]
    for node in found:
        if node.op != "call_method" or node.target != "add_" or node.args[1:] != (1,) or node.kwargs or node.users:
            return None
    wanted = norm.training and norm.track_running_stats and norm._buffers["num_batches_tracked"] is not None
    return found if len(found) == int(wanted) else None


def _erase(node: fx.Node, traced: fx.GraphModule) -> None:
    """Erases the node, and what was there for it alone."""
    operands = node.all_input_nodes
    traced.graph.erase_node(node)
    for operand in operands:
        reads = operand.op == "get_attr" or operand.target in (builtins.getattr, operator.eq)
        if reads and not operand.users:
            _erase(operand, traced)


def _erase_checks(of: fx.Node, dimensions: Optional[int], traced: fx.GraphModule) -> None:
    """Erases assertions that the node's result has so many dimensions, which the block checks."""
    for read in [user for user in of.users if user.target is builtins.getattr and user.args[1:] == ("ndim",)]:
        for equal in [user for user in read.users if user.target is operator.eq and user.args[1:] == (dimensions,)]:
            for check in [user for user in equal.users if user.target is torch._assert]:
                _erase(check, traced)
    for read in [user for user in of.users if user.target is builtins.getattr and not user.users]:
        traced.graph.erase_node(read)


def _gather(node: fx.Node, traced: fx.GraphModule, root: nn.Module) -> None:
    bound = inspect.signature(F.batch_norm).bind(*node.args, **node.kwargs)
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    path, operand = _owner(arguments), arguments["input"]
    if not path or not isinstance(operand, fx.Node):
        return
    norm = root.get_submodule(path)
    if base_of(norm) is None or not is_plain(norm) or not _is_that_of(norm, arguments):
        return
    counts = _counts(path, norm, traced)
    if counts is None:
        return
    for count in counts:
        _erase(count, traced)
    _erase_checks(operand, _DIMENSIONS.get(base_of(norm)), traced)
    traced.set_submodule(path, norm)  # whose tensors alone it has
    with traced.graph.inserting_before(node):
        call = traced.graph.call_module(path, (operand,))
    call.meta[_ALONE] = True
    node.replace_all_uses_with(call)
    _erase(node, traced)


def gather_norms(traced: fx.GraphModule, root: nn.Module) -> None:
    """In a graph of ``root``: puts calls of modules into the place of their calls of F.batch_norm."""
    for node in list(traced.graph.nodes):
        if node.op == "call_function" and node.target is F.batch_norm:
            _gather(node, traced, root)
