"""Finds batch normalizations with the convolution before them and the addition and activation after them."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Tuple

from torch import fx, nn

from .._fuse._chains import Found, activation_of, addition_of, is_fusible, operand_of
from .._fuse._safety import can_move
from .._fuse._tracing import is_plain
from ._run import CONVOLUTIONS, NORMS, run_block


class Block(NamedTuple):
    conv: Optional[str]  # the path of the convolution; None if the norm's operand is another tensor
    norm: str  # its path
    operand: fx.Node
    residual: Optional[fx.Node]
    addition: str  # see _fuse.FusedConvolution
    activation: Found
    nodes: List[fx.Node]  # replaced by the block; the last one is the result

    def carries(self) -> str:
        parts = ["moments"] if self.conv is not None else []
        parts += ["addition"] if self.residual is not None else []
        parts += [self.activation[0]] if self.activation is not None else []
        return ", ".join(parts)


def _is_norm(node: fx.Node, traced: fx.GraphModule) -> bool:
    if node.op != "call_module" or operand_of(node) is None:
        return False
    module = traced.get_submodule(str(node.target))
    return type(module) in NORMS and is_plain(module)


def _convolution_before(norm: fx.Node, traced: fx.GraphModule) -> Optional[fx.Node]:
    """The convolution whose result is the norm's alone, if a kernel can make the moments of it."""
    node = operand_of(norm)
    if node is None or len(node.users) != 1 or not is_fusible(node, traced):
        return None
    conv = traced.get_submodule(str(node.target))
    spatial = CONVOLUTIONS.get(type(conv))
    fits = spatial is not None and spatial == NORMS[type(traced.get_submodule(str(norm.target)))]
    return node if fits and not isinstance(conv.padding, str) and can_move([node, norm], traced) else None


def _block_of(norm: fx.Node, traced: fx.GraphModule) -> Block:
    """The longest block of a norm that can be computed at its end."""
    conv = _convolution_before(norm, traced)
    first = norm if conv is None else conv
    operand = operand_of(first)
    assert operand is not None
    nodes = [norm] if conv is None else [conv, norm]
    block = Block(None if conv is None else str(conv.target), str(norm.target), operand, None, "new", None, nodes)
    while block.activation is None and len(block.nodes[-1].users) == 1:
        last, (node,) = block.nodes[-1], block.nodes[-1].users
        nodes = [*block.nodes, node]
        addition: Optional[Tuple[fx.Node, str]] = None
        if block.residual is None:
            addition = addition_of(node, last, traced)
        if addition is not None:
            longer = block._replace(residual=addition[0], addition=addition[1], nodes=nodes)
        elif operand_of(node) is last and activation_of(node, traced) is not None:
            longer = block._replace(activation=activation_of(node, traced), nodes=nodes)
        else:
            break
        if not can_move(nodes, traced):
            break
        block = longer
    return block


def _replace(traced: fx.GraphModule, block: Block) -> None:
    """Puts a call of the block into the place of its last node."""
    last = block.nodes[-1]
    name, coefficient = block.activation or ("identity", None)
    with traced.graph.inserting_before(last):
        conv = None if block.conv is None else traced.graph.create_node("get_attr", block.conv)
        norm = traced.graph.create_node("get_attr", block.norm)
        call = traced.graph.call_function(
            run_block, (conv, norm, block.operand, block.residual, block.addition, name, coefficient)
        )
    last.replace_all_uses_with(call)
    for node in reversed(block.nodes):
        traced.graph.erase_node(node)


def fuse_blocks(traced: fx.GraphModule) -> List[Block]:
    """Replaces all blocks of a graph by calls, and returns them in the graph's order."""
    found = []
    # Backwards: if the results of two norms are added, the later one performs the addition.
    for node in reversed([node for node in traced.graph.nodes if _is_norm(node, traced)]):
        block = _block_of(node, traced)
        _replace(traced, block)
        found.append(block)
    return found[::-1]


NORMALIZATIONS = (
    nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, nn.LocalResponseNorm, nn.RMSNorm,
)
