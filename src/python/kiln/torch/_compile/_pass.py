"""compile_pass()."""

from __future__ import annotations

import hashlib
import pathlib
import threading
from typing import Any, Dict, List, Sequence, Tuple, Union

import torch

from ... import _library
from .. import _control, _operators

_RELEASES = ((2, 10), (2, 15))  # the first and the last that this is written for
_lock = threading.Lock()
_handles: Dict[str, List["CompilePass"]] = {}  # those that are there, by device


def check_release(version: str) -> None:
    """Raises RuntimeError if this is not written for that release of PyTorch, whose inductor it goes into."""
    parts = version.split("+")[0].split(".")
    release = tuple(int(part) for part in parts[:2] if part.isdigit())
    if not _RELEASES[0] <= release <= _RELEASES[1]:
        first, last = (".".join(map(str, r)) for r in _RELEASES)
        raise RuntimeError(f"compile_pass() is for PyTorch {first} to {last}; this is PyTorch {version}")


def _sources() -> bytes:
    """What graphs and the code made of them depend on."""
    folder = pathlib.Path(__file__).parent
    digest = hashlib.sha256(_library.version().encode())
    for path in (*sorted(folder.glob("*.py")), folder.parent / "_activations.py", folder.parent / "_operators.py"):
        digest.update(path.read_bytes())
    return digest.digest()


def _turns_layout(gm: torch.fx.GraphModule) -> bool:
    """Whether inductor would lay the images of the graph's convolutions out with channels last, by the rule that it has
    for training, the stricter of its two: a pass does not learn which graph it is."""
    from torch._inductor.graph import GraphLowering

    return GraphLowering.decide_layout_opt(gm, is_inference=False)


def _make_pass(device: str) -> Any:
    """The pass as inductor takes it."""
    from torch._inductor.custom_graph_pass import CustomGraphModulePass

    from ._rewrite import rewrite

    class Pass(CustomGraphModulePass):
        def __init__(self) -> None:
            self.before: Any = None  # one that was there
            self._id = _sources()

        def __call__(self, gm: torch.fx.GraphModule) -> None:
            if self.before is not None:
                self.before(gm)
            made = rewrite(gm.graph, device, channels_last=_turns_layout(gm))
            gm.recompile()
            for handle in list(_handles.get(device, ())):
                handle.replaced.extend(made)

        def uuid(self) -> Any:  # a part of the keys of inductor's caches
            if self.before is None:
                return self._id
            before = self.before.uuid()
            return None if before is None else (self._id, before)

    return Pass()


class CompilePass:
    """Returned by ``compile_pass()``.

    ``replaced`` has the convolutions that were replaced since then: the name of each in its graph, and what its call
    carries besides the convolution. What comes from inductor's cache is not counted.
    """

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = tuple(devices)
        self.replaced: List[Tuple[str, str]] = []

    def remove(self) -> None:
        """What is compiled from now on is PyTorch's again, unless another call of ``compile_pass()`` is in effect. What
        was compiled stays as it is."""
        from torch._inductor.codegen.common import custom_backend_passes

        with _lock:
            for device in self._devices:
                handles = _handles.get(device, [])
                if self in handles:
                    handles.remove(self)
                    if not handles:
                        custom_backend_passes[device] = custom_backend_passes[device].before  # type: ignore[union-attr]
            self._devices = ()

    def __enter__(self) -> "CompilePass":
        return self

    def __exit__(self, *error: Any) -> None:
        self.remove()


def compile_pass(*, devices: Union[str, Sequence[str]] = "cuda") -> CompilePass:
    """Lets Kiln compute the convolutions of models that torch.compile and AOTInductor compile, each together with what
    follows it: batch normalization by running statistics, an addition, an activation.

        kiln.torch.compile_pass()                     # from here on, in all threads
        model = torch.compile(model.eval())

        with kiln.torch.compile_pass():               # what is compiled in the block
            torch._inductor.aoti_compile_and_package(torch.export.export(model, (x,)), package_path="model.pt2")

    A model is compiled in its first call, not by torch.compile(). Convolutions are replaced in all graphs, in training
    too. What follows one goes into its call where nothing else, such as a gradient, reads what is in between; batch
    normalization where the result has at least as many elements as the filter, which it multiplies in each call.
    Kiln computes the calls whether ``enable()`` was called or not. What it does not serve is composed of PyTorch's.
    The process that loads what AOTInductor compiled calls ``enable()`` or ``compile_pass()`` first.

    devices: ``"cuda"``, or ``"cpu"`` for the slow host device. Returns a handle with ``replaced`` and ``remove()``, also
    a context manager. Several calls are as one until each is removed.
    Raises RuntimeError for a PyTorch other than 2.10 to 2.15, and ValueError for another device.
    """
    names = list(dict.fromkeys(_control.device_names(devices)))
    check_release(torch.__version__)
    _operators.register()
    from torch._inductor.codegen.common import custom_backend_passes, init_backend_registration

    made = CompilePass(names)
    with _lock:
        init_backend_registration()
        for device in names:
            handles = _handles.setdefault(device, [])
            if not handles:
                inserted = _make_pass(device)
                inserted.before = custom_backend_passes.get(device)
                custom_backend_passes[device] = inserted
            handles.append(made)
    return made
