"""DLPack's structures (github.com/dmlc/dlpack, version 0 and 1), read and written through ctypes."""

from __future__ import annotations

import ctypes
from typing import Any, Callable, Dict, Sequence, Tuple

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
# (code, bits): name
TYPES = {(2, 32): "float32", (2, 64): "float64", (2, 16): "float16", (4, 16): "bfloat16"}
_CODES = {name: code for code, name in TYPES.items()}


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("index", ctypes.c_int32)]


class _Type(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("rank", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]

_api = ctypes.pythonapi
_get_pointer = _api.PyCapsule_GetPointer
_get_pointer.restype, _get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_new_capsule = _api.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def read(capsule: Any) -> Tuple[int, Tuple[int, int], str, Tuple[int, ...], Tuple[int, ...]]:
    """Address, device, type, sizes and strides (in elements) of a capsule's tensor.

    The capsule is not consumed, so it releases its tensor when it is deleted.
    """
    tensor = ctypes.cast(_get_pointer(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents
    kind = (tensor.type.code, tensor.type.bits)
    name = TYPES.get(kind, f"DLPack's {kind}") if tensor.type.lanes == 1 else "a vector"
    shape = tuple(tensor.shape[i] for i in range(tensor.rank))
    if tensor.strides:
        strides = tuple(tensor.strides[i] for i in range(tensor.rank))
    else:
        strides = dense_strides(shape)
    address = (tensor.data or 0) + tensor.byte_offset
    return address, (tensor.device.kind, tensor.device.index), name, shape, strides


def dense_strides(shape: Sequence[int]) -> Tuple[int, ...]:
    strides, next_stride = [], 1
    for size in reversed(shape):
        strides.append(next_stride)
        next_stride *= max(size, 1)
    return tuple(reversed(strides))


class Exporter:
    """Memory that another library takes over by ``from_dlpack`` and frees by calling ``release``."""

    _alive: Dict[int, Any] = {}  # exported objects that consumers hold, by the address of their structure

    def __init__(self, address: int, device: int, dtype: str, shape: Sequence[int], release: Callable[[], None]) -> None:
        self._address, self._device, self._dtype, self._shape = address, device, dtype, tuple(shape)
        self._release = release

    def __dlpack_device__(self) -> Tuple[int, int]:
        return CUDA, self._device

    def __dlpack__(self, **_: Any) -> Any:
        rank = len(self._shape)
        sizes, strides = (ctypes.c_int64 * rank)(*self._shape), (ctypes.c_int64 * rank)(*dense_strides(self._shape))
        code, bits = _CODES[self._dtype]
        managed = _Managed()
        managed.tensor = _Tensor(
            self._address, _Device(CUDA, self._device), rank, _Type(code, bits, 1), sizes, strides, 0
        )
        managed.deleter = _delete
        Exporter._alive[ctypes.addressof(managed)] = (managed, sizes, strides, self._release)
        return _new_capsule(ctypes.addressof(managed), b"dltensor", None)


@_Deleter
def _delete(managed: Any) -> None:
    _, _, _, release = Exporter._alive.pop(ctypes.addressof(managed.contents))
    release()
