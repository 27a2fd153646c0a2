"""Finds what follows a convolution in a graph: batch normalization, an addition and an activation."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

import torch
from torch import fx

from .._activations import ACTIVATIONS
from ._nodes import hint_of, is_like, value_of
from ._patterns import Match, activation_patterns, find, is_conversion, norm_patterns

aten = torch.ops.aten
_TYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


class Norm(NamedTuple):
    mean: fx.Node
    var: fx.Node
    weight: Optional[fx.Node]
    bias: Optional[fx.Node]
    epsilon: float


class Chain(NamedTuple):
    conv: fx.Node
    norm: Optional[Norm]
    residual: Optional[fx.Node]
    activation: Tuple[str, float]  # name and coefficient
    nodes: List[fx.Node]  # all that one call replaces; the last one has the result, perhaps in a wider type

    def carries(self) -> str:
        """What the call computes besides the convolution."""
        parts = ["bias"] if self.conv.args[2] is not None else []
        parts += ["norm"] if self.norm is not None else []
        parts += ["addition"] if self.residual is not None else []
        parts += [self.activation[0]] if self.activation[0] != "identity" else []
        return ", ".join(parts)


def is_served(conv: fx.Node, device: str) -> bool:
    """Whether the node is a convolution on such a device that Kiln may serve."""
    if conv.target is not aten.convolution.default:
        return False
    tensors = [value_of(node) for node in conv.args[:3] if node is not None]  # type: ignore[arg-type]
    if value_of(conv) is None or any(t is None for t in tensors):
        return False
    kinds = {(t.dtype, t.device.type) for t in tensors}  # type: ignore[union-attr]
    x = tensors[0]
    return len(kinds) == 1 and kinds <= {(d, device) for d in _TYPES} and 3 <= x.dim() <= 5  # type: ignore[union-attr]


def result_of(chain: Chain) -> Optional[fx.Node]:
    """The node with the chain's result in the convolution's type; None if the graph has none."""
    last, dtype = chain.nodes[-1], value_of(chain.conv).dtype  # type: ignore[union-attr]
    if value_of(last).dtype == dtype:  # type: ignore[union-attr]
        return last
    return next((user for user in last.users if is_conversion(user) and user.args[1] == dtype), None)


def _with_norm(chain: Chain) -> Optional[Chain]:
    """Only where that makes less of a filter than of a result to be read and written."""
    y, weight = value_of(chain.conv), value_of(chain.conv.args[1])  # type: ignore[arg-type]
    assert y is not None and weight is not None
    transposed, groups = chain.conv.args[6], chain.conv.args[8]
    if (transposed and groups != 1) or hint_of(y.numel()) < hint_of(weight.numel()):
        return None
    for dtype in dict.fromkeys((y.dtype, torch.float32)):
        for pattern in norm_patterns(y.dtype, dtype, y.dim(), y.device.type):
            match = find(pattern, chain.conv)
            if match is not None and _is_norm(match, y.shape[1]):
                weights = match.others[2:] or (None, None)
                norm = Norm(*match.others[:2], *weights, match.number or 0.0)  # type: ignore[arg-type]
                return chain._replace(norm=norm, nodes=[*chain.nodes, *match.nodes])
    return None


def _is_norm(match: Match, channels: int) -> bool:
    values = [value_of(node) for node in match.others]
    return all(v is not None and v.dim() == 1 and v.shape[0] == channels for v in values)


def _with_addition(chain: Chain) -> Optional[Chain]:
    last, y = result_of(chain), value_of(chain.conv)
    if last is None or len(chain.nodes[-1].users) != 1 or len(last.users) != 1:
        return None
    (node,) = last.users
    if node.target is not aten.add.Tensor or node.kwargs or not all(isinstance(a, fx.Node) for a in node.args):
        return None
    other = node.args[1] if node.args[0] is last else node.args[0]
    residual = value_of(other)  # type: ignore[arg-type]
    if other is last or residual is None or not is_like(residual, y):  # type: ignore[arg-type]
        return None
    passed = [] if last is chain.nodes[-1] else [last]
    return chain._replace(residual=other, nodes=[*chain.nodes, *passed, node])


def _with_activation(chain: Chain) -> Optional[Chain]:
    y = value_of(chain.conv)
    for name, pattern in activation_patterns(y.dtype, y.device.type):  # type: ignore[union-attr]
        match = find(pattern, chain.nodes[-1])
        if match is not None:
            coefficient = ACTIVATIONS[name].coefficient if match.number is None else match.number
            return chain._replace(activation=(name, coefficient or 0.0), nodes=[*chain.nodes, *match.nodes])
    return None


def _is_calm(chain: Chain) -> bool:
    """Whether no node between the chain's first and last one writes to memory."""
    node = chain.nodes[0]
    while node is not chain.nodes[-1]:
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.is_mutable:
            return False
        node = node.next
    return True


def chain_of(conv: fx.Node) -> Chain:
    """The longest chain of a convolution that one call computes: norm, addition and activation, each of which may be
    missing."""
    chain = longest = Chain(conv, None, None, ("identity", 0.0), [conv])
    for extend in (_with_norm, _with_addition, _with_activation):
        longer = extend(chain)
        if longer is None or not _is_calm(longer):
            continue
        chain = longer
        if result_of(chain) is not None:
            longest = chain
    return longest
