"""Reads the address, type and layout of arrays, and makes new arrays of the same library."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from typing import Any, Iterator, NamedTuple, Optional, Sequence, Tuple

from . import _checks, _dlpack

HOST, CUDA = 1201, 1200  # kilnDeviceKind_t
SIZES = {"float32": 4, "float64": 8, "float16": 2, "bfloat16": 2}
_TYPES = {"<f4": "float32", "<f8": "float64", "<f2": "float16"}


class Buffer(NamedTuple):
    array: Any  # kept alive
    address: int
    device: Tuple[int, int]  # kilnDeviceKind_t and the device's index
    dtype: str
    shape: Tuple[int, ...]
    strides: Tuple[int, ...]  # in elements
    writable: bool
    keeper: Any = None  # an object that keeps the memory alive beside the array


# Libraries whose arrays are immutable.
_IMMUTABLE = ("jax", "jaxlib")


def _library_of(array: Any) -> str:
    return type(array).__module__.split(".")[0]


def _type_of(array: Any, typestr: str) -> str:
    name = str(getattr(array, "dtype", ""))
    return "bfloat16" if name.endswith("bfloat16") else _TYPES.get(typestr, name or typestr)


def _from_interface(array: Any, interface: Any, device: Tuple[int, int], what: str) -> Buffer:
    dtype = _type_of(array, str(_checks.field(interface, "typestr", what)))
    shape, steps = _checks.layout(_checks.field(interface, "shape", what), interface.get("strides"), what)
    address, read_only = _checks.data_of(interface, what)
    size = SIZES.get(dtype, 1)
    if steps is None:
        strides = _dlpack.dense_strides(shape)
    else:
        if any(stride % size for stride in steps):
            raise ValueError(f"{what} has strides of {steps} bytes; expected multiples of {size}")
        strides = tuple(stride // size for stride in steps)
    if address == 0 and 0 not in shape:
        raise ValueError(f"{what} has sizes {shape} and no memory")
    return Buffer(array, address, device, dtype, shape, strides, not read_only)


@contextlib.contextmanager
def _primary_context(driver: Any, device: int) -> Iterator[ctypes.c_int]:
    """Makes the primary context of a GPU current, which the memory of its arrays keeps alive."""
    context, current, ordinal = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    driver.cuCtxGetCurrent(ctypes.byref(current))
    driver.cuDeviceGet(ctypes.byref(ordinal), device)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal)
    driver.cuCtxSetCurrent(context)
    try:
        yield ordinal
    finally:
        driver.cuCtxSetCurrent(current)
        driver.cuDevicePrimaryCtxRelease_v2(ordinal)


def _wait_for_producer(interface: Any, device: int, stream: int, what: str) -> None:
    """Lets ``stream`` wait for the work on the stream that ``__cuda_array_interface__`` names: without a name there
    is nothing to wait for."""
    named = interface.get("stream")
    if named is None:
        return
    producer = _checks.address(named, f"{what}'s stream")
    if producer == 0:
        raise ValueError(f"{what} has a __cuda_array_interface__ whose stream is 0, which its protocol forbids")
    legacy = (0, 1)  # 1 is the protocol's name of the legacy default stream, 2 that of the thread's own
    if producer == stream or producer in legacy and stream in legacy:
        return
    driver, event = _driver(), ctypes.c_void_p()
    with _primary_context(driver, device):
        status = driver.cuEventCreate(ctypes.byref(event), ctypes.c_uint(2))  # without times
        if status == 0:
            status = driver.cuEventRecord(event, ctypes.c_void_p(producer))
            status = status or driver.cuStreamWaitEvent(ctypes.c_void_p(stream), event, ctypes.c_uint(0))
            driver.cuEventDestroy_v2(event)  # the driver keeps it until its work is done
    if status != 0:
        raise RuntimeError(f"the stream of {what} cannot be waited for (the driver's error {status})")


def _cuda_index(array: Any) -> int:
    """The index of the GPU that holds an array with ``__cuda_array_interface__``."""
    device = getattr(array, "device", None)
    for candidate in (device, getattr(device, "id", None), getattr(device, "index", None)):
        if isinstance(candidate, int):
            return candidate
    if hasattr(array, "__dlpack_device__"):
        return int(array.__dlpack_device__()[1])
    return 0


def buffer_of(array: Any, what: str, stream: int = 0) -> Buffer:
    """Reads an array; ``what`` is its name in messages. Raises TypeError and ValueError.

    stream: work on it starts after the work that the array's library has enqueued.
    """
    if getattr(array, "is_neg", None) is not None and array.is_neg():
        raise ValueError(f"{what} is a view with its sign changed (torch.Tensor.is_neg()); pass {what}.resolve_neg()")
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is not None:
        found = _from_interface(array, interface, (CUDA, _cuda_index(array)), what)
        _wait_for_producer(interface, found.device[1], stream, what)
    elif isinstance(getattr(array, "__array_interface__", None), dict):
        found = _from_interface(array, array.__array_interface__, (HOST, 0), what)
    elif hasattr(array, "__dlpack__"):
        kind, index = array.__dlpack_device__()
        on_gpu = kind in (_dlpack.CUDA, _dlpack.CUDA_MANAGED)
        if not on_gpu and kind not in (_dlpack.CPU, _dlpack.CUDA_HOST):
            raise ValueError(f"{what} is on a device that DLPack numbers {int(kind)}; expected a CPU or an NVIDIA GPU")
        # DLPack's number of the legacy default stream is 1.
        capsule = array.__dlpack__(stream=stream or 1) if on_gpu else array.__dlpack__()
        address, _, dtype, shape, strides = _dlpack.read(capsule)
        device = (CUDA, int(index)) if on_gpu else (HOST, 0)
        found = Buffer(array, address, device, dtype, shape, strides, _library_of(array) not in _IMMUTABLE, capsule)
    else:
        raise TypeError(
            f"{what} is a {type(array).__name__}; expected an array with __cuda_array_interface__, "
            "__array_interface__ or __dlpack__"
        )
    if found.dtype not in SIZES:
        raise ValueError(f"{what} is of {found.dtype}; expected one of {', '.join(SIZES)}")
    if any(stride < 0 for stride in found.strides):
        raise ValueError(f"{what} has negative strides {found.strides}; expected none")
    return found


@functools.lru_cache(maxsize=None)
def _driver() -> ctypes.CDLL:
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuMemAlloc_v2.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t]
    driver.cuMemFree_v2.argtypes = [ctypes.c_uint64]
    return driver


def _device_memory(device: int, dtype: str, shape: Sequence[int]) -> _dlpack.Exporter:
    """New memory in the primary context of a GPU, which this thread's Kiln handle keeps alive."""
    driver = _driver()
    context, current = ctypes.c_void_p(), ctypes.c_void_p()
    ordinal = ctypes.c_int()
    address = ctypes.c_uint64()
    bytes_wanted = SIZES[dtype]
    for size in shape:
        bytes_wanted *= size
    driver.cuCtxGetCurrent(ctypes.byref(current))
    driver.cuDeviceGet(ctypes.byref(ordinal), device)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), ordinal)
    driver.cuCtxSetCurrent(context)
    status = driver.cuMemAlloc_v2(ctypes.byref(address), max(bytes_wanted, 1))
    driver.cuCtxSetCurrent(current)
    if status != 0:
        driver.cuDevicePrimaryCtxRelease_v2(ordinal)
        raise MemoryError(f"GPU {device} has no {bytes_wanted} bytes left (the driver's error {status})")

    def release() -> None:
        driver.cuMemFree_v2(address.value)
        driver.cuDevicePrimaryCtxRelease_v2(ordinal)

    return _dlpack.Exporter(address.value, device, dtype, shape, release)


