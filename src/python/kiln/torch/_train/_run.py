"""Computes a block of a model: a convolution, a batch normalization, an addition and an activation."""

from __future__ import annotations

import functools
from typing import Any, Optional, Sequence, Tuple, Union

import torch
import torch.nn.functional as F
from torch import nn

from .. import _activations, _operators, _transforms
from .._activations import IDENTITY
from .._functions import _autocast_type, _is_lowered
from .._norm._functions import _TYPES, _is_served, normalized
from ._function import Block, Norm, Pending, begin, begin_with_norm, end, go_on, measure, measure_on
from ._synchronized import is_synchronized, synchronize

Tensor = torch.Tensor


def _lower(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tuple[Tensor, Tensor, Optional[Tensor]]:
    """The tensors cast to autocast's type, as PyTorch does for its own convolutions."""
    dtype = _autocast_type(x)
    if dtype is None:
        return x, weight, bias
    cast = lambda t: t.to(dtype) if t is not None and t.dtype != dtype and _is_lowered(t) else t
    return cast(x), cast(weight), cast(bias)


def _makes_moments(conv: Any, x: Tensor) -> bool:
    return x.shape[1] == conv.in_channels and not _transforms.active()


def _can_carry_moments(conv: Any, norm: Any, x: Tensor) -> bool:
    """Whether the convolution's kernel should make the moments: whether Kiln will take them. ``x`` is lowered."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    weight = norm._parameters["weight"]
    return (weight is None or weight.dtype == wide) and _makes_moments(conv, x)


def _sizes(conv: Any, x: Tensor) -> Tuple[int, ...]:
    """The sizes of the convolution's result."""
    space = []
    numbers = (conv.kernel_size, conv.stride, conv.padding, conv.dilation, conv.output_padding)
    for size, k, s, p, d, more in zip(x.shape[2:], *numbers):
        reach = d * (k - 1) + 1 - 2 * p
        space.append((size - 1) * s + reach + more if conv.transposed else (size - reach) // s + 1)
    return (x.shape[0], conv.out_channels, *space)


def _geometry(conv: Any) -> Tuple[Any, ...]:
    """Stride, padding, dilation, transposed, output padding and groups; the module holds them expanded."""
    return conv.stride, conv.padding, conv.dilation, conv.transposed, conv.output_padding, conv.groups


def _is_computed_again() -> bool:
    """Whether the call is one within the computation of gradients: gradient checkpointing."""
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1


def _tracks(norm: Any) -> bool:
    """Whether the batch goes into the norm's running statistics."""
    return norm.training and norm.track_running_stats and not _is_computed_again()


def _count_of_batches(norm: Any) -> Optional[Tensor]:
    return norm._buffers["num_batches_tracked"] if _tracks(norm) else None


def count_batches(norms: Sequence[Any]) -> None:
    """Counts a batch in each norm that does, as PyTorch's modules do. No two are the same."""
    counts = [count for count in map(_count_of_batches, norms) if count is not None]
    if counts:
        torch._foreach_add_(counts, 1)


def _momentum(norm: Any, counted: bool) -> Union[float, Tensor]:
    """The share of this batch in the running statistics. The batch is counted, if it was not."""
    count = _count_of_batches(norm)
    if count is not None and not counted:
        count.add_(1)
    if norm.momentum is not None:
        return norm.momentum
    if count is None:
        return 0.0
    return count.double().reciprocal() if torch.compiler.is_compiling() else 1.0 / float(count)


def _statistics(norm: Any) -> Tuple[Any, Any]:
    """Running mean and variance; None where the norm does not ask for them."""
    if norm.training and not _tracks(norm):
        return None, None
    return norm._buffers["running_mean"], norm._buffers["running_var"]


def _finished(y: Tensor, residual: Any, addition: str, found: _activations.Activation, coefficient: float) -> Tensor:
    """What follows a norm, by PyTorch."""
    if residual is not None:
        if addition == "into result":
            y += residual
        elif addition == "into residual":
            residual += y
            y = residual
        else:
            y = y + residual
    return found.apply(y, coefficient)


def _can_be_added(residual: Any, y: Tensor, sizes: Optional[Tuple[int, ...]] = None) -> bool:
    """Whether a kernel adds the residual to a tensor of y's type and device and, unless others are given, sizes."""
    if not isinstance(residual, torch.Tensor):
        return residual is None
    return residual.dtype == y.dtype and residual.device == y.device and residual.shape == (sizes or y.shape)


def _is_one_norm(norm: Any, y: Tensor, residual: Any, sizes: Optional[Tuple[int, ...]] = None) -> bool:
    """Whether one call serves a norm, by the statistics of its operand, and what follows. y: the operand or, of other
    sizes, a tensor of its type on its device."""
    parameters = norm._parameters
    if torch.compiler.is_compiling() or y.shape[0] < 2 or _transforms.active() or is_synchronized(norm):
        return False
    if not _is_served(y, parameters["weight"], parameters["bias"], None, *_statistics(norm)):
        return False
    return _can_be_added(residual, y, sizes)


def _is_one_call(conv: Any, norm: Any, x: Tensor, residual: Any) -> bool:
    """Whether kiln::block serves a convolution of x, which autocast has lowered, and what follows."""
    return norm.num_features == conv.out_channels and _is_one_norm(norm, x, residual, _sizes(conv, x))


def makes_statistics(norm: Any) -> bool:
    """Whether the norm normalizes by the statistics of its operand."""
    return norm.training or (norm._buffers["running_mean"] is None and norm._buffers["running_var"] is None)


def _what_follows(norm: Any, residual: Any, activation: str, coefficient: Optional[float]) -> Norm:
    found = _activations.find(activation)
    value = (found.coefficient if coefficient is None else coefficient) or 0.0
    return Norm(norm._parameters["weight"], norm._parameters["bias"], residual, found.number, value)


def _fits(conv: Any, x: Tensor) -> bool:
    return x.dim() == len(conv.kernel_size) + 2 and not x.is_complex()


def run_block(conv: Any, norm: Any, x: Tensor, residual: Any, addition: str, activation: str,
              coefficient: Optional[float], *, is_open: bool = False, counted: bool = False,
              moments: Optional[Tensor] = None) -> Any:
    """``activation(norm(conv(x)) + residual)``; ``conv`` may be None.

    addition: what PyTorch does where Kiln does not serve the call: see _fuse.FusedConvolution. is_open: the result is
    given to run_linked() or run_measured(), and may be Pending. counted: count_batches() was called. moments: those of
    x, where they are known and there is no convolution.
    """
    found = _activations.find(activation)
    follows = _what_follows(norm, residual, activation, coefficient)
    own = makes_statistics(norm)
    if conv is None:
        y = x
        if is_open and own and _is_one_norm(norm, x, residual):
            _operators.register()
            norm._check_input_dim(x)
            F._verify_batch_size(x.size())
            return begin_with_norm(x, moments, follows, _statistics(norm), _momentum(norm, counted), norm.eps)
    elif own and _fits(conv, x):
        _operators.register()
        x, weight, bias = _lower(x, conv._parameters["weight"], conv._parameters["bias"])
        if not _can_carry_moments(conv, norm, x):
            y = conv(x)
        elif _is_one_call(conv, norm, x, residual):
            rest = (_statistics(norm), _momentum(norm, counted), norm.eps)
            if is_open:
                return begin(x, weight, bias, _geometry(conv), follows, *rest)
            return Block.apply(
                x, weight, bias, follows.weight, follows.bias, residual, _geometry(conv), *rest, follows.activation,
                follows.coefficient,
            )
        else:
            y, moments = torch.ops.kiln.convolution_moments(x, weight, bias, *_geometry(conv))
    else:
        y = conv(x)
    norm._check_input_dim(y)
    momentum, statistics = _momentum(norm, counted), _statistics(norm)
    fits = _can_be_added(residual, y)
    if is_synchronized(norm):
        _operators.register()
        run = functools.partial(synchronize, norm, y, moments, statistics, float(momentum))
        if fits:
            return run(residual, found.number, follows.coefficient)
        return _finished(run(None, IDENTITY, 0.0), residual, addition, found, follows.coefficient)
    if not fits or not _is_served(y, norm.weight, norm.bias, None, *statistics) or _transforms.active():
        y = F.batch_norm(y, *statistics, norm.weight, norm.bias, own, float(momentum), norm.eps)
        return _finished(y, residual, addition, found, follows.coefficient)
    if own:
        F._verify_batch_size(y.size())
    _operators.register()
    return normalized(
        y, moments, *statistics, norm.weight, norm.bias, own, momentum, norm.eps, residual, found.number,
        follows.coefficient,
    )


def run_linked(conv: Any, norm: Any, x: Any, residual: Any, addition: str, activation: str,
               coefficient: Optional[float], *, is_open: bool = False, counted: bool = False,
               keeps: bool = True) -> Tuple[Any, Tensor]:
    """run_block() where x may be the Pending of another block, and the result of that block.

    keeps: that result is kept for the gradient. Else no one else reads it, and it is computed again.
    """
    rest = (residual, addition, activation, coefficient)
    how = {"is_open": is_open, "counted": counted}
    if not isinstance(x, Pending):
        return run_block(conv, norm, x, *rest, **how), x
    if makes_statistics(norm) and _fits(conv, x.z):
        z, weight, bias = _lower(x.z, conv._parameters["weight"], conv._parameters["bias"])
        if z is x.z and _can_carry_moments(conv, norm, z) and _is_one_call(conv, norm, z, residual):
            made, z = go_on(
                x, keeps, weight, bias, _geometry(conv), _what_follows(norm, residual, activation, coefficient),
                _statistics(norm), _momentum(norm, counted), norm.eps,
            )
            return made if is_open else end(made), z
    z = end(x)
    return run_block(conv, norm, z, *rest, **how), z


def run_measured(conv: Any, x: Any, keeps: bool = True) -> Tuple[Tensor, Optional[Tensor], Tensor]:
    """``conv(x)`` and its moments, where Kiln makes them; and x, which may have been the Pending of a block. keeps: as
    of run_linked()."""
    of = x.z if isinstance(x, Pending) else x
    if not _fits(conv, of):
        return conv(of), None, of
    _operators.register()
    lowered, weight, bias = _lower(of, conv._parameters["weight"], conv._parameters["bias"])
    served = _makes_moments(conv, lowered) and lowered.dtype in _TYPES and lowered.numel() > 0
    if isinstance(x, Pending):
        if served and lowered is of:
            return measure_on(x, keeps, weight, bias, _geometry(conv))
        of = end(x)
        lowered = _lower(of, weight, bias)[0]
    if not served:
        return conv(of), None, of
    if torch.compiler.is_compiling():
        y, moments = torch.ops.kiln.convolution_moments(lowered, weight, bias, *_geometry(conv))
    else:
        y, moments = measure(lowered, weight, bias, _geometry(conv))
    return y, moments, of


def run_moments(x: Any) -> Optional[Tensor]:
    """The moments of a tensor; None where Kiln does not make them."""
    plain = isinstance(x, torch.Tensor) and 2 <= x.dim() <= 5 and x.dtype in _TYPES and x.numel() > 0
    if not plain or _transforms.active():
        return None
    _operators.register()
    with torch.no_grad():
        return torch.ops.kiln.moments(x)


def gather_moments(x: Tensor, parts: Sequence[Tensor], moments: Sequence[Optional[Tensor]]) -> Optional[Tensor]:
    """The moments of x, the concatenation of the parts' channels, from theirs; None where one is not known, or was
    converted."""
    if any(m is None or part.dtype != x.dtype for part, m in zip(parts, moments)):
        return None
    with torch.no_grad():
        return torch.cat(moments, 1) if len(moments) > 1 else moments[0]  # type: ignore[arg-type]
