"""New nodes of a graph, with the values that inductor asks for: fake tensors of their sizes, strides and type."""

from __future__ import annotations

from typing import Any, Tuple

import torch
from torch import fx
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import detect_fake_mode
from torch.fx.node import map_arg


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


def in_channels_last(value: Any) -> Any:
    """A fake image with its channels innermost; anything else as it is."""
    turns = isinstance(value, torch.Tensor) and value.dim() == 4 and value.dtype != torch.float64
    return value.contiguous(memory_format=torch.channels_last) if turns else value


class Builder:
    """Adds calls before a node of a graph."""

    def __init__(self, graph: fx.Graph, before: fx.Node) -> None:
        self._graph, self._before = graph, before

    def call(self, operator: Any, *arguments: Any) -> fx.Node:
        return self._call(operator, arguments, False)[0]

    def call_in_layout(self, operator: Any, *arguments: Any, channels_last: bool) -> fx.Node:
        """A call whose operands inductor lays out as the graph's values say, or with channels last. Without that,
        operators that a pass inserts get them in any layout."""
        made, values = self._call(operator, arguments, channels_last)
        made.meta["eager_input_vals"] = (values, {})
        return made

    def _call(self, operator: Any, arguments: Tuple[Any, ...], channels_last: bool) -> Tuple[fx.Node, Tuple[Any, ...]]:
        """The call, and its arguments' values."""
        with self._graph.inserting_before(self._before):
            made = self._graph.call_function(operator, arguments)
        values = map_arg(arguments, lambda node: node.meta["val"])
        with detect_fake_mode(values), enable_python_dispatcher(), torch.no_grad():
            if channels_last:
                values = tuple(in_channels_last(value) for value in values)
            made.meta["val"] = operator(*values)
        return made, values
