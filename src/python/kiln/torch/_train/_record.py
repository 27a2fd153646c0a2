"""A module's forward as a graph. A graph that is not the same as the forward it was made of is refused."""

from __future__ import annotations

import contextlib
import inspect
import random
import sys
import threading
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Type
from unittest import mock

import torch
from torch import fx, nn
from torch.nn.utils import parametrize

from .._fuse._tracing import Tracer


class Refused(Exception):
    """A forward cannot be recorded; the text says why."""


def _required(forward: Callable[..., Any]) -> Optional[List[str]]:
    """The names of the arguments without a default; None if there are none, or any number of them.

    Others have their defaults in a graph, because what depends on them may be decided when it is made.
    """
    parameters = list(inspect.signature(forward).parameters.values())[1:]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return None
    required = [p for p in parameters if p.default is p.empty]
    if not required or any(p.kind is p.KEYWORD_ONLY for p in required):
        return None
    return [p.name for p in required]


def _made(source: str, base: Type[nn.Module], name: str, values: Dict[str, Any]) -> Callable[..., Any]:
    """A function that ``source`` defines, in the globals of the class's forward, in which torch.fx patches what it has
    to; ``values`` are its defaults."""
    scope = dict(values)
    exec(source, getattr(base.forward, "__globals__", {}), scope)  # noqa: S102
    return scope[name]


def with_defaults(base: Type[nn.Module]) -> Optional[Callable[..., Any]]:
    """The forward of a class as a function of its required arguments alone; None if it cannot be one."""
    names = _required(base.forward)
    if names is None:
        return None
    arguments = ", ".join(names)
    source = f"def recorded(self, {arguments}):\n    return type(self)._unfused.forward(self, {arguments})"
    return _made(source, base, "recorded", {})


def dispatching(base: Type[nn.Module]) -> Callable[..., Any]:
    """A forward with the signature of the class's own. It calls the function that ``self._choose()`` gives with the
    required arguments, if the others have their defaults; else, or if there is none, the class's own forward."""
    signature = inspect.signature(base.forward)
    names = _required(base.forward)
    declared, passed, conditions = ["self"], ["self"], []
    values: Dict[str, Any] = {}
    for p in list(signature.parameters.values())[1:]:
        if p.kind is p.KEYWORD_ONLY and not any(d.startswith("*") for d in declared):
            declared.append("*")
        mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        passed.append(f"{p.name}={p.name}" if p.kind is p.KEYWORD_ONLY else mark + p.name)
        if p.default is p.empty:
            declared.append(mark + p.name)
            continue
        values[f"default_{p.name}"] = p.default
        declared.append(f"{p.name}=default_{p.name}")
        conditions.append(f"{p.name} is self._defaults[{p.name!r}]")
    lines = [f"def forward({', '.join(declared)}):"]
    if names is not None:
        lines += [
            f"    if {' and '.join(conditions) or 'True'}:",
            "        function = self._choose()",
            "        if function is not None:",
            f"            return function(self, {', '.join(names)})",
        ]
    lines.append(f"    return type(self)._unfused.forward({', '.join(passed)})")
    return _made("\n".join(lines), base, "forward", values)


def _attributes(root: nn.Module) -> Dict[nn.Module, Dict[str, Any]]:
    """What the modules hold, with their dictionaries of parameters, buffers and modules."""
    return {
        module: {name: dict(value) if isinstance(value, dict) else value for name, value in vars(module).items()}
        for module in root.modules()
    }


def _random_states() -> List[Any]:
    states: List[Any] = [random.getstate(), torch.get_rng_state().tolist()]
    if "numpy" in sys.modules:
        states.append(str(sys.modules["numpy"].random.get_state()))
    return states


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(one[key] is other[key] for key in one)
    return one is other


@contextlib.contextmanager
def _watched(root: nn.Module) -> Iterator[None]:
    """Refuses what a graph cannot record: attributes that forward sets, and random numbers that it draws itself.
    Attributes are afterwards what they were."""
    before, states = _attributes(root), _random_states()
    try:
        yield
    finally:
        changed = ""
        for module, held in before.items():
            for name in set(vars(module)) | set(held):
                if name in vars(module) and name in held and _same(held[name], vars(module)[name]):
                    continue
                changed = f"forward of {type(module).__name__} sets {name}"
                if name.startswith("_tensor_constant"):
                    changed = f"forward of {type(module).__name__} makes tensors that do not come from its arguments"
                if name not in held:
                    del vars(module)[name]
                elif isinstance(held[name], dict) and isinstance(vars(module).get(name), dict):
                    vars(module)[name].clear()
                    vars(module)[name].update(held[name])
                else:
                    vars(module)[name] = held[name]
        drawn = states != _random_states()
    if changed:
        raise Refused(changed)
    if drawn:
        raise Refused("forward draws random numbers from which it decides what to compute")


_MODES = (torch.autocast, torch.no_grad, torch.enable_grad, torch.inference_mode, torch.autograd.graph.saved_tensors_hooks)


@contextlib.contextmanager
def _modes() -> Iterator[List[str]]:
    """The names of the modes that this thread is in, of those that it enters within."""
    now: List[str] = []
    thread = threading.get_ident()

    def watched(mode: Any) -> Dict[str, Any]:
        enter, leave = mode.__enter__, mode.__exit__

        def entering(self: Any) -> Any:
            if threading.get_ident() == thread:
                now.append(mode.__name__)
            return enter(self)

        def leaving(self: Any, *error: Any) -> Any:
            if threading.get_ident() == thread and now:
                now.pop()
            return leave(self, *error)

        return {"__enter__": entering, "__exit__": leaving}

    with contextlib.ExitStack() as stack:
        for mode in _MODES:
            stack.enter_context(mock.patch.multiple(mode, **watched(mode)))
        yield now


class _Tracer(Tracer):
    """Refuses what is computed in a mode, which no graph records: autocast, no_grad, gradient checkpointing, and the
    forward of an autograd function. Requires that gradients are on."""

    def __init__(self, modes: List[str]) -> None:
        super().__init__()
        self._now = modes

    def create_node(self, *arguments: Any, **more: Any) -> fx.Node:
        if "saved_tensors_hooks" in self._now:
            raise Refused("forward uses gradient checkpointing, or hooks of saved tensors")
        if self._now:
            raise Refused(f"forward enters {self._now[-1]}")
        if not torch.is_grad_enabled():
            raise Refused("forward calls an autograd function, or turns gradients off")
        return super().create_node(*arguments, **more)


def record(root: nn.Module) -> fx.GraphModule:
    """The graph of ``_recorded`` of the module's class. Raises Refused, or what torch.fx or the function raise."""
    if parametrize.is_parametrized(root):
        raise Refused("the module has parametrizations")
    if getattr(type(root), "_recorded", None) is None:
        raise Refused("forward takes any number of arguments, or none without a default")
    with torch.enable_grad(), warnings.catch_warnings(), _modes() as modes, _watched(root):
        warnings.simplefilter("ignore")  # they are of calls without a tensor
        tracer = _Tracer(modes)
        tracer.traced_func_name = "_recorded"
        graph = tracer.trace(root)
    return fx.GraphModule(root, graph, type(root).__name__)


def function_of(graph: fx.Graph) -> Callable[..., Any]:
    """The graph as a function of the module and the arguments."""
    code = graph.python_code("self")
    scope = dict(code.globals)
    exec(code.src, scope)  # noqa: S102
    return scope["forward"]
