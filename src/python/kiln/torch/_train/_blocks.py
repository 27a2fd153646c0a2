"""Finds norms with the addition and activation after them and, of batches, the convolution before them."""

from __future__ import annotations

import operator
from typing import Dict, List, NamedTuple, Optional, Tuple

from torch import fx, nn

from .._fuse._activations import Found, activation_of
from .._fuse._chains import addition_of, is_fusible, operand_of
from .._fuse._kinds import NORMS, base_of, is_norm, kind_of
from .._fuse._safety import can_move
from .._fuse._tracing import is_plain
from ._concatenations import measure_parts
from ._image_norms import image_norms, is_lowered, run_image_norm
from ._run import count_batches, run_block, run_linked
from ._subclasses import gather_norms, is_alone
from ._writes import changes_later


class Block(NamedTuple):
    conv: Optional[str]  # the path of the convolution; None if the norm's operand is another tensor
    norm: str  # its path
    operand: fx.Node
    residual: Optional[fx.Node]
    addition: str  # see _fuse.FusedConvolution
    activation: Found
    nodes: List[fx.Node]  # replaced by the block; the last one is the result
    into: Optional[str] = None  # the path of the convolution that takes the result's gradient
    is_kept: bool = True  # for that convolution's gradient; else the result is computed again
    gathers: bool = False  # whether the moments come from those of the parts of a concatenation

    def carries(self) -> str:
        parts = ["moments"] if self.conv is not None else ["moments of parts"] if self.gathers else []
        parts += ["addition"] if self.residual is not None else []
        parts += [self.activation[0]] if self.activation is not None else []
        parts += [f"gradient in {self.into}"] if self.into is not None else []
        parts += [] if self.is_kept else ["computed again"]
        return ", ".join(parts)


def _is_norm(node: fx.Node, traced: fx.GraphModule) -> bool:
    if node.op != "call_module" or operand_of(node) is None:
        return False
    module = traced.get_submodule(str(node.target))
    return (is_norm(module) or is_alone(node)) and is_plain(module)


def _convolution_before(norm: fx.Node, traced: fx.GraphModule) -> Optional[fx.Node]:
    """The convolution whose result is the norm's alone, if a kernel can make the moments of it."""
    node = operand_of(norm)
    if node is None or len(node.users) != 1 or not is_fusible(node, traced):
        return None
    conv = traced.get_submodule(str(node.target))
    kind = kind_of(conv)
    base = base_of(traced.get_submodule(str(norm.target)))
    fits = kind is not None and base is not None and NORMS[base] in (kind[0], None)
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
            if block.residual is not None and changes_later(block.residual, node, traced):
                break  # the gradient of an activation needs what was added
            longer = block._replace(activation=activation_of(node, traced), nodes=nodes)
        else:
            break
        if not can_move(nodes, traced):
            break
        block = longer
    return block


def _replace(traced: fx.GraphModule, block: Block, of_batch: bool = True) -> fx.Node:
    """Puts a call of the block into the place of its last node, and returns it."""
    last = block.nodes[-1]
    what = (block.operand, block.residual, block.addition, *(block.activation or ("identity", None)))
    with traced.graph.inserting_before(last):
        conv = None if block.conv is None else traced.graph.create_node("get_attr", block.conv)
        norm = traced.graph.create_node("get_attr", block.norm)
        if of_batch:
            call = traced.graph.call_function(run_block, (conv, norm, *what))
        else:
            call = traced.graph.call_function(run_image_norm, (norm, *what, is_lowered(last, traced)))
    last.replace_all_uses_with(call)
    for node in reversed(block.nodes):
        traced.graph.erase_node(node)
    return call


