"""The graph of a model, by torch.fx, in which modules that are more than their class says are called as they are."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Callable

import torch
from torch import fx, nn
from torch.nn.utils import parametrize

from ._in_place import Proxy
from ._kinds import has_activation_inside, is_norm, kind_of
from ._module import FusedConvolution

_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
_HOOK_STATE = (
    *_HOOKS,
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_is_full_backward_hook",
)


def has_hooks(module: nn.Module) -> bool:
    return any(getattr(module, name, None) for name in _HOOKS)


def _computes_its_weights(module: nn.Module) -> bool:
    """Whether tensors of the module are computed when it is called: by parametrizations, or by hooks, which leave
    them as plain attributes (weight_norm and spectral_norm of torch.nn.utils, pruning)."""
    plain = any(isinstance(value, torch.Tensor) for value in vars(module).values())
    return parametrize.is_parametrized(module) or (plain and bool(module._forward_pre_hooks))


def is_plain(module: nn.Module) -> bool:
    """Whether calling the module is calling its class's forward on its attributes."""
    return not has_hooks(module) and not parametrize.is_parametrized(module) and "forward" not in vars(module)


class Tracer(fx.Tracer):
    proxy_buffer_attributes = True  # what is computed from buffers is computed again in each call

    def proxy(self, node: fx.Node) -> fx.Proxy:
        return Proxy(node, self)

    def is_leaf_module(self, module: nn.Module, path: str) -> bool:
        return (
            isinstance(module, FusedConvolution)
            or getattr(module, "kiln_leaf", False)
            or kind_of(module) is not None
            or is_norm(module)
            or has_hooks(module)
            or parametrize.is_parametrized(module)
            or super().is_leaf_module(module, path)
        )

    def call_module(self, module: nn.Module, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        # timm's networks have one where others drop or blur: it would stand between a norm and its activation.
        if type(module) is nn.Identity and is_plain(module) and len(args) == 1 and not kwargs:
            return args[0]
        return super().call_module(module, forward, args, kwargs)


class _Folding(Tracer):
    """Calls norms with an activation inside as they are, because they are folded as one."""

    def is_leaf_module(self, module: nn.Module, path: str) -> bool:
        return has_activation_inside(module) or super().is_leaf_module(module, path)


def trace(model: nn.Module) -> fx.GraphModule:
    """The model as a graph, with its own hooks. Its modules and parameters are the model's."""
    if _computes_its_weights(model) or "forward" in vars(model):
        return _whole(model)
    graph = _Folding().trace(model)
    traced = fx.GraphModule(model, graph, type(model).__name__)
    for name in _HOOK_STATE:
        if hasattr(model, name):
            setattr(traced, name, copy.copy(getattr(model, name)))
    return traced


def _whole(model: nn.Module) -> fx.GraphModule:
    """A graph that calls the model, which stays as it is."""
    root = nn.Module()
    root.model = model
    graph, positional, by_name = fx.Graph(), [], {}
    for name, parameter in inspect.signature(model.forward).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ValueError(f"the model computes its own weights, and its forward takes {parameter}; expected named arguments")
        node = graph.placeholder(name, default_value=parameter.default)
        if parameter.kind is parameter.KEYWORD_ONLY:
            by_name[name] = node
        else:
            positional.append(node)
    graph.output(graph.call_module("model", tuple(positional), by_name))
    return fx.GraphModule(root.eval(), graph, type(model).__name__)
