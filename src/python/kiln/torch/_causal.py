"""The short depthwise convolutions of state-space models and audio codecs, over time with a state.

They are bound by memory, so nothing is copied: neither the input before its state, nor channels that lie beside each
other, (N, L, C) in memory, as projections leave them. Those are images of height L and width 1 in channels-last layout.
"""

from __future__ import annotations

from typing import Optional, Tuple

import torch

from . import _streaming
from ._functions import convolution

Tensor = torch.Tensor


def _filter_of(x: Tensor, weight: Tensor) -> Tensor:
    """The weight as (C, 1, k)."""
    channels = x.shape[1]
    fits = weight.dim() in (2, 3) and weight.shape[0] == channels and (weight.dim() == 2 or weight.shape[1] == 1)
    if not fits:
        raise ValueError(f"weight has sizes {tuple(weight.shape)}; expected ({channels}, k) or ({channels}, 1, k), a "
                         "filter for each channel of x")
    return weight.unsqueeze(1) if weight.dim() == 2 else weight


def _is_channels_last(x: Tensor) -> bool:
    return x.shape[1] > 1 and x.stride(1) == 1 and x.stride(2) != 1


def _image(x: Tensor) -> Tensor:
    """(N, C, L) as (N, C, L, 1) with the channels innermost, as a view where they are."""
    return x.transpose(1, 2).unsqueeze(2).permute(0, 3, 1, 2)


def _check_state(x: Tensor, state: Tensor, weight: Tensor, name: str) -> None:
    expected = (x.shape[0], x.shape[1], weight.shape[2] - 1)
    if tuple(state.shape) != expected:
        raise ValueError(f"{name} has sizes {tuple(state.shape)}; expected {expected}: batch, channels, filter - 1")
    if state.dtype != x.dtype or state.device != x.device:
        raise ValueError(f"{name} is of {state.dtype} on {state.device}; expected {x.dtype} on {x.device}, as x is")


def causal_conv1d(x: Tensor, weight: Tensor, bias: Optional[Tensor] = None, *, initial_state: Optional[Tensor] = None,
                  activation: str = "identity", coefficient: Optional[float] = None) -> Tuple[Tensor, Tensor]:
    """A causal depthwise convolution over time: y[t] = activation(sum of weight[j] x[t - k + 1 + j] + bias).

    x: (N, C, L), also with the channels innermost in memory. weight: (C, k) or (C, 1, k). bias: (C). initial_state:
    (N, C, k - 1), what precedes x; zeros if left out. activation and coefficient: as in ``kiln.torch.conv1d``, such as
    "silu". In one pass over x; gradients of any order, also of the state.
    Returns y, and the final state: the last k - 1 elements, with which the next chunk begins.
    Raises ValueError or RuntimeError if arguments do not fit together.
    """
    if x.dim() != 3:
        raise ValueError(f"x has {x.dim()} dimensions; expected 3: batch, channels, time")
    if x.shape[2] == 0:
        raise ValueError("x has the length 0; expected 1 or more")
    weight = _filter_of(x, weight)
    taps, groups = weight.shape[2], x.shape[1]
    if initial_state is not None:
        _check_state(x, initial_state, weight, "initial_state")
    last = _is_channels_last(x)
    if initial_state is None or taps == 1:
        if last:
            image = convolution(2, _image(x), weight.unsqueeze(3), bias, None, 1, ((taps - 1, 0), 0), 1, False, 0,
                                groups, activation, coefficient)
            y = image.squeeze(3)
        else:
            y = convolution(1, x, weight, bias, None, 1, ((taps - 1, 0),), 1, False, 0, groups, activation, coefficient)
        return y, _last(x, taps - 1)
    if not last:
        return _streaming.cached(1, x, initial_state, weight, bias, None, 1, ([0], [0]), 1, groups, activation,
                                 coefficient, ["zeros"], False)
    y, state = _streaming.cached(2, _image(x), _image(initial_state), weight.unsqueeze(3), bias, None, 1,
                                 ([0, 0], [0, 0]), 1, groups, activation, coefficient, ["zeros"] * 2, False)
    return y.squeeze(3), state.squeeze(3)


def _last(x: Tensor, count: int) -> Tensor:
    """The last elements in time, zeros before a short input."""
    if x.shape[2] >= count:
        return x.narrow(2, x.shape[2] - count, count).clone()
    return torch.nn.functional.pad(x, (count - x.shape[2], 0))


def causal_conv1d_update(x: Tensor, state: Tensor, weight: Tensor, bias: Optional[Tensor] = None, *,
                         activation: str = "identity", coefficient: Optional[float] = None) -> Tensor:
    """The next step or steps of ``causal_conv1d``, with the state updated in place.

    x: (N, C), one step, or (N, C, L). state: (N, C, k - 1), of any strides; what precedes x, then what precedes the
    next step. Other arguments are those of ``causal_conv1d``. Three kernels, in a CUDA graph too: the window of state
    and x, its convolution with bias and activation, and the copy to the state.
    Returns y, of the sizes of x.
    Raises ValueError or RuntimeError if arguments do not fit together.
    """
    if x.dim() == 2:
        return causal_conv1d_update(x.unsqueeze(2), state, weight, bias, activation=activation,
                                    coefficient=coefficient).squeeze(2)
    if x.dim() != 3 or x.shape[2] == 0:
        raise ValueError(f"x has sizes {tuple(x.shape)}; expected (batch, channels), or one dimension of time more")
    weight = _filter_of(x, weight)
    _check_state(x, state, weight, "state")
    if torch.is_grad_enabled() and state.requires_grad:
        raise ValueError("state requires a gradient, so it cannot be updated")
    window = torch.cat((state, x), 2)
    y = convolution(1, window, weight, bias, None, 1, 0, 1, False, 0, x.shape[1], activation, coefficient)
    with torch.no_grad():
        state.copy_(window.narrow(2, x.shape[2], weight.shape[2] - 1))
    return y
