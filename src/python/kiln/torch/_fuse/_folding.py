"""A batch normalization in the filter and the bias of the convolution before it."""

from __future__ import annotations

from typing import Any, Optional, Tuple

import torch
from torch import nn

from ._kinds import kind_of


def fold(conv: Any, norm: Optional[Any]) -> Tuple[nn.Parameter, Optional[nn.Parameter]]:
    """Filter and bias of the two together; the convolution's own if ``norm`` is None.

    Computed in f32 or f64. A transposed convolution's filter is (C, K / groups, ...): its channels of the result are
    K / groups of each group.
    """
    if norm is None:
        return conv.weight, conv.bias
    weight = conv.weight.detach()
    wide = torch.promote_types(weight.dtype, torch.float32)
    scale = torch.rsqrt(norm.running_var.detach().to(wide) + norm.eps)
    if norm.weight is not None:
        scale = scale * norm.weight.detach().to(wide)
    shift = -norm.running_mean.detach().to(wide) * scale
    if norm.bias is not None:
        shift = shift + norm.bias.detach().to(wide)
    if conv.bias is not None:
        shift = shift + conv.bias.detach().to(wide) * scale
    ones = (1,) * (weight.dim() - 2)
    if kind_of(conv)[1]:
        by_group = scale.view(conv.groups, 1, -1).expand(conv.groups, weight.shape[0] // conv.groups, -1)
        factor = by_group.reshape(weight.shape[0], -1, *ones)
    else:
        factor = scale.view(-1, 1, *ones)
    wanted = conv.weight.requires_grad
    return (
        nn.Parameter((weight.to(wide) * factor).to(weight.dtype), wanted),
        nn.Parameter(shift.to(weight.dtype), wanted if conv.bias is None else conv.bias.requires_grad),
    )
