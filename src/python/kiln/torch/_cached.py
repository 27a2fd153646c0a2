"""kiln::convolution_cached: a convolution over planes of which the first come from another tensor, the cache, without
a copy of all of them. Planes are those of the first dimension of space, mostly time.

Results whose filter reaches into the cache are the head, the others the rest. The head is computed from a small
concatenation (the cache and the first planes of the input), the rest from the input itself, both into the same result.
As a sum it is conv(input, padded before by as many planes as the cache has) + conv(cache, padded behind it), the second
of which is the head's alone; the gradients are computed so, and need no copy.
"""

from __future__ import annotations

import functools
import math
from typing import Any, List, NamedTuple, Optional, Sequence, Tuple

import torch

from . import _activations, _operators, _sides

Tensor = torch.Tensor

_SCHEMA = (
    "convolution_cached(Tensor input, Tensor cache, Tensor weight, Tensor? bias, Tensor? residual, SymInt[] stride, "
    "SymInt[] padding, SymInt[] dilation, SymInt groups, int activation, float coefficient) -> Tensor"
)  # with 1 to (filter - 1) * dilation planes in the cache, and enough in both for a result
# Two convolutions instead of one take a few microseconds more, in which a GPU copies about as much as this.
least_spared_bytes = 8 << 20


class Planes(NamedTuple):
    """The planes of a call along the first dimension of space."""

    cache: Any  # of the cache
    input: Any
    extent: Any  # that one result is computed from
    stride: Any

    @property
    def results(self) -> Any:
        return (self.cache + self.input - self.extent) // self.stride + 1

    @property
    def head(self) -> Any:
        """The results that need the cache."""
        return torch.sym_min(self.results, (self.cache + self.stride - 1) // self.stride)

    @property
    def left(self) -> Any:
        """The planes that the next result begins with: those of the next chunk's cache."""
        return self.cache + self.input - self.results * self.stride

    def reach(self, results: Any) -> Any:
        """The planes that the first results are computed from."""
        return (results - 1) * self.stride + self.extent


def planes_of(cache: Tensor, input: Tensor, weight: Tensor, stride: Sequence[Any], dilation: Sequence[Any]) -> Planes:
    extent = (weight.shape[2] - 1) * dilation[0] + 1
    return Planes(cache.shape[2], input.shape[2], extent, stride[0])


def _new_result(x: Tensor, weight: Tensor, sizes: Sequence[Any]) -> Tensor:
    """An empty result: channels last if the input or the filter is."""
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(x.dim(), torch.contiguous_format)
    is_last = any(t.shape[1] > 1 and t.stride(1) == 1 and t.stride(-1) != 1 for t in (x, weight))
    return torch.empty(
        tuple(sizes), dtype=x.dtype, device=x.device, memory_format=last if is_last else torch.contiguous_format
    )


def _sizes(x: Tensor, weight: Tensor, planes: Planes, stride: Sequence[Any], padding: Sequence[Any],
           dilation: Sequence[Any]) -> List[Any]:
    before, after = _sides.split(padding, x.dim() - 2)
    sizes = [x.shape[0], weight.shape[0], planes.results]
    for i in range(1, x.dim() - 2):
        room = x.shape[2 + i] + before[i] + after[i] - (weight.shape[2 + i] - 1) * dilation[i] - 1
        sizes.append(room // stride[i] + 1)
    return sizes


class _Parts:
    """The ways to compute a result, from sizes that are known."""

    def __init__(self, x: Tensor, weight: Tensor, y: Tensor, planes: Planes) -> None:
        self._head, self._first = planes.head, planes.head * planes.stride - planes.cache
        self._planes = planes
        size = y.element_size()
        self._aligned = all(
            (t.data_ptr() + i * t.stride(2) * size) % 16 == 0 for t, i in ((x, self._first), (y, self._head))
        )
        in_head = planes.reach(self._head) - planes.cache
        self._spared = 2 * size * math.prod(x.shape) // planes.input * (planes.input - in_head)

    def way(self) -> str:
        """"whole" copies everything; "apart" computes head and rest; "over" the head over what was computed without a
        cache, where the rest would begin at an address that kernels read element by element."""
        if self._head == self._planes.results or self._spared < least_spared_bytes:
            return "whole"
        if self._aligned:
            return "apart"
        return "over" if 8 * self._head <= self._planes.results else "whole"


def _compute(x: Tensor, cache: Tensor, weight: Tensor, bias: Optional[Tensor], residual: Optional[Tensor],
             stride: List[int], padding: List[int], dilation: List[int], groups: int, activation: int,
             coefficient: float) -> Tensor:
    planes = planes_of(cache, x, weight, stride, dilation)
    y = _new_result(x, weight, _sizes(x, weight, planes, stride, padding, dilation))
    if residual is not None:
        _activations.check_residual(residual, y)
    before, after = _sides.split(padding, x.dim() - 2)

    def into(source: Tensor, first: int, count: int, planes_before: int) -> None:
        geometry = (stride, [planes_before, *before[1:], *after], dilation, False, [0] * len(stride), groups)
        part = None if residual is None else residual.narrow(2, first, count)
        torch.ops.kiln.convolution_into(
            y.narrow(2, first, count), source, weight, bias, part, *geometry, activation, coefficient
        )

    way = _Parts(x, weight, y, planes).way()
    head = planes.results if way == "whole" else planes.head
    if way == "apart":
        first = head * planes.stride - planes.cache
        into(x.narrow(2, first, planes.input - first), head, planes.results - head, 0)
    elif way == "over":
        into(x, 0, planes.results, planes.cache)
    into(_joined(cache, x.narrow(2, 0, planes.reach(head) - planes.cache)), 0, head, 0)
    return y


def _joined(cache: Tensor, x: Tensor) -> Tensor:
    """The planes of both, in the layout of ``x``."""
    together = _new_result(x, x, (*x.shape[:2], cache.shape[2] + x.shape[2], *x.shape[3:]))
    together.narrow(2, 0, cache.shape[2]).copy_(cache)
    together.narrow(2, cache.shape[2], x.shape[2]).copy_(x)
    return together


def _fake(x: Tensor, cache: Tensor, weight: Tensor, bias: Any, residual: Any, stride: Any, padding: Any, dilation: Any,
          groups: Any, activation: int, coefficient: float) -> Tensor:
    _activations.by_number(activation)
    planes = planes_of(cache, x, weight, stride, dilation)
    y = _new_result(x, weight, _sizes(x, weight, planes, stride, padding, dilation))
    if residual is not None:
        _activations.check_residual(residual, y)
    return y


def _save(ctx: Any, inputs: Tuple[Any, ...], output: Any) -> None:
    x, cache, weight, bias, residual, *ctx.geometry, ctx.activation, ctx.coefficient = inputs
    ctx.bias_sizes = None if bias is None else list(bias.shape)
    if _activations.by_number(ctx.activation).from_result:
        ctx.save_for_backward(x, cache, weight, None, None, None if ctx.activation == _activations.IDENTITY else output)
    else:  # the gradient needs the activation's argument, so it is computed again
        ctx.save_for_backward(x, cache, weight, bias, residual, None)


def _gradients(ctx: Any, dy: Tensor) -> Tuple[Any, ...]:
    x, cache, weight, bias, residual, y = ctx.saved_tensors
    stride, padding, dilation, groups = ctx.geometry
    activation = _activations.by_number(ctx.activation)
    if not activation.from_result:
        y = torch.ops.kiln.convolution_cached(x, cache, weight, bias, residual, *ctx.geometry, _activations.IDENTITY, 0.0)
    dz = dy if ctx.activation == _activations.IDENTITY else activation.gradient(dy, y, ctx.coefficient)
    of_x, of_cache, of_weight, of_bias, of_residual = ctx.needs_input_grad[:5]
    planes = planes_of(cache, x, weight, stride, dilation)
    (_, *before), after = _sides.split(padding, x.dim() - 2)

    def backward(d: Tensor, operand: Tensor, sides: Tuple[Any, Any], bias_sizes: Any, mask: List[bool]) -> Any:
        geometry = (stride, [sides[0], *before, sides[1], *after[1:]], dilation, False, [0] * len(stride), groups)
        return torch.ops.kiln.convolution_backward(d, operand, weight, bias_sizes, *geometry, mask)

    dx = dcache = dw = db = None
    if of_x or of_weight or of_bias:
        dx, dw, db = backward(dz, x, (planes.cache, 0), ctx.bias_sizes, [of_x, of_weight, of_bias])
    if of_cache or of_weight:
        behind = planes.reach(planes.head) - planes.cache
        head = dz.narrow(2, 0, planes.head)
        dcache, dw_of_head, _ = backward(head, cache, (0, behind), None, [of_cache, of_weight, False])
        dw = dw + dw_of_head if of_weight else None
    results = zip((dx, dcache, dw, db), (of_x, of_cache, of_weight, of_bias))
    return (*(g if wanted else None for g, wanted in results), dz if of_residual else None, *(None,) * 6)


@functools.lru_cache(maxsize=None)
def define() -> torch.library.Library:
    """Defines the operator, once."""
    library = torch.library.Library("kiln", "FRAGMENT")
    library.define(_SCHEMA)
    for key in ("CPU", "CUDA"):
        library.impl("convolution_cached", _compute, key)
    torch.library.register_fake("kiln::convolution_cached", _fake, lib=library)
    torch.library.register_autograd("kiln::convolution_cached", _gradients, setup_context=_save, lib=library)
    return library


@torch.compiler.assume_constant_result  # torch.compile calls it without tracing it
def register() -> bool:
    _operators.register()
    define()
    return True
