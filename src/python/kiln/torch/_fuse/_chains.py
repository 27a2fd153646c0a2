"""Finds convolutions and the operations after them that one kernel can compute."""

from __future__ import annotations

import operator
from typing import List, NamedTuple, Optional, Tuple

import torch
from torch import fx, nn

from ._activations import Found, activation_of
from ._in_place import iadd
from ._kinds import kind_of
from ._norms import activation_inside, dimensions_of_norm
from ._safety import can_move, is_fresh
from ._tracing import is_plain

_ADDITIONS = (operator.add, operator.iadd, iadd, torch.add, "add", "add_")
_IN_PLACE = (operator.iadd, iadd, "add_")


class Chain(NamedTuple):
    """A convolution and what follows it."""

    conv: nn.Module
    operand: fx.Node  # the convolution's input
    norm: Optional[nn.Module]
    residual: Optional[fx.Node]
    addition: str  # see FusedConvolution
    activation: Found
    nodes: List[fx.Node]  # replaced by the fused module; the last one is the result


def operand_of(node: fx.Node) -> Optional[fx.Node]:
    """The only operand of a call, by position or by its name; None if there are others."""
    operands = [*node.args, *(value for name, value in node.kwargs.items() if name == "input")]
    others = set(node.kwargs) - {"input", "inplace", "approximate"}
    return operands[0] if len(operands) == 1 and not others and isinstance(operands[0], fx.Node) else None


def _used_by_itself(module: nn.Module, traced: fx.GraphModule) -> bool:
    """Whether the graph reads or writes a tensor of the module other than by calling the module."""
    own = {id(t) for t in (*module.parameters(recurse=False), *module.buffers(recurse=False))}
    for node in traced.graph.nodes:
        if node.op == "get_attr":
            owner, _, name = str(node.target).rpartition(".")
            if id(getattr(traced.get_submodule(owner), name, None)) in own:
                return True
    return False


def is_fusible(node: fx.Node, traced: fx.GraphModule) -> bool:
    """Whether the node is a convolution that is what its attributes say."""
    if node.op != "call_module" or operand_of(node) is None:
        return False
    module = traced.get_submodule(str(node.target))
    return (
        kind_of(module) is not None
        and is_plain(module)
        and module.padding_mode == "zeros"
        and isinstance(module._parameters.get("weight"), nn.Parameter)
        and "bias" in module._parameters
        and not _used_by_itself(module, traced)
    )


def _folds(node: fx.Node, conv: nn.Module, traced: fx.GraphModule) -> bool:
    """Whether the node is a batch normalization with constant statistics that fits the convolution."""
    if node.op != "call_module":
        return False
    norm = traced.get_submodule(str(node.target))
    if dimensions_of_norm(norm) != kind_of(conv)[0] or norm.training or not is_plain(norm):
        return False
    if not isinstance(norm._buffers.get("running_mean"), torch.Tensor) or norm._buffers.get("running_var") is None:
        return False
    tensors = [norm.running_mean, norm.running_var, norm.weight, norm.bias]
    weight = conv.weight
    fits = all(t is None or (t.dtype == weight.dtype and t.device == weight.device) for t in tensors)
    return fits and norm.num_features == conv.out_channels and weight.is_floating_point() and not _used_by_itself(norm, traced)


def addition_of(node: fx.Node, last: fx.Node, traced: fx.GraphModule) -> Optional[Tuple[fx.Node, str]]:
    """The other operand, if ``node`` adds something to the convolution's result ``last``, and how; else None."""
    if node.op not in ("call_function", "call_method") or node.target not in _ADDITIONS:
        return None
    if len(node.args) != 2 or node.kwargs or not all(isinstance(a, fx.Node) for a in node.args):
        return None
    first, second = node.args
    if first is second:
        return None
    if node.target not in _IN_PLACE:
        return (second if first is last else first), "new"
    if first is last:
        return second, "into result"
    # An addition in place changes its first operand, which may be a view, an argument or a buffer.
    return (first, "into residual") if is_fresh(first, traced) else None


def chain_of(conv: fx.Node, traced: fx.GraphModule) -> Chain:
    """The longest chain of a fusible convolution that can be computed at its end."""
    module = traced.get_submodule(str(conv.target))
    operand = operand_of(conv)
    assert operand is not None
    chain = Chain(module, operand, None, None, "new", None, [conv])
    while chain.activation is None and len(chain.nodes[-1].users) == 1:
        last, (node,) = chain.nodes[-1], chain.nodes[-1].users
        nodes = [*chain.nodes, node]
        addition = None if chain.residual is not None else addition_of(node, last, traced)
        if len(chain.nodes) == 1 and operand_of(node) is last and _folds(node, module, traced):
            norm = traced.get_submodule(str(node.target))
            longer = chain._replace(norm=norm, activation=activation_inside(norm), nodes=nodes)
        elif addition is not None:
            longer = chain._replace(residual=addition[0], addition=addition[1], nodes=nodes)
        elif operand_of(node) is last and activation_of(node, traced) is not None:
            longer = chain._replace(activation=activation_of(node, traced), nodes=nodes)
        else:
            break
        if not can_move(nodes, traced):
            break
        chain = longer
    return chain
