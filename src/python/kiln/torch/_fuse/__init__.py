"""Fuses a model's convolutions with the operations that follow them.

| file | what it is |
|---|---|
| _tracing | the graph of a model; modules that are called as they are |
| _in_place | writes in place in that graph, which torch.fx does not record |
| _activations | the activations that kernels apply |
| _norms | the batch normalizations that are folded |
| _chains | convolutions with the norm, addition and activation that follow them |
| _safety | whether a chain can be computed at its end: nothing between writes to what it reads |
| _folding | a norm in the filter before it |
| _kinds | which modules are the convolutions and norms of torch.nn |
| _module | the module that a chain becomes |
"""

from __future__ import annotations

from typing import Dict, List

from torch import fx, nn

from ._chains import Chain, chain_of, is_fusible
from ._folding import fold
from ._module import FusedConvolution
from ._tracing import trace

__all__ = ["FusedConvolution", "fuse"]


def _replace(traced: fx.GraphModule, chain: Chain, name: str) -> None:
    """Puts the fused module into the place of the chain's last node."""
    weight, bias = fold(chain.conv, chain.norm)
    fused = FusedConvolution(chain.conv, weight, bias, chain.norm is not None)
    fused.addition = chain.addition
    if chain.activation is not None:
        fused.activation, fused.coefficient = chain.activation
    traced.add_submodule(name, fused.eval())
    last = chain.nodes[-1]
    with traced.graph.inserting_before(last):
        arguments = (chain.operand,) if chain.residual is None else (chain.operand, chain.residual)
        call = traced.graph.call_module(name, arguments)
    last.replace_all_uses_with(call)
    for node in reversed(chain.nodes):
        traced.graph.erase_node(node)


def _parents(path: str) -> List[str]:
    parts = path.split(".")
    return [".".join(parts[:i]) for i in range(1, len(parts))]


def fuse(model: nn.Module) -> fx.GraphModule:
    """A copy of the model in which Kiln computes each convolution and the operations that follow it in one
    call.

    Batch normalization is folded into the filter before it. The convolution's kernel adds the bias and
    another tensor, and applies the activation. The new module shares parameters with the model, except for
    those that were folded; the model is not changed. Kiln computes the new module whether
    ``kiln.torch.enable()`` was called or not, also under torch.compile and in CUDA graphs. It can be traced and
    fused again.

    Results are those of the model in evaluation mode. What cannot be fused without a doubt stays as it is: modules
    with hooks or parametrizations (the module with all that is inside of it), convolutions whose filter is used
    elsewhere, operations between which a tensor is changed in place. An addition that is not of the same sizes and
    type when it is computed is PyTorch's.

    The model must be in evaluation mode, and torch.fx must be able to trace it (no control flow may depend
    on values). Raises ValueError in training mode, and torch.fx's exception if it cannot trace the model.
    """
    if model.training:
        raise ValueError("the model is in training mode; call model.eval() before fuse()")
    traced = trace(model)
    called: Dict[str, int] = {}
    for node in traced.graph.nodes:
        if node.op == "call_module":
            called[str(node.target)] = called.get(str(node.target), 0) + 1
    order = {node: index for index, node in enumerate(traced.graph.nodes)}
    own = {id(module) for module in model.modules()}
    # Backwards: if the results of two convolutions are added, the later one performs the addition.
    for node in reversed([node for node in traced.graph.nodes if is_fusible(node, traced)]):
        chain = chain_of(node, traced)
        path = str(node.target)
        if called[path] > 1:  # the module stays for its other calls
            path = f"{path}_fused_{order[node]}"
        if any(id(traced.get_submodule(parent)) in own for parent in _parents(path)):  # which is the model's
            path = f"{path.replace('.', '_')}_fused_{order[node]}"
        _replace(traced, chain, path)
    traced.graph.lint()
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced
