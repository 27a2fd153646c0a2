"""The operations. Each call uses an immediate function of libkiln, which finds the plan by the descriptors."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from .. import _library
from . import _checks
from ._buffers import Buffer, buffer_of, new_result

Ints = Union[int, Sequence[int]]
Padding = Union[Ints, str]

TYPES = {"float32": 100, "float64": 101, "float16": 102, "bfloat16": 103}  # kilnDataType_t
CROSS_CORRELATION = 301
MATH = {"default": 400, "strict": 401, "tf32": 402}  # kilnMathMode_t
ACTIVATIONS = {  # kilnActivationMode_t, and the default coefficient
    "identity": (700, 0.0),
    "sigmoid": (701, 0.0),
    "relu": (702, 0.0),
    "tanh": (703, 0.0),
    "clipped_relu": (704, 6.0),
    "leaky_relu": (705, 0.01),
    "elu": (706, 1.0),
    "gelu": (707, 0.0),
    "gelu_tanh": (708, 0.0),
    "silu": (709, 0.0),
    "softplus": (710, 0.0),
    "hard_swish": (711, 0.0),
    "mish": (718, 0.0),
}


def _call(name: str, *arguments: Any) -> None:
    library = _library.load()
    if getattr(library, name)(*arguments) != 0:
        message = library.kilnGetLastErrorMessage().decode()
        raise RuntimeError(re.sub(r"\b([a-z]+)Desc\b", r"\1", message))  # xDesc is x here


class _Handles:
    """A thread's handles, destroyed when the thread ends."""

    def __init__(self) -> None:
        self.handles: Dict[Tuple[int, int], ctypes.c_void_p] = {}
        self.process = os.getpid()

    def __del__(self) -> None:
        # A forked child leaves its parent's handles alone, and so does the end of the process.
        if sys.is_finalizing() or self.process != os.getpid():
            return
        for handle in self.handles.values():
            _library.load().kilnDestroy(handle)

    def get(self, device: Tuple[int, int], stream: int) -> ctypes.c_void_p:
        if device not in self.handles:
            handle = ctypes.c_void_p()
            _library.begin()
            _call("kilnCreate", ctypes.byref(handle), *device)
            self.handles[device] = handle
        _call("kilnSetStream", self.handles[device], ctypes.c_void_p(stream))
        return self.handles[device]


_thread = threading.local()


def _handle(device: Tuple[int, int], stream: int) -> ctypes.c_void_p:
    """The calling thread's handle of the device, set to the stream."""
    if not hasattr(_thread, "handles"):
        _thread.handles = _Handles()
    return _thread.handles.get(device, stream)


class _Descriptor:
    """A descriptor that is destroyed at the end of the call."""

    def __init__(self, kind: str) -> None:
        self._kind, self._as_parameter_ = kind, ctypes.c_void_p()
        _call(f"kilnCreate{kind}Descriptor", ctypes.byref(self._as_parameter_))

    def __del__(self) -> None:
        getattr(_library.load(), f"kilnDestroy{self._kind}Descriptor")(self._as_parameter_)


def _array(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)


def _tensor(buffer: Buffer) -> _Descriptor:
    descriptor = _Descriptor("Tensor")
    shape, strides = buffer.shape, buffer.strides
    _call("kilnSetTensorNdDescriptor", descriptor, TYPES[buffer.dtype], len(shape), _array(shape), _array(strides))
    return descriptor


def _filter(buffer: Buffer) -> _Descriptor:
    descriptor = _Descriptor("Filter")
    shape, strides = buffer.shape, buffer.strides
    _call(
        "kilnSetFilterNdDescriptorStrided", descriptor, TYPES[buffer.dtype], len(shape), _array(shape), _array(strides)
    )
    return descriptor


def _expand(value: Ints, spatial: int, name: str) -> List[int]:
    if isinstance(value, str) or not hasattr(value, "__len__") or getattr(value, "shape", None) == ():
        values = [_checks.integer(value, name)] * spatial
    else:
        values = list(_checks.integers(value, name))
    if len(values) != spatial:
        raise ValueError(f"{name} has {len(values)} values; expected 1 or {spatial}, the dimensions of space")
    return values


