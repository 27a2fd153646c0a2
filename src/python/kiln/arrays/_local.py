"""Locally connected layers: convolutions with different weights for each output pixel."""

from __future__ import annotations

from typing import Any, Optional, Sequence, Tuple

from ._buffers import Buffer
from ._functions import Ints, Padding, _call, _expand, _Operands, _pointer, _tensor, around


def output_sizes(x: Sequence[int], w: Sequence[int]) -> Tuple[int, ...]:
    """The sizes of the result, (N, K, space), for an input of sizes ``x`` and weights of sizes ``w``."""
    spatial = len(x) - 2
    if len(w) not in (2 * spatial + 2, 2 * spatial + 3):
        raise ValueError(
            f"w has sizes {tuple(w)}; expected {2 * spatial + 2} of them, the output's space, K, C / groups and the "
            f"filter's space, or {2 * spatial + 3} with the batch before them"
        )
    pixels = len(w) - 2 * spatial - 2
    return (x[0], w[pixels + spatial], *w[pixels : pixels + spatial])


def _check_pixels(x: Sequence[int], w: Sequence[int], stride: Ints, padding: Padding, dilation: Ints) -> None:
    """Checks that the weights are for as many output pixels as the input gives."""
    spatial = len(x) - 2
    steps, spread = _expand(stride, spatial, "stride"), _expand(dilation, spatial, "dilation")
    before, after = around(padding, w[len(w) - spatial :], steps, spread)
    if min(steps) < 1:
        return  # libkiln says so
    have = output_sizes(x, w)[2:]
    want = tuple(
        (x[2 + i] + before[i] + after[i] - spread[i] * (w[len(w) - spatial + i] - 1) - 1) // steps[i] + 1
        for i in range(spatial)
    )
    if have != want:
        raise ValueError(f"the weights are for {have} output pixels; expected {want}")


def _whole_bias(bias: Optional[Buffer], y: Buffer) -> Optional[Buffer]:
    """A bias of one element per channel, (K,), or per output element, (K, space), in the result's rank."""
    if bias is None:
        return None
    if bias.shape not in ((y.shape[1],), y.shape[1:]):
        raise ValueError(
            f"bias has sizes {bias.shape}; expected ({y.shape[1]},), one for each channel, or {y.shape[1:]}"
        )
    missing = len(y.shape) - 1 - len(bias.shape)
    return bias._replace(shape=(1, *bias.shape, *(1,) * missing), strides=(1, *bias.strides, *(1,) * missing))


def local(x: Any, w: Any, *, bias: Any = None, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1,
          groups: int = 1, out: Any = None, stream: Optional[int] = None) -> Any:
    """A convolution of x (N, C, space) with separate weights for every output pixel.

    w: (output space, K, C / groups, filter space), such as (P, Q, K, C, R, S); or with the batch first,
    (N, P, Q, K, C, R, S), if each image has its own weights. Its strides may be any, so w may be a transposed
    view of another order. bias: (K,), one element per channel, or (K, P, Q), one per output pixel and channel.
    Other arguments are those of ``convolution()``.
    """
    operands = _Operands(stream, x=x, w=w, bias=bias)
    x_buffer, w_buffer = operands.buffers["x"], operands.buffers["w"]
    sizes = output_sizes(x_buffer.shape, w_buffer.shape)
    if x_buffer.shape[1] == w_buffer.shape[-operands.spatial - 1] * groups:  # else libkiln speaks of the channels
        _check_pixels(x_buffer.shape, w_buffer.shape, stride, padding, dilation)
    y, finish = operands.result(out, sizes)
    whole = _whole_bias(operands.buffers.get("bias"), y)
    geometry = operands.convolution(w_buffer.shape[-operands.spatial :], stride, padding, dilation, groups, "default", y)
    one, zero = operands.scalars()
    _call(
        "kilnLocalForward", operands.handle(), one, _tensor(x_buffer), _pointer(x_buffer), _tensor(w_buffer),
        _pointer(w_buffer), geometry, zero, _tensor(whole) if whole else None, _pointer(whole), _tensor(y), _pointer(y),
    )
    return finish()


def local_data_gradient(dy: Any, w: Any, sizes: Sequence[int], *, stride: Ints = 1, padding: Padding = 0,
                        dilation: Ints = 1, groups: int = 1, out: Any = None, stream: Optional[int] = None) -> Any:
    """The gradient of x, whose sizes are ``sizes``, from that of ``y = local(x, w)``."""
    operands = _Operands(stream, dy=dy, w=w)
    dx, finish = operands.result(out, sizes)
    dy_buffer, w_buffer = operands.buffers["dy"], operands.buffers["w"]
    geometry = operands.convolution(w_buffer.shape[-operands.spatial :], stride, padding, dilation, groups, "default", dx)
    one, zero = operands.scalars()
    _call(
        "kilnLocalBackwardData", operands.handle(), one, _tensor(w_buffer), _pointer(w_buffer), _tensor(dy_buffer),
        _pointer(dy_buffer), geometry, zero, _tensor(dx), _pointer(dx),
    )
    return finish()


def local_filter_gradient(x: Any, dy: Any, sizes: Sequence[int], *, stride: Ints = 1, padding: Padding = 0,
                          dilation: Ints = 1, groups: int = 1, out: Any = None, stream: Optional[int] = None) -> Any:
    """The gradient of w, whose sizes are ``sizes``, from that of ``y = local(x, w)``."""
    operands = _Operands(stream, x=x, dy=dy)
    dw, finish = operands.result(out, sizes)
    geometry = operands.convolution(dw.shape[-operands.spatial :], stride, padding, dilation, groups, "default", dw)
    one, zero = operands.scalars()
    x_buffer, dy_buffer = operands.buffers["x"], operands.buffers["dy"]
    _call(
        "kilnLocalBackwardFilter", operands.handle(), one, _tensor(x_buffer), _pointer(x_buffer), _tensor(dy_buffer),
        _pointer(dy_buffer), geometry, zero, _tensor(dw), _pointer(dw),
    )
    return finish()
