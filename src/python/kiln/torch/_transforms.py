"""Transforms of functions for which Kiln's operators have no rules: torch.func (grad, jvp, vmap, jacrev) and
forward-mode derivatives.

PyTorch's registration of gradients serves neither: torch.func refuses such an operator, and a forward-mode derivative
would be zero without a word. Under a transform the functions are therefore composed of PyTorch's operators, which have
all rules. Their convolutions are Kiln's if Kiln is enabled.
"""

from __future__ import annotations

from typing import Optional, Sequence

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad

Tensor = torch.Tensor


@torch.compiler.assume_constant_result  # torch.compile guards on both
def active() -> bool:
    """Whether this call is within a transform."""
    return forward_ad._current_level >= 0 or torch._C._functorch.peek_interpreter_stack() is not None


def local_convolution(x: Tensor, weight: Tensor, bias: Optional[Tensor], stride: Sequence[int],
                      padding: Sequence[int], dilation: Sequence[int], groups: int) -> Tensor:
    """A locally connected layer; sizes as in ``kiln.torch.local_conv2d``."""
    spatial = x.dim() - 2
    x = F.pad(x, [p for i in reversed(range(spatial)) for p in (padding[i], padding[i])])
    taps = weight.shape[-spatial:]
    for i in range(spatial):  # (N, C, out..., taps...)
        x = x.unfold(2 + i, dilation[i] * (taps[i] - 1) + 1, stride[i])[..., :: dilation[i]]
    own = weight.dim() == 3 + 2 * spatial  # each image has weights of its own
    first = 1 if own else 0
    out = tuple(weight.shape[first : first + spatial])
    if tuple(x.shape[2 : 2 + spatial]) != out:
        raise ValueError(f"weight is for {out} output pixels; expected {tuple(x.shape[2 : 2 + spatial])}")
    channels = weight.shape[first + spatial]
    x = x.reshape(x.shape[0], groups, -1, *out, *taps)
    weight = weight.reshape(*weight.shape[: first + spatial], groups, channels // groups, *weight.shape[first + spatial + 1 :])
    pixels, window = "abd"[:spatial], "rst"[:spatial]
    of = "n" if own else ""
    y = torch.einsum(f"ngc{pixels}{window},{of}{pixels}gkc{window}->ngk{pixels}", x, weight)
    y = y.reshape(y.shape[0], channels, *out)
    if bias is None:
        return y
    return y + (bias if bias.dim() > 1 else bias.view(-1, *(1,) * spatial))