def _link(traced: fx.GraphModule, blocks: Dict[fx.Node, Block], measured: Dict[fx.Node, str], recompute: bool) -> None:
    """Links blocks whose result's first reader is the next block's convolution, or one that is measured, which then
    takes the gradient of the normalization, and of whatever else reads the result. blocks: by their calls. measured: the
    paths of the others, by their calls. recompute: a result without another reader is not kept for the gradient."""
    place = {node: i for i, node in enumerate(traced.graph.nodes)}
    # What a link keeps of both blocks: a write is an error even where the gradient does not come to what it is kept for.
    kept = {call: [call, *([call.args[3]] if call.args[3] else [])] for call in blocks}
    changing = {call for call in blocks if any(changes_later(node, call, traced) for node in kept[call])}
    results = {}  # of linked blocks: the node that has the result

    def open_into(call: fx.Node, reader: fx.Node, normalized: fx.Node, into: Optional[str]) -> None:
        call.kwargs = {**call.kwargs, "is_open": True}
        is_kept = bool(normalized.users) or not recompute
        if not is_kept:
            reader.kwargs = {**reader.kwargs, "keeps": False}
        blocks[call] = blocks[call]._replace(into=into, is_kept=is_kept)

    for call in [node for node in traced.graph.nodes if node in blocks]:
        result = results.get(call, call)
        reader = min(result.users, key=lambda node: place[node], default=None)
        if reader in measured and call not in changing:
            with traced.graph.inserting_after(reader):
                normalized = traced.graph.call_function(operator.getitem, (reader, 2))
            place[normalized] = place[reader]
            result.replace_all_uses_with(normalized, lambda user: user is not reader)
            open_into(call, reader, normalized, measured[reader])
            continue
        if reader not in blocks or blocks[reader].conv is None or reader.args[2:4].count(result) != 1:
            continue
        if reader.args[2] is not result or reader in results:
            continue
        if call in changing:
            continue
        reader.target = run_linked
        with traced.graph.inserting_after(reader):
            normalized = traced.graph.call_function(operator.getitem, (reader, 1))
            results[reader] = traced.graph.call_function(operator.getitem, (reader, 0))
        place[normalized] = place[results[reader]] = place[reader]
        reader.replace_all_uses_with(results[reader], lambda user: user not in (normalized, results[reader]))
        result.replace_all_uses_with(normalized, lambda user: user is not reader)
        open_into(call, reader, normalized, blocks[reader].conv)


def _count_at_once(traced: fx.GraphModule, blocks: Dict[fx.Node, Block]) -> None:
    """Lets one call count the batch in all norms of blocks, unless one is called twice."""
    names = [block.norm for block in blocks.values()]
    norms = {traced.get_submodule(name) for name in names}
    if len(norms) < len(names):
        return
    first = next(node for node in traced.graph.nodes if node.op != "placeholder")
    with traced.graph.inserting_before(first):
        operands = [traced.graph.create_node("get_attr", name) for name in names]
        traced.graph.call_function(count_batches, (operands,))
    for call in blocks:
        call.kwargs = {**call.kwargs, "counted": True}


def fuse_blocks(traced: fx.GraphModule, root: nn.Module, recompute: bool) -> List[Block]:
    """Replaces all blocks of the module's graph by calls, and returns them in the graph's order. recompute: see
    fuse_training()."""
    found: Dict[fx.Node, Block] = {}
    of_images: Dict[fx.Node, Block] = {}
    # Backwards: if the results of two norms are added, the later one performs the addition.
    for node in reversed(image_norms(traced)):
        block = _block_of(node, traced)
        of_images[_replace(traced, block, of_batch=False)] = block
    gather_norms(traced, root)
    for node in reversed([node for node in traced.graph.nodes if _is_norm(node, traced)]):
        block = _block_of(node, traced)
        found[_replace(traced, block)] = block
    _link(traced, found, measure_parts(traced, found), recompute)
    if found:
        _count_at_once(traced, found)
    found.update(of_images)
    return [found[node] for node in traced.graph.nodes if node in found]


NORMALIZATIONS = (
    nn.modules.batchnorm._NormBase, nn.GroupNorm, nn.LayerNorm, nn.LocalResponseNorm, nn.RMSNorm,
)
