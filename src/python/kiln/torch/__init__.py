"""PyTorch's convolutions by Kiln.

    import kiln.torch
    kiln.torch.enable()

From then on Kiln computes every convolution on a GPU, forward and backward, that it supports; PyTorch
computes the others. See the package's README for policies, reports and deployment.
"""

from . import _flops
from ._causal import causal_conv1d, causal_conv1d_update
from ._compile._pass import compile_pass
from ._control import (
    clear,
    disable,
    enable,
    enable_from_environment,
    enabled,
    is_enabled,
    set_policy,
    wait,
)
from ._deploy import prewarm, record, tune
from ._flags import push as refresh_flags
from ._functions import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from ._fuse import fuse
from ._layers import CausalConv1d, CausalConv2d, CausalConv3d, Conv1d, Conv2d, Conv3d
from ._linear import linear, matmul
from ._local import local_conv1d, local_conv2d, local_conv3d
from ._modules import use
from ._norm._functions import batch_norm_act_add, conv_moments, norm_act_add
from ._norm._row_functions import group_norm_act_add, instance_norm_act_add, layer_norm_act_add, rms_norm_act_add
from ._report import Report, report
from ._streaming import conv1d_cached, conv2d_cached, conv3d_cached
from ._train._fuse import fuse_training, fused_blocks, unfuse

__all__ = [
    "CausalConv1d",
    "CausalConv2d",
    "CausalConv3d",
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "Report",
    "batch_norm_act_add",
    "causal_conv1d",
    "causal_conv1d_update",
    "clear",
    "compile_pass",
    "conv1d",
    "conv1d_cached",
    "conv2d",
    "conv2d_cached",
    "conv3d",
    "conv3d_cached",
    "conv_moments",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "disable",
    "enable",
    "enabled",
    "fuse",
    "fuse_training",
    "fused_blocks",
    "group_norm_act_add",
    "instance_norm_act_add",
    "is_enabled",
    "layer_norm_act_add",
    "linear",
    "local_conv1d",
    "local_conv2d",
    "local_conv3d",
    "matmul",
    "norm_act_add",
    "prewarm",
    "record",
    "refresh_flags",
    "report",
    "rms_norm_act_add",
    "set_policy",
    "tune",
    "unfuse",
    "use",
    "wait",
]

_flops.register()
enable_from_environment()
