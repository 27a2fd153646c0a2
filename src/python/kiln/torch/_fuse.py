"""Fuses a model's convolutions with the operations that follow them."""

from __future__ import annotations

import operator
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple, Type

import torch
import torch.nn.functional as F
from torch import fx, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from ._functions import convolution

_CONVOLUTIONS: Dict[Type[nn.Module], Tuple[int, bool]] = {
    nn.Conv1d: (1, False),
    nn.Conv2d: (2, False),
    nn.Conv3d: (3, False),
    nn.ConvTranspose1d: (1, True),
    nn.ConvTranspose2d: (2, True),
    nn.ConvTranspose3d: (3, True),
}
_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)
Found = Optional[Tuple[str, Optional[float]]]


def _gelu(approximate: str) -> Found:
    return ("gelu_tanh" if approximate == "tanh" else "gelu", None)


# The modules that a convolution's kernel can apply, with Kiln's names of their activations.
_MODULES: Dict[Type[nn.Module], Callable[[Any], Found]] = {
    nn.ReLU: lambda m: ("relu", None),
    nn.ReLU6: lambda m: ("clipped_relu", 6.0),
    nn.Sigmoid: lambda m: ("sigmoid", None),
    nn.Tanh: lambda m: ("tanh", None),
    nn.LeakyReLU: lambda m: ("leaky_relu", float(m.negative_slope)),
    nn.ELU: lambda m: ("elu", float(m.alpha)),
    nn.GELU: lambda m: _gelu(m.approximate),
    nn.SiLU: lambda m: ("silu", None),
    nn.Hardswish: lambda m: ("hard_swish", None),
    nn.Mish: lambda m: ("mish", None),
}
_FUNCTIONS: Dict[Any, Found] = {
    F.relu: ("relu", None),
    torch.relu: ("relu", None),
    torch.relu_: ("relu", None),
    "relu": ("relu", None),
    "relu_": ("relu", None),
    F.relu6: ("clipped_relu", 6.0),
    torch.sigmoid: ("sigmoid", None),
    F.sigmoid: ("sigmoid", None),
    "sigmoid": ("sigmoid", None),
    torch.tanh: ("tanh", None),
    F.tanh: ("tanh", None),
    "tanh": ("tanh", None),
    F.silu: ("silu", None),
    F.hardswish: ("hard_swish", None),
    F.mish: ("mish", None),
}
_ADDITIONS = (operator.add, operator.iadd, torch.add, "add", "add_")
_IN_PLACE = (operator.iadd, "add_")


class FusedConvolution(nn.Module):
    """``activation(convolution(x) + bias + residual)`` in one call; ``fuse()`` puts it into a model."""

    def __init__(self, conv: nn.Module, weight: nn.Parameter, bias: Optional[nn.Parameter]) -> None:
        super().__init__()
        self.spatial, self.transposed = _CONVOLUTIONS[type(conv)]
        self.weight, self.bias = weight, bias
        self.stride, self.padding, self.dilation = conv.stride, conv.padding, conv.dilation
        self.output_padding, self.groups = conv.output_padding, conv.groups
        self.activation = "identity"
        self.coefficient: Optional[float] = None

    def forward(self, x: torch.Tensor, residual: Optional[torch.Tensor] = None) -> torch.Tensor:
        return convolution(
            self.spatial, x, self.weight, self.bias, residual, self.stride, self.padding, self.dilation,
            self.transposed, self.output_padding, self.groups, self.activation, self.coefficient,
        )

    def extra_repr(self) -> str:
        return f"{tuple(self.weight.shape)}, stride={self.stride}, padding={self.padding}, activation={self.activation}"


class _Chain(NamedTuple):
    """A convolution and the nodes that follow it."""

    conv: fx.Node
    norm: Optional[nn.Module]
    residual: Optional[fx.Node]
    activation: Found
    nodes: List[fx.Node]  # replaced by the fused module; the last one is the result


def _fusible(module: nn.Module) -> bool:
    return type(module) in _CONVOLUTIONS and module.padding_mode == "zeros" and not isinstance(module.padding, str)


def _folds(module: Any) -> bool:
    return type(module) in _NORMS and not module.training and module.running_mean is not None


