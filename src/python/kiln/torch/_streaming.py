"""Convolutions of a stream: its chunks one after the other, with what earlier chunks leave behind in a cache."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

import torch

from . import _cached
from ._functions import Ints, Modes, _expand, after_cache, modes_of, sides_of

Tensor = torch.Tensor


def _check_cache(cache: Tensor, input: Tensor, planes: _cached.Planes) -> None:
    sizes = (*input.shape[:2], *input.shape[3:])
    if cache.dim() != input.dim() or (*cache.shape[:2], *cache.shape[3:]) != sizes:
        expected = ", ".join(("planes" if i == 2 else str(s)) for i, s in enumerate(input.shape))
        raise ValueError(f"cache has sizes {tuple(cache.shape)}; expected ({expected}), as the input has")
    if cache.dtype != input.dtype:
        raise ValueError(f"cache is of {cache.dtype}; expected {input.dtype}, the input's type")
    if cache.device != input.device:
        raise ValueError(f"cache is on {cache.device}; expected {input.device}, the input's device")
    if cache.layout != torch.strided:
        raise ValueError(f"cache has the layout {cache.layout}; expected {torch.strided}")
    if input.shape[2] < 1:
        raise ValueError("input has 0 planes; expected 1 or more")
    if planes.cache > planes.extent - 1:
        raise ValueError(f"cache has {planes.cache} planes; expected at most {planes.extent - 1}, which the filter "
                         "reaches back to")
    if planes.stride > planes.extent:
        raise ValueError(f"stride is {planes.stride} in the first dimension; expected at most {planes.extent}, the "
                         "filter's extent there")
    if planes.cache + planes.input < planes.extent:
        raise ValueError(f"cache and input have {planes.cache + planes.input} planes; expected {planes.extent} or "
                         "more, which the filter covers")


def _next(cache: Tensor, input: Tensor, planes: _cached.Planes, update: bool) -> Tensor:
    """The cache of the next chunk."""
    left = planes.left
    if update and left != planes.cache:
        raise ValueError(f"the next cache has {left} planes and this one {planes.cache}, so it cannot be updated; "
                         f"expected as many planes as the stride, {planes.stride}, divides")
    if left <= planes.input:
        kept = input.narrow(2, planes.input - left, left)
    else:
        kept = torch.cat((cache.narrow(2, planes.cache + planes.input - left, left - planes.input), input), 2)
    if not update:
        return kept.clone() if left <= planes.input else kept
    with torch.no_grad():
        cache.copy_(kept)
    return cache


def _is_differentiated(*tensors: Optional[Tensor]) -> bool:
    return torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors)


def cached(spatial: int, input: Tensor, cache: Tensor, weight: Tensor, bias: Optional[Tensor],
           residual: Optional[Tensor], stride: Ints, sides: Tuple[List[int], List[int]], dilation: Ints, groups: int,
           activation: str, coefficient: Optional[float], modes: List[str], update: bool) -> Tuple[Tensor, Tensor]:
    """The common implementation; ``sides`` and ``modes`` are of all dimensions of space, zeros for the first."""
    if input.dim() == spatial + 1 and cache.dim() == spatial + 1:  # one stream, without a batch
        batched = cache.unsqueeze(0)
        y, after = cached(spatial, input.unsqueeze(0), batched, weight, bias,
                          None if residual is None else residual.unsqueeze(0), stride, sides, dilation, groups,
                          activation, coefficient, modes, update)
        return y.squeeze(0), cache if update else after.squeeze(0)
    if input.dim() != spatial + 2:
        raise ValueError(f"input has {input.dim()} dimensions; expected {spatial + 2}, or {spatial + 1} without a batch")
    if weight.dim() != spatial + 2:
        raise ValueError(f"weight has {weight.dim()} dimensions; expected {spatial + 2}")
    strides, dilations = _expand(stride, spatial, "stride"), _expand(dilation, spatial, "dilation")
    planes = _cached.planes_of(cache, input, weight, strides, dilations)
    _check_cache(cache, input, planes)
    if update and torch.is_grad_enabled() and cache.requires_grad:
        raise ValueError("cache requires a gradient, so it cannot be updated")
    # What the gradient reads must not be what the update writes.
    given = cache.clone() if update and _is_differentiated(input, weight, bias, residual) else cache
    y = after_cache(spatial, input, given, weight, bias, residual, strides, sides, dilations, groups, activation,
                    coefficient, modes)
    return y, _next(cache, input, planes, update)


def other_sides(padding: Any, spatial: int) -> Tuple[List[int], List[int]]:
    """The padding of all dimensions, nothing in the first, from that of the dimensions after it."""
    if spatial == 1:
        if padding not in (0, (), []):
            raise ValueError(f"padding is {padding!r}; expected 0, because the cache is what precedes the input")
        return [0], [0]
    several = isinstance(padding, (list, tuple))
    if several and len(padding) != spatial - 1:
        raise ValueError(f"padding has {len(padding)} values or pairs; expected {spatial - 1}, for the dimensions "
                         "after the first, which the cache precedes")
    before, after = sides_of(padding, spatial - 1)
    return [0, *before], [0, *after]


def _function(spatial: int, input: Tensor, cache: Tensor, weight: Tensor, bias: Optional[Tensor], stride: Ints,
              padding: Any, dilation: Ints, groups: int, residual: Optional[Tensor], activation: str,
              coefficient: Optional[float], padding_mode: Modes, update: bool) -> Tuple[Tensor, Tensor]:
    if spatial == 1:
        modes = ["zeros"]
    else:
        modes = ["zeros", *modes_of(padding_mode, spatial - 1)]
    return cached(spatial, input, cache, weight, bias, residual, stride, other_sides(padding, spatial), dilation,
                  groups, activation, coefficient, modes, update)


_DOC = """A convolution of a stream's next chunk in {n} dimension{s}: ``y, cache = {name}(chunk, cache, weight, ...)``.

    The cache is what precedes the chunk in the first dimension of space, mostly time: y is that of
    ``kiln.torch.conv{n}d`` over cache and chunk, one after the other, of which only small ones are copied whole. The
    chunks' results one after the other are those of the whole stream, with the same bits where the kernels are the same.

    input: ({shape}), or without the batch N. cache: the same sizes but for the first dimension of space, there at
    most (filter - 1) * dilation; zeros of as many planes begin a causal stream. stride: at most the filter's extent in
    the first dimension; planes that no result has used up stay in the cache. update: writes the next cache over this
    one, and returns it; chunks must then be multiples of the stride. {padding}Other arguments are those of
    ``kiln.torch.conv{n}d``. Gradients of any order, also of the cache.
    Returns y and the cache of the next chunk.
    Raises ValueError or RuntimeError if arguments do not fit together.
    """
_PADDING = """padding, padding_mode: of the dimensions
    after the first. """


def conv1d_cached(input: Tensor, cache: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
                  dilation: Ints = 1, groups: int = 1, *, residual: Optional[Tensor] = None,
                  activation: str = "identity", coefficient: Optional[float] = None,
                  update: bool = False) -> Tuple[Tensor, Tensor]:
    return _function(1, input, cache, weight, bias, stride, 0, dilation, groups, residual, activation, coefficient,
                     "zeros", update)


def conv2d_cached(input: Tensor, cache: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
                  padding: Any = 0, dilation: Ints = 1, groups: int = 1, *, residual: Optional[Tensor] = None,
                  activation: str = "identity", coefficient: Optional[float] = None, padding_mode: Modes = "zeros",
                  update: bool = False) -> Tuple[Tensor, Tensor]:
    return _function(2, input, cache, weight, bias, stride, padding, dilation, groups, residual, activation,
                     coefficient, padding_mode, update)


def conv3d_cached(input: Tensor, cache: Tensor, weight: Tensor, bias: Optional[Tensor] = None, stride: Ints = 1,
                  padding: Any = 0, dilation: Ints = 1, groups: int = 1, *, residual: Optional[Tensor] = None,
                  activation: str = "identity", coefficient: Optional[float] = None, padding_mode: Modes = "zeros",
                  update: bool = False) -> Tuple[Tensor, Tensor]:
    return _function(3, input, cache, weight, bias, stride, padding, dilation, groups, residual, activation,
                     coefficient, padding_mode, update)


for _spatial, _public in enumerate((conv1d_cached, conv2d_cached, conv3d_cached), 1):
    _public.__doc__ = _DOC.format(
        n=_spatial, s="" if _spatial == 1 else "s", name=_public.__name__,
        shape="N, C" + ", D, H, W"[-3 * _spatial :], padding="" if _spatial == 1 else _PADDING,
    )