def around(padding: Padding, filter_sizes: Sequence[int], stride: Sequence[int],
           dilation: Sequence[int]) -> Tuple[List[int], List[int]]:
    """What is padded before and after each dimension of space. ``"same"`` is as in PyTorch: where the sum is odd, one
    element more after."""
    spatial = len(stride)
    if not isinstance(padding, str):
        both = _expand(padding, spatial, "padding")
        return both, both
    if padding not in ("same", "valid"):
        raise ValueError(f"padding is {padding!r}; expected integers, 'same' or 'valid'")
    if padding == "valid" or len(filter_sizes) != spatial:  # the latter: libkiln speaks of the sizes
        return [0] * spatial, [0] * spatial
    if any(step != 1 for step in stride):
        raise ValueError(f"padding is 'same' and stride {tuple(stride)}; expected a stride of 1")
    sums = [dilation[i] * (filter_sizes[i] - 1) for i in range(spatial)]
    return [total // 2 for total in sums], [total - total // 2 for total in sums]


class _Operands:
    """The arrays of a call: their buffers, their common type and device, and the handle."""

    def __init__(self, stream: Optional[int], ranks: Sequence[int] = (3, 4, 5), **arrays: Any) -> None:
        self.stream = _checks.address(stream, "stream")
        self.buffers: Dict[str, Buffer] = {}
        for name, array in arrays.items():
            if array is not None:
                self.add(name, array if isinstance(array, Buffer) else buffer_of(array, name, self.stream))
        self.first = next(iter(self.buffers.values()))
        rank = len(self.first.shape)
        if rank not in ranks:
            what = "3 to 5: N, C and space" if len(ranks) == 3 else "2, rows and columns, or 3 with a batch before them"
            raise ValueError(f"{next(iter(arrays))} has sizes {self.first.shape}; expected {what}")
        self.spatial = rank - 2

    def add(self, name: str, buffer: Buffer) -> None:
        for first_name, first in list(self.buffers.items())[:1]:
            if buffer.dtype != first.dtype:
                raise ValueError(f"{name} is of {buffer.dtype}; expected {first.dtype}, as {first_name}")
            if buffer.device != first.device:
                raise ValueError(f"{name} is on device {buffer.device}; expected {first.device}, that of {first_name}")
        self.buffers[name] = buffer

    def bias(self, channels: int) -> Optional[Buffer]:
        found = self.buffers.get("bias")
        if found is None:
            return None
        if found.shape != (channels,):
            raise ValueError(f"bias has sizes {found.shape}; expected ({channels},), one for each channel")
        ones = (1,) * self.spatial
        return found._replace(shape=(1, channels, *ones), strides=(1, found.strides[0], *ones))

    def result(self, out: Any, shape: Sequence[int]) -> Tuple[Buffer, Any]:
        """The result's buffer, and a function that returns its array."""
        shape = _checks.integers(shape, "sizes", 0)
        if out is None:
            made = new_result(self.first, shape, self.stream)
            return made.buffer, made.finish
        buffer = out if isinstance(out, Buffer) else buffer_of(out, "out", self.stream)
        if not buffer.writable:
            raise ValueError(f"out is a {type(out).__name__} that may not be written to")
        if buffer.shape != tuple(shape):
            raise ValueError(f"out has sizes {buffer.shape}; expected {tuple(shape)}")
        self.add("out", buffer)
        return buffer, lambda: out

    def handle(self) -> ctypes.c_void_p:
        return _handle(self.first.device, self.stream)

    def scalars(self) -> Tuple[Any, Any]:
        kind = ctypes.c_double if self.first.dtype == "float64" else ctypes.c_float
        return ctypes.byref(kind(1)), ctypes.byref(kind(0))

    def convolution(self, filter_sizes: Sequence[int], stride: Ints, padding: Padding, dilation: Ints, groups: int,
                    math: str, *more: Buffer) -> _Descriptor:
        """The convolution's descriptor. filter_sizes: the filter's, in the dimensions of space."""
        if math not in MATH:
            raise ValueError(f"math is {math!r}; expected one of {', '.join(MATH)}")
        descriptor = _Descriptor("Convolution")
        compute = TYPES["float64" if self.first.dtype == "float64" else "float32"]
        strides, dilations = _expand(stride, self.spatial, "stride"), _expand(dilation, self.spatial, "dilation")
        before, after = around(padding, filter_sizes, strides, dilations)
        _call(
            "kilnSetConvolutionNdDescriptor", descriptor, self.spatial, _array(before), _array(after),
            _array(strides), _array(dilations), CROSS_CORRELATION, compute,
        )
        _call("kilnSetConvolutionGroupCount", descriptor, ctypes.c_int64(_checks.integer(groups, "groups")))
        _call("kilnSetConvolutionMathMode", descriptor, MATH[math])
        _call("kilnSetConvolutionAlignment", descriptor, ctypes.c_int64(self.alignment(*more)))
        return descriptor

    def alignment(self, *more: Buffer) -> int:
        """What the addresses of all operands are multiples of: a power of two up to 16."""
        bits = 16
        for buffer in (*self.buffers.values(), *more):
            bits |= buffer.address
        return bits & -bits


def _pointer(buffer: Optional[Buffer]) -> ctypes.c_void_p:
    return ctypes.c_void_p(buffer.address if buffer is not None else None)


def convolution(x: Any, w: Any, *, bias: Any = None, residual: Any = None, stride: Ints = 1, padding: Padding = 0,
                dilation: Ints = 1, groups: int = 1, activation: str = "identity",
                coefficient: Optional[float] = None, math: str = "default", out: Any = None,
                stream: Optional[int] = None) -> Any:
    """``activation(convolution(x, w) + bias + residual)``, in one kernel; a cross-correlation, as frameworks have it.

    bias: (K,). residual: an array with the sizes of the result. stride, padding, dilation: an integer, or
    one for each dimension of space; padding also ``"same"`` or ``"valid"``, as in PyTorch. activation, coefficient: as in ``kiln.torch.conv2d``. math: how products
    of f32 are computed: ``"default"`` (as exact as f32), ``"strict"`` (only fused multiply-adds) or
    ``"tf32"``. stream: the CUDA stream's address (CuPy: ``stream.ptr``); None: the legacy default stream,
    which waits for all blocking streams.
    Raises TypeError if an operand is not an array, ValueError if arguments do not fit together, and
    RuntimeError with libkiln's message otherwise.
    """
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation is {activation!r}; expected one of {', '.join(ACTIVATIONS)}")
    operands = _Operands(stream, x=x, w=w, bias=bias, residual=residual)
    sizes_of_filter = operands.buffers["w"].shape[2:]
    geometry = operands.convolution(sizes_of_filter, stride, padding, dilation, groups, math)
    x_desc, w_desc = _tensor(operands.buffers["x"]), _filter(operands.buffers["w"])
    sizes = _array([0] * (operands.spatial + 2))
    _call("kilnGetConvolutionForwardOutputDim", geometry, x_desc, w_desc, len(sizes), sizes)
    y, finish = operands.result(out, list(sizes))
    bias_buffer, residual_buffer = operands.bias(y.shape[1]), operands.buffers.get("residual")
    mode, usual = ACTIVATIONS[activation]
    act = _Descriptor("Activation")
    _call("kilnSetActivationDescriptor", act, mode, ctypes.c_double(usual if coefficient is None else coefficient))
    geometry = operands.convolution(sizes_of_filter, stride, padding, dilation, groups, math, y)
    one, zero = operands.scalars()
    _call(
        "kilnConvolutionBiasActivationForward", operands.handle(), one, x_desc, _pointer(operands.buffers["x"]),
        w_desc, _pointer(operands.buffers["w"]), geometry, one if residual_buffer else zero,
        _tensor(residual_buffer) if residual_buffer else None, _pointer(residual_buffer),
        _tensor(bias_buffer) if bias_buffer else None, _pointer(bias_buffer), act, _tensor(y), _pointer(y),
    )
    return finish()


def convolution_transposed(x: Any, w: Any, *, stride: Ints = 1, padding: Ints = 0, output_padding: Ints = 0,
                           dilation: Ints = 1, groups: int = 1, math: str = "default", out: Any = None,
                           stream: Optional[int] = None) -> Any:
    """The transposed convolution of x (N, C, space) by w (C, K / groups, space); the rest as ``convolution()``,
    but that padding is given by integers."""
    operands = _Operands(stream, x=x, w=w)
    if isinstance(padding, str):
        raise TypeError(f"padding is {padding!r}; expected integers for a transposed convolution")
    sizes_of_filter = operands.buffers["w"].shape[2:]
    geometry = operands.convolution(sizes_of_filter, stride, padding, dilation, groups, math)
    x_desc, w_desc = _tensor(operands.buffers["x"]), _filter(operands.buffers["w"])
    sizes = _array([0] * (operands.spatial + 2))
    after = _array(_expand(output_padding, operands.spatial, "output_padding"))
    _call("kilnGetConvolutionTransposedOutputDim", geometry, x_desc, w_desc, after, len(sizes), sizes)
    y, finish = operands.result(out, list(sizes))
    geometry = operands.convolution(sizes_of_filter, stride, padding, dilation, groups, math, y)
    one, zero = operands.scalars()
    _call(
        "kilnConvolutionTransposed", operands.handle(), one, x_desc, _pointer(operands.buffers["x"]), w_desc,
        _pointer(operands.buffers["w"]), geometry, zero, _tensor(y), _pointer(y),
    )
    return finish()


def data_gradient(dy: Any, w: Any, sizes: Sequence[int], *, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1,
                  groups: int = 1, math: str = "default", out: Any = None, stream: Optional[int] = None) -> Any:
    """The gradient of x, whose sizes are ``sizes``, from that of ``y = convolution(x, w)``."""
    operands = _Operands(stream, dy=dy, w=w)
    dx, finish = operands.result(out, sizes)
    geometry = operands.convolution(operands.buffers["w"].shape[2:], stride, padding, dilation, groups, math, dx)
    one, zero = operands.scalars()
    dy_buffer, w_buffer = operands.buffers["dy"], operands.buffers["w"]
    _call(
        "kilnConvolutionBackwardData", operands.handle(), one, _filter(w_buffer), _pointer(w_buffer),
        _tensor(dy_buffer), _pointer(dy_buffer), geometry, zero, _tensor(dx), _pointer(dx),
    )
    return finish()


def filter_gradient(x: Any, dy: Any, sizes: Sequence[int], *, stride: Ints = 1, padding: Padding = 0, dilation: Ints = 1,
                    groups: int = 1, math: str = "default", out: Any = None, stream: Optional[int] = None) -> Any:
    """The gradient of w, whose sizes are ``sizes``, from that of ``y = convolution(x, w)``."""
    operands = _Operands(stream, x=x, dy=dy)
    dw, finish = operands.result(out, sizes)
    geometry = operands.convolution(dw.shape[2:], stride, padding, dilation, groups, math, dw)
    one, zero = operands.scalars()
    x_buffer, dy_buffer = operands.buffers["x"], operands.buffers["dy"]
    _call(
        "kilnConvolutionBackwardFilter", operands.handle(), one, _tensor(x_buffer), _pointer(x_buffer),
        _tensor(dy_buffer), _pointer(dy_buffer), geometry, zero, _filter(dw), _pointer(dw),
    )
    return finish()


def bias_gradient(dy: Any, *, out: Any = None, stream: Optional[int] = None) -> Any:
    """The gradient of the bias, (K,): the sum of dy over batch and space."""
    operands = _Operands(stream, dy=dy)
    channels = operands.first.shape[1]
    db, finish = operands.result(out, (channels,))
    ones = (1,) * operands.spatial
    whole = db._replace(shape=(1, channels, *ones), strides=(1, db.strides[0], *ones))
    one, zero = operands.scalars()
    _call(
        "kilnConvolutionBackwardBias", operands.handle(), one, _tensor(operands.first), _pointer(operands.first),
        zero, _tensor(whole), _pointer(whole),
    )
    return finish()