class Result(NamedTuple):
    buffer: Buffer
    finish: Any  # returns the array; called after the kernel that writes it is enqueued


def new_result(like: Buffer, shape: Sequence[int], stream: int) -> Result:
    """A dense array of the same library as ``like``."""
    library = _library_of(like.array)
    shape = tuple(shape)
    if library == "cupy":
        module = sys.modules[library]
        with module.cuda.Device(like.device[1]):
            made = module.empty(shape, like.array.dtype)
    elif library == "torch":
        made = sys.modules[library].empty(shape, dtype=like.array.dtype, device=like.array.device)
    elif library == "numba":
        made = sys.modules["numba"].cuda.device_array(shape, like.array.dtype)
    elif library == "numpy" or like.device[0] == HOST and not hasattr(like.array, "__dlpack__"):
        import numpy

        made = numpy.empty(shape, like.array.dtype)
    else:
        return _by_dlpack(like, shape, library, stream)
    return Result(buffer_of(made, "out", stream), lambda: made)


def _by_dlpack(like: Buffer, shape: Tuple[int, ...], library: str, stream: int) -> Result:
    """For libraries with immutable arrays: memory of our own, which the library takes over at the end."""
    take = _taker(library)
    if like.device[0] == HOST:
        import numpy

        # NumPy exports no bf16, so the bits are passed as another 16-bit type and renamed afterwards.
        made = numpy.empty(shape, like.dtype if like.dtype != "bfloat16" else numpy.uint16)
        buffer = Buffer(made, made.ctypes.data, like.device, like.dtype, shape, _dlpack.dense_strides(shape), True)
        if like.dtype == "bfloat16":
            return Result(buffer, lambda: take(made).view(like.array.dtype))
        return Result(buffer, lambda: take(made))
    memory = _device_memory(like.device[1], like.dtype, shape)
    buffer = Buffer(memory, memory._address, like.device, like.dtype, shape, _dlpack.dense_strides(shape), True)

    def finish() -> Any:
        # The other library does not wait for our stream.
        _driver().cuStreamSynchronize(ctypes.c_void_p(stream))
        return take(memory)

    return Result(buffer, finish)


def _taker(library: str) -> Any:
    if library in ("jax", "jaxlib"):
        import jax

        return jax.dlpack.from_dlpack
    module: Optional[Any] = sys.modules.get(library)
    if module is None or not hasattr(module, "from_dlpack"):
        raise TypeError(f"{library} has no from_dlpack to make a new array by; pass out=")
    return module.from_dlpack
