"""New nodes of a graph, with the values that inductor asks for: fake tensors of their sizes, strides and type."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import detect_fake_mode


def value_of(node: fx.Node) -> Any:
    """The node's fake tensor; None if it is none."""
    value = node.meta.get("val")
    return value if isinstance(value, torch.Tensor) else None


def hint_of(size: Any) -> int:
    """The size, or the one that a symbol has in the call that is compiled for; 0 if that is not known."""
    if isinstance(size, torch.SymInt):
        hint = size.node.hint if size.node.has_hint() else 0
        return int(hint or 0)
    return int(size)


def is_like(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether the two have the same type, device and sizes, whatever values symbols take."""
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    if (one.dtype, one.device) != (other.dtype, other.device):
        return False
    return one.dim() == other.dim() and all(statically_known_true(a == b) for a, b in zip(one.shape, other.shape))


class Builder:
    """Adds calls before a node of a graph."""

    def __init__(self, graph: fx.Graph, before: fx.Node) -> None:
        self._graph, self._before = graph, before

    def call(self, operator: Any, *arguments: Any) -> fx.Node:
        nodes = [a for a in arguments if isinstance(a, fx.Node)]
        with self._graph.inserting_before(self._before):
            made = self._graph.call_function(operator, arguments)
        mode = detect_fake_mode([node.meta["val"] for node in nodes])
        with mode, enable_python_dispatcher(), torch.no_grad():
            made.meta["val"] = operator(*(a.meta["val"] if isinstance(a, fx.Node) else a for a in arguments))
        return made
