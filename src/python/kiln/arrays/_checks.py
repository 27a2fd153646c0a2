"""Integers that cross into C, and what a foreign array says of itself."""

from __future__ import annotations

import operator
from typing import Any, Optional, Sequence, Tuple

_LIMIT = 1 << 63


def integer(value: Any, what: str, least: int = -_LIMIT, most: int = _LIMIT - 1) -> int:
    """The integer, of Python, NumPy or another library. Raises TypeError for what is none, such as 1.5, and
    ValueError for one out of range, which ctypes would wrap."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} is {value!r}; expected an integer") from None
    if not least <= number <= most:
        raise ValueError(f"{what} is {number}; expected {least} to {most}")
    return number


def integers(values: Any, what: str, least: int = -_LIMIT) -> Tuple[int, ...]:
    """The integers of a sequence."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{what} is {values!r}; expected a sequence of integers")
    return tuple(integer(value, what, least) for value in values)


def address(value: Any, what: str) -> int:
    """An address or a stream's handle; 0 for None."""
    return 0 if value is None else integer(value, what, 0, (1 << 64) - 1)


def layout(shape: Any, strides: Optional[Any], what: str) -> Tuple[Tuple[int, ...], Optional[Tuple[int, ...]]]:
    """Sizes and strides of an array's interface."""
    sizes = integers(shape, f"{what}'s sizes", 0)
    if strides is None:
        return sizes, None
    steps = integers(strides, f"{what}'s strides")
    if len(steps) != len(sizes):
        raise ValueError(f"{what} has {len(sizes)} sizes and {len(steps)} strides; expected as many of each")
    return sizes, steps


def field(interface: Any, name: str, what: str) -> Any:
    """An entry of an array's interface. Raises ValueError if it is missing."""
    if not hasattr(interface, "get") or interface.get(name) is None:
        raise ValueError(f"{what} has an array interface without {name!r}")
    return interface[name]


def data_of(interface: Any, what: str) -> Tuple[int, bool]:
    """The address, and whether it may only be read."""
    data: Sequence[Any] = field(interface, "data", what)
    if not isinstance(data, (tuple, list)) or len(data) != 2:
        raise ValueError(f"{what} has an array interface whose data is {data!r}; expected an address and a flag")
    return address(data[0], f"{what}'s address"), bool(data[1])
