"""The activations that a convolution's kernel can apply: their numbers, PyTorch's functions, and gradients."""

from __future__ import annotations

from typing import Callable, Dict, NamedTuple, Optional

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
aten = torch.ops.aten


class Activation(NamedTuple):
    number: int  # kilnActivationMode_t
    apply: Callable[[Tensor, float], Tensor]
    # (gradient of the result, result or argument, coefficient) -> gradient of the argument
    gradient: Callable[[Tensor, Tensor, float], Tensor]
    from_result: bool  # whether the gradient takes the result instead of the argument
    coefficient: Optional[float] = None  # the default; None if the activation has no coefficient


# PyTorch has no derivative of these two gradients, so they are composed of functions that have one.
def _silu_gradient(d: Tensor, x: Tensor) -> Tensor:
    if not torch.is_grad_enabled():
        return aten.silu_backward(d, x)
    s = torch.sigmoid(x)
    return d * s * (1 + x * (1 - s))


def _mish_gradient(d: Tensor, x: Tensor) -> Tensor:
    if not torch.is_grad_enabled():
        return aten.mish_backward(d, x)
    t = torch.tanh(F.softplus(x))
    return d * (t + x * torch.sigmoid(x) * (1 - t * t))


ACTIVATIONS: Dict[str, Activation] = {
    "identity": Activation(700, lambda x, c: x, lambda d, y, c: d, True),
    "sigmoid": Activation(701, lambda x, c: torch.sigmoid(x), lambda d, y, c: aten.sigmoid_backward(d, y), True),
    "relu": Activation(702, lambda x, c: torch.relu(x), lambda d, y, c: aten.threshold_backward(d, y, 0), True),
    "tanh": Activation(703, lambda x, c: torch.tanh(x), lambda d, y, c: aten.tanh_backward(d, y), True),
    "clipped_relu": Activation(
        704, lambda x, c: F.hardtanh(x, 0.0, c), lambda d, y, c: aten.hardtanh_backward(d, y, 0.0, c), True, 6.0
    ),
    "leaky_relu": Activation(
        705,
        lambda x, c: F.leaky_relu(x, c),
        lambda d, x, c: aten.leaky_relu_backward(d, x, c, False),
        False,
        0.01,
    ),
    "elu": Activation(
        706, lambda x, c: F.elu(x, c), lambda d, x, c: aten.elu_backward(d, c, 1.0, 1.0, False, x), False, 1.0
    ),
    "gelu": Activation(
        707, lambda x, c: F.gelu(x), lambda d, x, c: aten.gelu_backward(d, x, approximate="none"), False
    ),
    "gelu_tanh": Activation(
        708,
        lambda x, c: F.gelu(x, approximate="tanh"),
        lambda d, x, c: aten.gelu_backward(d, x, approximate="tanh"),
        False,
    ),
    "silu": Activation(709, lambda x, c: F.silu(x), lambda d, x, c: _silu_gradient(d, x), False),
    "softplus": Activation(
        710, lambda x, c: F.softplus(x), lambda d, x, c: aten.softplus_backward(d, x, 1.0, 20.0), False
    ),
    "hard_swish": Activation(
        711, lambda x, c: F.hardswish(x), lambda d, x, c: aten.hardswish_backward(d, x), False
    ),
    "mish": Activation(718, lambda x, c: F.mish(x), lambda d, x, c: _mish_gradient(d, x), False),
}
IDENTITY = ACTIVATIONS["identity"].number
_BY_NUMBER = {activation.number: activation for activation in ACTIVATIONS.values()}


def find(name: str) -> Activation:
    if name not in ACTIVATIONS:
        raise ValueError(f"activation is {name!r}; expected one of {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def by_number(number: int) -> Activation:
    if number not in _BY_NUMBER:
        raise ValueError(f"activation is {number}; expected one of {', '.join(map(str, _BY_NUMBER))}")
    return _BY_NUMBER[number]


def apply(number: int, coefficient: float, x: Tensor) -> Tensor:
    return by_number(number).apply(x, coefficient)


def check_residual(residual: Tensor, y: Tensor, of: str = "the convolution's result") -> None:
    """Checks that the residual has the sizes and the type of ``y``, which errors call ``of``."""
    if residual.shape != y.shape or residual.dtype != y.dtype:
        raise ValueError(
            f"residual has sizes {tuple(residual.shape)} and type {residual.dtype}; expected those of "
            f"{of}, {tuple(y.shape)} and {y.dtype}"
        )
