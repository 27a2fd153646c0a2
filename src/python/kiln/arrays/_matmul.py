"""Products of matrices, of any strides."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from ._buffers import Buffer
from ._functions import ACTIVATIONS, MATH, _call, _Descriptor, _Operands, _pointer, _tensor


def _row(bias: Buffer, rank: int) -> Buffer:
    """A bias of one element per column, (N,), in the result's rank."""
    ones = (1,) * (rank - len(bias.shape))
    return bias._replace(shape=(*ones, *bias.shape), strides=(*ones, *bias.strides))


def matmul(a: Any, b: Any, *, bias: Any = None, residual: Any = None, activation: str = "identity",
           coefficient: Optional[float] = None, math: str = "default", out: Any = None,
           stream: Optional[int] = None) -> Any:
    """``activation(a @ b + bias + residual)``, in one kernel.

    a: (M, K), b: (K, N); or (B, M, K) and (B, K, N), where 1 in place of B is one matrix that all share. Strides may be
    any, so a transposed view is read as it lies. bias: (N,). residual: an array with the sizes of the result. Other
    arguments and errors are those of ``convolution()``.
    """
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation is {activation!r}; expected one of {', '.join(ACTIVATIONS)}")
    if math not in MATH:
        raise ValueError(f"math is {math!r}; expected one of {', '.join(MATH)}")
    operands = _Operands(stream, ranks=(2, 3), a=a, b=b, bias=bias, residual=residual)
    left, right = operands.buffers["a"], operands.buffers["b"]
    if len(right.shape) != len(left.shape):
        raise ValueError(f"b has sizes {right.shape}; expected {len(left.shape)} of them, as a has")
    batch = tuple(max(sizes) for sizes in zip(left.shape[:-2], right.shape[:-2]))
    d, finish = operands.result(out, (*batch, left.shape[-2], right.shape[-1]))
    epilogue, addresses, parts = _Descriptor("Epilogue"), [], []
    for name in ("bias", "residual"):
        buffer = operands.buffers.get(name)
        if buffer is None:
            continue
        parts.append(_tensor(_row(buffer, len(d.shape)) if name == "bias" else buffer))
        _call(f"kilnAddEpilogue{name.capitalize()}", epilogue, parts[-1])
        addresses.append(buffer.address)
    mode, usual = ACTIVATIONS[activation]
    act = _Descriptor("Activation")
    _call("kilnSetActivationDescriptor", act, mode, ctypes.c_double(usual if coefficient is None else coefficient))
    _call("kilnAddEpilogueActivation", epilogue, act)
    product = _Descriptor("Matmul")
    _call("kilnSetMatmulDescriptor", product, MATH[math], ctypes.c_int64(operands.alignment(d)))
    one, zero = operands.scalars()
    _call(
        "kilnMatmul", operands.handle(), product, one, _tensor(left), _pointer(left), _tensor(right), _pointer(right),
        one if residual is not None else zero, epilogue, len(addresses), (ctypes.c_void_p * len(addresses))(*addresses),
        _tensor(d), _pointer(d),
    )
    return finish()
