"""Convolutions as modules: PyTorch's with padding by side, activation and residual; and causal ones with a cache."""

from __future__ import annotations

from typing import Any, Optional, Tuple, Union

import torch
from torch import nn

from . import _functions, _streaming
from ._functions import Ints, Modes, Padding

Tensor = torch.Tensor


class _Layer:
    """What the three classes add to PyTorch's: the arguments of kiln.torch's functions."""

    kiln_leaf = True  # kiln.torch.fuse() calls it as it is
    _spatial: int
    weight: Tensor
    bias: Optional[Tensor]

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Padding = 0,
                 dilation: Ints = 1, groups: int = 1, bias: bool = True, padding_mode: Modes = "zeros",
                 device: Any = None, dtype: Any = None, *, activation: str = "identity",
                 coefficient: Optional[float] = None) -> None:
        word = padding if isinstance(padding, str) else 0
        super().__init__(in_channels, out_channels, kernel_size, stride, word, dilation, groups, bias,  # type: ignore
                         device=device, dtype=dtype)
        if not isinstance(padding, str):
            before, after = _functions.sides_of(padding, self._spatial)
            self.padding = tuple(b if b == a else (b, a) for b, a in zip(before, after))
        _functions.modes_of(padding_mode, self._spatial)
        self.padding_mode = padding_mode if isinstance(padding_mode, str) else tuple(padding_mode)
        _functions.activation_of(activation, coefficient)
        self.activation, self.coefficient = activation, coefficient

    def forward(self, input: Tensor, residual: Optional[Tensor] = None) -> Tensor:
        return _functions.convolution(
            self._spatial, input, self.weight, self.bias, residual, self.stride, self.padding,  # type: ignore
            self.dilation, False, 0, self.groups, self.activation, self.coefficient, self.padding_mode,  # type: ignore
        )

    def extra_repr(self) -> str:
        more = "" if self.activation == "identity" else f", activation={self.activation}"
        return super().extra_repr() + more  # type: ignore[misc]


class Conv1d(_Layer, nn.Conv1d):
    _spatial = 1


class Conv2d(_Layer, nn.Conv2d):
    _spatial = 2


class Conv3d(_Layer, nn.Conv3d):
    _spatial = 3


class _Causal(_Layer):
    """Looks back alone in the first dimension of space: (kernel_size - 1) * dilation planes."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Ints, stride: Ints = 1, padding: Any = 0,
                 dilation: Ints = 1, groups: int = 1, bias: bool = True, padding_mode: Modes = "zeros",
                 device: Any = None, dtype: Any = None, *, activation: str = "identity",
                 coefficient: Optional[float] = None) -> None:
        sides = _streaming.other_sides(padding, self._spatial)
        super().__init__(in_channels, out_channels, kernel_size, stride, 0, dilation, groups, bias, padding_mode,
                         device, dtype, activation=activation, coefficient=coefficient)
        self._sides, self._modes = sides, _functions.modes_of(padding_mode, self._spatial)
        if self._modes[0] not in ("zeros", "replicate"):
            raise ValueError(f"padding_mode is {self._modes[0]!r} in the first dimension; expected 'zeros' or "
                             "'replicate', which look back alone")
        self.planes = (self.kernel_size[0] - 1) * self.dilation[0]  # type: ignore[attr-defined]
        self.padding = ((self.planes, 0), *list(zip(*sides))[1:])

    def first_cache(self, input: Tensor) -> Tensor:
        """What precedes a stream that begins with ``input``: zeros, or its first plane."""
        at = input.dim() - self._spatial
        sizes = (*input.shape[:at], self.planes, *input.shape[at + 1 :])
        if self._modes[0] == "zeros":
            return torch.zeros_like(input.narrow(at, 0, 1)).expand(sizes).clone()
        return input.narrow(at, 0, 1).expand(sizes).clone()

    def forward(self, input: Tensor, cache: Optional[Tensor] = None,  # type: ignore[override]
                residual: Optional[Tensor] = None, *, update: bool = False) -> Union[Tensor, Tuple[Tensor, Tensor]]:
        if cache is None:
            if update:
                raise ValueError("update is True without a cache; expected a cache that it writes to")
            return super().forward(input, residual)
        return _streaming.cached(
            self._spatial, input, cache, self.weight, self.bias, residual, self.stride, self._sides,  # type: ignore
            self.dilation, self.groups, self.activation, self.coefficient, ["zeros", *self._modes[1:]],  # type: ignore
            update,
        )


class CausalConv1d(_Causal, nn.Conv1d):
    _spatial = 1


class CausalConv2d(_Causal, nn.Conv2d):
    _spatial = 2


class CausalConv3d(_Causal, nn.Conv3d):
    _spatial = 3


_DOC = """``torch.nn.{name}`` by ``kiln.torch.{function}``: the same parameters and state_dict, with padding by side,
    padding_mode by dimension, activation and coefficient as that function has them, and ``layer(input, residual)``.
    """
_CAUSAL_DOC = """``torch.nn.{name}`` that looks back alone in the first dimension of space, mostly time.

    That dimension is padded by (kernel_size - 1) * dilation planes before, and not after; with zeros, or with the
    first plane where padding_mode is "replicate" there. {padding}The same
    parameters and state_dict as torch.nn's; activation, coefficient and residual as in ``kiln.torch.{function}``.

    ``y = layer(input)`` computes a whole stream. ``y, cache = layer(chunk, cache)`` computes its next chunk, which
    begins with ``cache = layer.first_cache(chunk)``; with ``update=True`` the next cache is written over this one. See
    ``kiln.torch.{function}_cached``.
    """

for _plain, _causal in ((Conv1d, CausalConv1d), (Conv2d, CausalConv2d), (Conv3d, CausalConv3d)):
    _names = dict(name=_plain.__name__, function=_plain.__name__.lower())
    _plain.__doc__ = _DOC.format(**_names)
    _padding = "" if _plain is Conv1d else "``padding`` is that of the dimensions after it. "
    _causal.__doc__ = _CAUSAL_DOC.format(padding=_padding, **_names)
