"""Padding that differs before the first element and after the last one.

PyTorch's operators know one number for each dimension of space. Kiln's also take two, in one list: all before, then
all after. What PyTorch computes is padded beforehand.
"""

from __future__ import annotations

from typing import Any, List, Sequence, Tuple

import torch
import torch.nn.functional as F

Tensor = torch.Tensor


def joined(before: Sequence[Any], after: Sequence[Any]) -> List[Any]:
    """The operators' list; one number for each dimension where both sides are alike."""
    alike = all(isinstance(b, int) and isinstance(a, int) and a == b for b, a in zip(before, after))
    return list(before) if alike else [*before, *after]


def split(padding: Sequence[Any], spatial: int) -> Tuple[List[Any], List[Any]]:
    """The numbers before and after, from the operators' list."""
    if len(padding) == 2 * spatial:
        return list(padding[:spatial]), list(padding[spatial:])
    both = list(padding) * (spatial if len(padding) == 1 else 1)
    return both, both


def pad(input: Tensor, before: Sequence[Any], after: Sequence[Any], mode: str = "constant") -> Tensor:
    """A padded copy, or the input where nothing is to be padded."""
    if all(isinstance(p, int) and p == 0 for p in (*before, *after)):
        return input
    return F.pad(input, [p for b, a in zip(reversed(before), reversed(after)) for p in (b, a)], mode)


def crop(padded: Tensor, before: Sequence[Any], after: Sequence[Any]) -> Tensor:
    """What ``pad`` made the tensor of, as a view."""
    for i, (b, a) in enumerate(zip(before, after), 2):
        padded = padded.narrow(i, b, padded.shape[i] - b - a)
    return padded


def for_pytorch(input: Tensor, geometry: Sequence[Any]) -> Tuple[Tensor, List[Any]]:
    """Input and geometry (stride, padding, and so on) for an operator of PyTorch's."""
    spatial = input.dim() - 2
    stride, padding, *rest = geometry
    if len(padding) != 2 * spatial:
        return input, list(geometry)
    return pad(input, *split(padding, spatial)), [stride, [0] * spatial, *rest]


def backward(function: Any, dy: Tensor, input: Tensor, weight: Tensor, bias_sizes: Any, *rest: Any) -> Any:
    """The gradients by ``function``, which is aten::convolution_backward."""
    *geometry, mask = rest
    padded, sound = for_pytorch(input, geometry)
    if padded is input:
        return function(dy, input, weight, bias_sizes, *sound, mask)
    dx, dw, db = function(dy, padded, weight, bias_sizes, *sound, mask)
    if mask[0]:
        dx = crop(dx, *split(geometry[1], input.dim() - 2)).clone()
    return dx, dw, db
