"""Policies for single modules."""

from __future__ import annotations

import threading
from typing import Any, List

import torch

from ._control import policy_number
from ._extension import extension


class _Stack(threading.local):
    """The policies of the modules whose forward call this thread is executing."""

    def __init__(self) -> None:
        self.policies: List[int] = []


_stack = _Stack()


class Use:
    """Returned by ``use()``; ``remove()`` removes the module's policy."""

    def __init__(self, module: torch.nn.Module, policy: int) -> None:
        self._policy = policy
        self._hooks = [
            module.register_forward_pre_hook(self._enter),
            module.register_forward_hook(self._leave, always_call=True),
        ]

    @torch.compiler.disable
    def _enter(self, module: torch.nn.Module, inputs: Any) -> None:
        _stack.policies.append(self._policy)
        extension().kilnTorchSetThreadPolicy(self._policy)

    @torch.compiler.disable
    def _leave(self, module: torch.nn.Module, inputs: Any, output: Any) -> None:
        if _stack.policies:
            _stack.policies.pop()
        extension().kilnTorchSetThreadPolicy(_stack.policies[-1] if _stack.policies else -1)

    def remove(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks = []


def use(module: torch.nn.Module, policy: str) -> Use:
    """Sets the policy (see ``enable()``) of the convolutions inside a module.

    If such modules are nested, the innermost counts. A layer's gradients have the policy of its last
    forward call; layers of the same shape have the same plans and share it. Under torch.compile the
    module's call is a graph break.

        kiln.torch.use(model.stem, policy="native")
    """
    return Use(module, policy_number(policy))
