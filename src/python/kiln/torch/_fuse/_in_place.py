"""Writes in place, recorded as such: torch.fx records ``a += b`` as ``a + b``, and refuses ``a[i] = b``."""

from __future__ import annotations

from typing import Any, Callable

from torch import fx


def iadd(a: Any, b: Any) -> Any:
    a += b
    return a


def isub(a: Any, b: Any) -> Any:
    a -= b
    return a


def imul(a: Any, b: Any) -> Any:
    a *= b
    return a


def itruediv(a: Any, b: Any) -> Any:
    a /= b
    return a


def ifloordiv(a: Any, b: Any) -> Any:
    a //= b
    return a


def imod(a: Any, b: Any) -> Any:
    a %= b
    return a


def ipow(a: Any, b: Any) -> Any:
    a **= b
    return a


def iand(a: Any, b: Any) -> Any:
    a &= b
    return a


def ior(a: Any, b: Any) -> Any:
    a |= b
    return a


def ixor(a: Any, b: Any) -> Any:
    a ^= b
    return a


def setitem(a: Any, index: Any, value: Any) -> None:
    a[index] = value


class Proxy(fx.Proxy):
    """A value of a trace whose writes in place are calls of the functions above."""


def _method(function: Callable[..., Any]) -> Callable[..., fx.Proxy]:
    def record(self: fx.Proxy, *others: Any) -> fx.Proxy:
        made = self.tracer.create_proxy("call_function", function, (self, *others), {})
        made.node.meta["is_wrapped"] = True  # torch.fx then keeps the call when it traces the result again
        return made

    return record


Proxy.__setitem__ = _method(setitem)  # type: ignore[attr-defined]
for _function in (iadd, isub, imul, itruediv, ifloordiv, imod, ipow, iand, ior, ixor):
    setattr(Proxy, f"__{_function.__name__}__", _method(_function))
