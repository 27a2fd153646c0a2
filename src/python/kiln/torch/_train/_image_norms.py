"""Norms by statistics of an image, with the addition and the activation after them: GroupNorm, and InstanceNorm without
running statistics. They are the same in training and evaluation, and one kernel serves them, forward."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import fx, nn

from .. import _activations
from .._functions import _autocast_type
from .._fuse._chains import operand_of
from .._fuse._kinds import kind_of
from .._fuse._tracing import is_plain
from .._norm._row_functions import group_norm_act_add, instance_norm_act_add
from ._run import _can_be_added, _finished

_KINDS = {nn.GroupNorm: 0, nn.InstanceNorm1d: 1, nn.InstanceNorm2d: 2, nn.InstanceNorm3d: 3}  # dimensions of space; 0: any
_LOW = (torch.float16, torch.bfloat16)


def is_image_norm(module: nn.Module) -> bool:
    """Whether a call of the module is one of these norms."""
    base = next((base for base in _KINDS if isinstance(module, base)), None)
    if base is None or type(module).forward is not base.forward:
        return False
    return getattr(module, "running_mean", None) is None


def image_norms(traced: fx.GraphModule) -> List[fx.Node]:
    def serves(node: fx.Node) -> bool:
        if node.op != "call_module" or operand_of(node) is None:
            return False
        module = traced.get_submodule(str(node.target))
        return is_image_norm(module) and is_plain(module)

    return [node for node in traced.graph.nodes if serves(node)]


def is_lowered(node: fx.Node, traced: fx.GraphModule) -> bool:
    """Whether all that reads the node casts it to autocast's type, as convolutions and linear layers do. PyTorch's norms
    of images return f32 under autocast, and such readers do not see the difference."""

    def casts(user: fx.Node) -> bool:
        if user.op != "call_module" or operand_of(user) is not node:
            return False
        module = traced.get_submodule(str(user.target))
        return is_plain(module) and (kind_of(module) is not None or type(module) is nn.Linear)

    return bool(node.users) and all(casts(user) for user in node.users)


def _is_served(norm: Any, x: Any, residual: Any, lowered: bool) -> bool:
    if type(x) not in (torch.Tensor, nn.Parameter) or not _can_be_added(residual, x):
        return False
    spatial = next(count for base, count in _KINDS.items() if isinstance(norm, base))
    if spatial and x.dim() != spatial + 2:  # without a batch
        return False
    return lowered or x.dtype not in _LOW or _autocast_type(x) is None


def run_image_norm(norm: Any, x: Any, residual: Any, addition: str, activation: str, coefficient: Optional[float],
                   lowered: bool) -> Any:
    """``activation(norm(x) + residual)``. addition: as of run_block(). lowered: see is_lowered()."""
    if not _is_served(norm, x, residual, lowered):
        found = _activations.find(activation)
        value = (found.coefficient if coefficient is None else coefficient) or 0.0
        return _finished(norm(x), residual, addition, found, value)
    more: Dict[str, Any] = {"residual": residual, "activation": activation, "coefficient": coefficient}
    given: Tuple[Any, ...] = (norm.weight, norm.bias, norm.eps)
    if isinstance(norm, nn.GroupNorm):
        return group_norm_act_add(x, norm.num_groups, *given, **more)
    norm._check_input_dim(x)
    return instance_norm_act_add(x, *given, **more)
