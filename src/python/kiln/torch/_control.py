"""Switches Kiln on and off, and sets its policies."""

from __future__ import annotations

import contextlib
import os
import warnings
from typing import Callable, Iterator, List, Optional, Sequence, Set, Union

import torch

from .. import _library
from . import _flags, _native, _settings, _tracing
from ._extension import extension, must

POLICIES = {"wait": 0, "background": 1, "measure": 2, "native": 3}
STAND_INS = {"none": 1500, "quick": 1501, "any": 1502}
_KEYS = {"cuda": "CUDA", "cpu": "CPU"}
_enabled: Set[str] = set()


def policy_number(policy: str) -> int:
    if policy not in POLICIES:
        raise ValueError(f"policy is {policy!r}; expected one of {', '.join(POLICIES)}")
    return POLICIES[policy]


def device_names(devices: Union[str, Sequence[str]]) -> Sequence[str]:
    names = [devices] if isinstance(devices, str) else list(devices)
    for name in names:
        if name not in _KEYS:
            raise ValueError(f"device is {name!r}; expected 'cuda' or 'cpu'")
    return names


def use_choices() -> None:
    """Sets the file in which the policy ``measure`` keeps its results."""
    mode = os.environ.get("KILN_CACHE", "on")
    folder = None if mode == "off" else _library.cache_folder()
    path = ""
    writable = mode not in ("readonly", "strict")
    if folder is not None:
        path = str(folder / "torch_choices")
        if writable:
            with contextlib.suppress(OSError):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    cudnn = torch.backends.cudnn.version() if torch.cuda.is_available() else None
    context = f"kiln {_library.version()} torch {torch.__version__} cudnn {cudnn}"
    extension().kilnTorchUseChoices(path.encode(), writable, context.encode())


def enable(
    policy: Optional[str] = None,
    *,
    devices: Union[str, Sequence[str]] = "cuda",
    bundle: Optional[Union[str, os.PathLike]] = None,
    strict: Optional[bool] = None,
    plans: Optional[int] = None,
    stand_in: Optional[str] = None,
) -> None:
    """Lets Kiln compute PyTorch's convolutions in this process.

    policy: ``"wait"`` (the initial value) compiles a new shape's kernel before its first call returns.
        ``"background"`` uses a stand-in of Kiln's until the kernel is compiled, or PyTorch if there is no
        stand-in. ``"measure"`` uses PyTorch until the kernel is compiled, then times both once and keeps
        the faster one. ``"native"`` uses PyTorch. None keeps the current policy.
    devices: ``"cuda"``, or ``"cpu"`` for the host device, which is hundreds of times slower than
        PyTorch and meant for tests without a GPU.
    bundle: a file that ``prewarm()`` made, to take kernels from.
    strict: True: compile nothing; PyTorch computes convolutions whose kernels are in neither bundle nor cache.
        False: compile again. None: as before, or as KILN_CACHE says.
    plans: how many plans are kept; initially 4096.
    stand_in: which stand-ins plans that are made later may have under ``"background"``: ``"quick"`` (the
        initial value), a kernel that serves every shape, needs no compiler, and is estimated to take at
        most 3 times as long as the plan's own; ``"any"``, any kernel, however slow, compiled if necessary;
        ``"none"``.

    May be called again to change arguments. ``bundle`` and ``strict`` set the environment variables
    KILN_BUNDLE_PATH and KILN_CACHE, which libkiln reads when it makes the process's first plan; ``disable()`` does
    not take them back. Gives a warning if PyTorch finds no GPU to serve.
    Raises ImportError if this PyTorch is not supported, ValueError for a wrong argument, and RuntimeError if
    ``bundle`` or ``strict`` would change after the first plan.
    """
    names = device_names(devices)
    number = None if policy is None else policy_number(policy)
    if stand_in is not None and stand_in not in STAND_INS:
        raise ValueError(f"stand_in is {stand_in!r}; expected one of {', '.join(STAND_INS)}")
    if plans is not None and plans < 1:
        raise ValueError(f"plans is {plans}; expected at least 1")
    _settings.choose(bundle, strict)
    if "cuda" in names and not torch.cuda.is_available():
        warnings.warn(
            "PyTorch finds no GPU, so Kiln serves nothing; devices=\"cpu\" tries Kiln's slow host device",
            RuntimeWarning,
            stacklevel=2,
        )
    library = extension()
    _flags.watch()
    _flags.push()
    if not _enabled:
        use_choices()
    if number is not None:
        library.kilnTorchSetPolicy(number)
    if stand_in is not None:
        library.kilnTorchSetStandIn(STAND_INS[stand_in])
    if plans is not None:
        library.kilnTorchSetCapacity(plans)
    _tracing.register()
    from . import _operators  # which takes this file's functions

    _operators.register()  # models that AOTInductor compiled call them without this package's functions
    for name in names:
        if name not in _enabled:
            _native.keep(_KEYS[name])
            must(library.kilnTorchEnable(_KEYS[name].encode()))
            _enabled.add(name)


def disable() -> None:
    """Lets PyTorch compute all convolutions again. Plans are kept for the next ``enable()``.

    Other threads may be computing convolutions: each call is one or the other's. Kiln's kernels stay
    registered and hand calls over to PyTorch's, which costs the host what the policy ``"native"`` costs.
    """
    for name in sorted(_enabled):
        must(extension().kilnTorchDisable(_KEYS[name].encode()))
        _enabled.discard(name)


def is_enabled(device: str = "cuda") -> bool:
    """Whether Kiln is enabled for this kind of device."""
    return device_names(device)[0] in _enabled


@contextlib.contextmanager
def enabled(policy: Optional[str] = None, **arguments: object) -> Iterator[None]:
    """``enable()`` for the duration of a ``with`` block.

    Afterwards the policy stays, and devices that were enabled before stay enabled. All threads of the
    process are affected.
    """
    before = set(_enabled)
    enable(policy, **arguments)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in sorted(_enabled - before):
            must(extension().kilnTorchDisable(_KEYS[name].encode()))
            _enabled.discard(name)


def set_policy(policy: str) -> None:
    """Sets the policy of the process: see ``enable()``."""
    extension().kilnTorchSetPolicy(policy_number(policy))


def wait() -> None:
    """Waits until no kernel is being compiled in the background."""
    extension().kilnTorchWait()


before_clear: List[Callable[[], None]] = []  # called before plans and counts are removed


def clear() -> None:
    """Removes all plans and counts, so that later calls look kernels up again."""
    for function in list(before_clear):
        function()
    extension().kilnTorchClear()


def enable_from_environment() -> None:
    """Enables Kiln if KILN_TORCH=1, with the policy KILN_TORCH_POLICY. A failure gives only a warning."""
    if os.environ.get("KILN_TORCH", "0") in ("", "0"):
        return
    try:
        enable(os.environ.get("KILN_TORCH_POLICY") or None)
    except (ImportError, RuntimeError, ValueError) as error:
        warnings.warn(f"KILN_TORCH={os.environ['KILN_TORCH']} has no effect: {error}", RuntimeWarning)