def _activation_of(node: fx.Node, modules: Dict[str, nn.Module]) -> Found:
    if node.op == "call_module":
        make = _MODULES.get(type(modules[str(node.target)]))
        return make(modules[str(node.target)]) if make else None
    if node.op not in ("call_function", "call_method"):
        return None
    if node.target is F.gelu:
        return _gelu(node.kwargs.get("approximate", "none"))
    plain = len(node.args) == 1 and set(node.kwargs) <= {"inplace"}
    return _FUNCTIONS.get(node.target) if plain else None


def _residual_of(node: fx.Node, last: fx.Node) -> Optional[fx.Node]:
    """The other operand, if ``node`` adds something to the convolution's result ``last``; else None."""
    if node.op not in ("call_function", "call_method") or node.target not in _ADDITIONS:
        return None
    if len(node.args) != 2 or node.kwargs or not all(isinstance(a, fx.Node) for a in node.args):
        return None
    first, second = node.args
    if first is second:
        return None
    # An in-place addition changes its first operand, so nothing else may use that.
    if node.target in _IN_PLACE and first is not last and len(first.users) > 1:
        return None
    return second if first is last else first


def _chain_of(conv: fx.Node, modules: Dict[str, nn.Module]) -> _Chain:
    transposed = _CONVOLUTIONS[type(modules[str(conv.target)])][1]
    norm = residual = activation = None
    nodes = [conv]
    while activation is None and len(nodes[-1].users) == 1:
        last, (node,) = nodes[-1], nodes[-1].users
        if node.op == "call_module" and len(nodes) == 1 and _folds(modules[str(node.target)]):
            norm = modules[str(node.target)]
        elif residual is None and not transposed and _residual_of(node, last) is not None:
            residual = _residual_of(node, last)
        elif _activation_of(node, modules) is not None and node.args[:1] == (last,):
            activation = _activation_of(node, modules)
        else:
            break
        nodes.append(node)
    return _Chain(conv, norm, residual, activation, nodes)


def _fold(conv: Any, norm: Any) -> Tuple[nn.Parameter, Optional[nn.Parameter]]:
    if norm is None:
        return conv.weight, conv.bias
    return fuse_conv_bn_weights(
        conv.weight, conv.bias, norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias,
        _CONVOLUTIONS[type(conv)][1],
    )


def fuse(model: nn.Module) -> fx.GraphModule:
    """A copy of the model in which Kiln computes each convolution and the operations that follow it in one
    call.

    Batch normalization is folded into the filter before it. The convolution's kernel adds the bias and
    another tensor of the same sizes, and applies the activation. The new module shares parameters with the
    model, except for those that were folded; the model is not changed. Kiln computes the new module whether
    ``kiln.torch.enable()`` was called or not, also under torch.compile and in CUDA graphs.

    The model must be in evaluation mode, and torch.fx must be able to trace it (no control flow may depend
    on values). Raises ValueError in training mode, and torch.fx's exception if it cannot trace the model.
    """
    if model.training:
        raise ValueError("the model is in training mode; call model.eval() before fuse()")
    traced = fx.symbolic_trace(model)
    modules = dict(traced.named_modules())
    called: Dict[str, int] = {}
    for node in traced.graph.nodes:
        if node.op == "call_module":
            called[str(node.target)] = called.get(str(node.target), 0) + 1
    order = {node: index for index, node in enumerate(traced.graph.nodes)}
    # Backwards: if the results of two convolutions are added, the later one performs the addition.
    for conv in reversed([n for n in traced.graph.nodes if n.op == "call_module" and _fusible(modules[n.target])]):
        chain = _chain_of(conv, modules)
        module = modules[str(conv.target)]
        weight, bias = _fold(module, chain.norm)
        fused = FusedConvolution(module, weight, bias).eval()
        if chain.activation is not None:
            fused.activation, fused.coefficient = chain.activation
        # A module that is called more than once must stay for its other calls.
        name = str(conv.target) if called[str(conv.target)] == 1 else f"{conv.target}_fused_{order[conv]}"
        traced.add_submodule(name, fused)
        modules[name] = fused
        last = chain.nodes[-1]
        with traced.graph.inserting_before(last):
            arguments = conv.args if chain.residual is None else (*conv.args[:1], chain.residual)
            call = traced.graph.call_module(name, arguments)
        last.replace_all_uses_with(call)
        for node in reversed(chain.nodes):
            traced.graph.erase_node(node)
    traced.graph.lint()
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced
