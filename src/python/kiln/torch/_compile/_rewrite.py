"""Puts Kiln's operator into the place of a graph's convolutions, and of what follows them."""

from __future__ import annotations

from typing import List, Optional, Tuple

import torch
from torch import fx

from .._activations import ACTIVATIONS
from ._chains import Chain, Norm, chain_of, is_served, result_of
from ._nodes import Builder, value_of

aten, prims = torch.ops.aten, torch.ops.prims


def _folded(make: Builder, norm: Norm, weight: fx.Node, bias: Optional[fx.Node],
            transposed: bool) -> Tuple[fx.Node, fx.Node]:
    """Filter and bias of a convolution and a batch normalization together, computed in f32 or f64: w * s and
    (b - mean) * s + shift with s = weight / sqrt(var + epsilon). A filter has its results' channels first or, if it is
    that of a transposed convolution, second."""
    value = value_of(weight)
    assert value is not None
    wide = torch.promote_types(value.dtype, torch.float32)
    convert = lambda node, to: node if value_of(node).dtype == to else make.call(  # type: ignore[union-attr]
        prims.convert_element_type.default, node, to)
    scale = make.call(aten.rsqrt.default, make.call(aten.add.Tensor, convert(norm.var, wide), norm.epsilon))
    if norm.weight is not None:
        scale = make.call(aten.mul.Tensor, scale, convert(norm.weight, wide))
    shift = make.call(aten.neg.default, convert(norm.mean, wide))
    if bias is not None:
        shift = make.call(aten.add.Tensor, convert(bias, wide), shift)
    shift = make.call(aten.mul.Tensor, shift, scale)
    if norm.bias is not None:
        shift = make.call(aten.add.Tensor, shift, convert(norm.bias, wide))
    for _ in range(value.dim() - (2 if transposed else 1)):
        scale = make.call(aten.unsqueeze.default, scale, -1)
    filter_ = make.call(aten.mul.Tensor, convert(weight, wide), scale)
    return convert(filter_, value.dtype), convert(shift, value.dtype)


def _replace(graph: fx.Graph, chain: Chain, channels_last: bool) -> None:
    last, result = chain.nodes[-1], result_of(chain)
    assert result is not None
    make = Builder(graph, last)
    x, weight, bias, *geometry = chain.conv.args
    if chain.norm is not None:
        weight, bias = _folded(make, chain.norm, weight, bias, bool(geometry[3]))  # type: ignore[arg-type]
    name, coefficient = chain.activation
    call = make.call_in_layout(
        torch.ops.kiln.convolution_bias_activation.default, x, weight, bias, chain.residual, *geometry,
        ACTIVATIONS[name].number, coefficient, channels_last=channels_last,
    )
    result.replace_all_uses_with(call)
    nodes = chain.nodes
    if result is not last:
        graph.erase_node(result)
        if last.users:  # others that read the result in a wider type
            wide = make.call(prims.convert_element_type.default, call, value_of(last).dtype)  # type: ignore[union-attr]
            last.replace_all_uses_with(wide)
    for node in reversed(nodes):
        graph.erase_node(node)


def rewrite(graph: fx.Graph, device: str, channels_last: bool = False) -> List[Tuple[str, str]]:
    """Replaces the convolutions on devices of this kind. Returns the name of each, and what its call carries.

    channels_last: images go into them, and come out, with channels last, whatever the program says.
    """
    made: List[Tuple[str, str]] = []
    # Backwards: if the results of two convolutions are added, the later one performs the addition.
    for node in reversed([node for node in graph.nodes if is_served(node, device)]):
        chain = chain_of(node)
        made.append((node.name, chain.carries()))
        _replace(graph, chain, channels_last)
    graph.lint()
    return made[::-1]
