"""The class that a fused module has: its own class, with another forward.

The module's parts stay where they are. So parameters, buffers, state_dict, hooks and attributes are the module's own,
and the blocks are calls in the graph of its forward, which is made again for each state (which parts are in training,
which have hooks) that it is met in.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple, Type

import torch
from torch import nn
from torch.fx import _symbolic_trace

from ._blocks import Block, fuse_blocks
from ._gates import fuse_gates
from ._pools import fuse_pools
from ._record import Refused, dispatching, function_of, record, with_defaults

# Older releases have the second alone, which in later ones warns.
is_fx_symbolic_tracing = getattr(_symbolic_trace, "is_fx_symbolic_tracing", None) or _symbolic_trace.is_fx_tracing
_KEPT, _KEY, _RECOMPUTE = "_kiln_graphs", "_kiln_key", "_kiln_recompute"
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Graphs:
    """The functions of a module by its state, and what was found."""

    def __init__(self, root: nn.Module) -> None:
        self.parts = [(module, tuple(module._modules.values())) for module in root.modules()]
        self.names: Dict[Tuple[bool, ...], str] = {}
        self.functions: Dict[str, Callable[..., Any]] = {}
        self.blocks: Dict[str, List[Block]] = {}
        self.leaves: Dict[str, List[str]] = {}  # modules that are called as they are
        self.why: Dict[str, str] = {}  # why a state has no function

    def state(self) -> Optional[Tuple[bool, ...]]:
        """None if the parts are not those any more."""
        out: List[bool] = []
        for module, children in self.parts:
            held = module.__dict__
            if tuple(held["_modules"].values()) != children:
                return None
            out.append(held["training"])
            out.append("forward" in held or any(held[name] for name in _HOOKS))
        return tuple(out)

    def add(self, root: nn.Module, state: Tuple[bool, ...]) -> str:
        name = f"state {len(self.names)}"
        try:
            traced = record(root)
            self.blocks[name] = fuse_blocks(traced, root, root.__dict__[_RECOMPUTE])
            if self.blocks[name]:
                fuse_pools(traced)
                fuse_gates(traced)
            self.leaves[name] = [str(node.target) for node in traced.graph.nodes if node.op == "call_module"]
            traced.graph.lint()
            if self.blocks[name]:
                self.functions[name] = function_of(traced.graph)
        except Exception as error:  # of any kind: forward has been called with what is no tensor
            self.why[name] = str(error).splitlines()[0] if str(error) else type(error).__name__
            if not isinstance(error, Refused):
                self.why[name] = f"torch.fx cannot trace it: {self.why[name]}"
        self.names[state] = name
        return name


# torch.compile does not trace what is asked of a module by its key, nor guards on it: it takes the answer as a constant.
_modules: "weakref.WeakValueDictionary[str, nn.Module]" = weakref.WeakValueDictionary()
_functions: Dict[str, Callable[..., Any]] = {}  # by the names that prepare() gives
_numbers = itertools.count()


def _add(module: nn.Module) -> str:
    """Gives the module its key and its graphs."""
    key = module.__dict__[_KEY] = f"module {next(_numbers)}"
    module.__dict__[_KEPT] = Graphs(module)
    _modules[key] = module
    weakref.finalize(module, _forget, key)
    return key


def _forget(key: str) -> None:
    for name in [name for name in _functions if name.startswith(f"{key}, ")]:
        del _functions[name]


def graphs_of(module: nn.Module) -> Graphs:
    if _KEPT not in module.__dict__:
        _add(module)
    return module.__dict__[_KEPT]


def prepare(module: nn.Module) -> str:
    """The name of the module's present state."""
    graphs = graphs_of(module)
    state = graphs.state()
    if state is None:  # a part was replaced
        _forget(module.__dict__[_KEY])
        graphs = module.__dict__[_KEPT] = Graphs(module)
        state = graphs.state()
        assert state is not None
    name = graphs.names.get(state)
    if name is None:
        name = graphs.add(module, state)
        if name in graphs.functions:
            _functions[f"{module.__dict__[_KEY]}, {name}"] = graphs.functions[name]
    return name


@torch.compiler.assume_constant_result  # which guards on the mode of the module and of each norm
def _named(key: str) -> str:
    return f"{key}, {prepare(_modules[key])}"


class Fused(nn.Module):
    """What classes of fused modules have in common."""

    _unfused: Type[nn.Module] = nn.Module

    def _choose(self) -> Optional[Callable[..., Any]]:
        """The function of the present state; None if the forward is the class's own."""
        if torch.compiler.is_compiling():
            self.training  # noqa: B018  (a guard)
            if not hasattr(self, _KEY):
                return None
            name = _named(self._kiln_key)  # first: torch.compile takes the dict as it is when it comes to it
            return _functions.get(name)
        if is_fx_symbolic_tracing() or torch.jit.is_tracing():  # other tracers record PyTorch's operators
            return None
        name = prepare(self)  # first: it may make other graphs
        return graphs_of(self).functions.get(name)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        _add(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        _, _, state, *rest = super().__reduce_ex__(protocol)
        if isinstance(state, dict):
            state = {name: value for name, value in state.items() if name not in (_KEPT, _KEY)}
        return (_restore, (type(self)._unfused,), state, *rest)


@functools.lru_cache(maxsize=None)
def class_of(base: Type[nn.Module]) -> Type[nn.Module]:
    """The class of fused modules of a class."""
    signature = inspect.signature(base.forward)
    members = {
        "__module__": base.__module__, "__qualname__": base.__qualname__, "__doc__": base.__doc__,
        "forward": dispatching(base), "_unfused": base, "_recorded": with_defaults(base),
        "_defaults": {p.name: p.default for p in signature.parameters.values() if p.default is not p.empty},
    }
    return type(base.__name__, (Fused, base), members)


def _restore(base: Type[nn.Module]) -> nn.Module:
    cls = class_of(base)
    return cls.__new__(cls)


def is_fused(module: nn.Module) -> bool:
    return isinstance(module, Fused)


def set_fused(module: nn.Module, fused: bool, recompute: bool = False) -> None:
    """Gives the module the class of fused modules, or takes it. recompute: see fuse_training()."""
    if fused and not is_fused(module):
        module.__class__ = class_of(type(module))
        module.__dict__[_RECOMPUTE] = recompute
        _add(module)
    elif not fused and is_fused(module):
        _forget(module.__dict__.pop(_KEY, ""))
        module.__dict__.pop(_KEPT, None)
        module.__dict__.pop(_RECOMPUTE, None)
        module.__class__ = type(module)._unfused  # type: ignore[attr-defined]
