"""Norms of concatenations: DenseNet's, of the results of all layers before.

A channel's moments do not change when channels are concatenated. So each part is measured once, for all norms that read
it: a convolution's kernel makes the moments of its result, and a part that something else made is read once. Without it,
each norm reads the whole concatenation for its moments.
"""

from __future__ import annotations

import collections
import operator
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import fx

from .._fuse._chains import is_fusible, operand_of
from ._run import gather_moments, makes_statistics, run_measured, run_moments
from ._writes import changes_later

_CONCATENATIONS = (torch.cat, torch.concat, torch.concatenate)


def _parts_of(node: Any) -> Optional[List[fx.Node]]:
    """The tensors whose channels the node concatenates; None if it does something else."""
    if not isinstance(node, fx.Node) or node.target not in _CONCATENATIONS or not node.args:
        return None
    dimension = node.args[1] if len(node.args) == 2 else node.kwargs.get("dim", 0)
    if dimension != 1 or len(node.args) > 2 or set(node.kwargs) > {"dim"}:
        return None
    parts = node.args[0]
    sound = isinstance(parts, (list, tuple)) and parts and all(isinstance(part, fx.Node) for part in parts)
    return list(parts) if sound else None  # type: ignore[arg-type]


def _is_measurable(node: fx.Node, traced: fx.GraphModule) -> bool:
    """Whether the node is a convolution whose kernel can make moments."""
    if not is_fusible(node, traced):
        return False
    return not isinstance(traced.get_submodule(str(node.target)).padding, str)


def _measure(node: fx.Node, traced: fx.GraphModule) -> Tuple[fx.Node, fx.Node, fx.Node]:
    """Puts a call of run_measured() into the place of a convolution: the call, the result and its moments."""
    graph = traced.graph
    with graph.inserting_before(node):
        conv = graph.create_node("get_attr", str(node.target))
        call = graph.call_function(run_measured, (conv, operand_of(node)))
        y, moments = (graph.call_function(operator.getitem, (call, i)) for i in (0, 1))
    node.replace_all_uses_with(y)
    graph.erase_node(node)
    return call, y, moments


def measure_parts(traced: fx.GraphModule, blocks: Dict[fx.Node, Any]) -> Dict[fx.Node, str]:
    """Gives blocks without a convolution, whose operand is a concatenation, the moments of its parts, where that reads
    less: where a convolution makes one, or several norms read it. blocks: by their calls. Returns the paths of the
    convolutions that are measured, by their calls."""
    gathered: Dict[fx.Node, List[fx.Node]] = {}
    for call in [node for node in traced.graph.nodes if node in blocks]:
        parts = _parts_of(call.args[2]) if blocks[call].conv is None else None
        if parts is not None and makes_statistics(traced.get_submodule(blocks[call].norm)):
            gathered[call] = parts
    reads = collections.Counter(part for parts in gathered.values() for part in set(parts))
    measurable = {part for part in reads if _is_measurable(part, traced)}
    constant = {part for part in reads if not changes_later(part, part, traced)}
    measured: Dict[fx.Node, str] = {}
    made: Dict[fx.Node, Tuple[fx.Node, fx.Node]] = {}  # by the part: what has its place, and its moments
    for call, parts in gathered.items():
        if not constant.issuperset(parts) or not any(part in measurable or reads[part] > 1 for part in parts):
            continue
        for part in dict.fromkeys(parts):
            if part in made:
                continue
            if part in measurable:
                path = str(part.target)
                reader, *made[part] = _measure(part, traced)  # type: ignore[assignment]
                measured[reader] = path
            else:
                with traced.graph.inserting_before(call):
                    made[part] = part, traced.graph.call_function(run_moments, (part,))
        tensors, moments = ([made[part][i] for part in parts] for i in (0, 1))
        with traced.graph.inserting_before(call):
            whole = traced.graph.call_function(gather_moments, (call.args[2], tensors, moments))
        call.kwargs = {**call.kwargs, "moments": whole}
        blocks[call] = blocks[call]._replace(gathers=True)
    return measured
