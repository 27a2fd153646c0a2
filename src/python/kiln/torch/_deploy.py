"""Deployment: records a model's plans, compiles their kernels ahead of time, and tunes them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import tempfile
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import torch

from .. import _library
from . import _control, _settings
from ._extension import report_rows

Path = Union[str, os.PathLike]


def _uses() -> Dict[Tuple[str, str], Tuple[int, Dict[str, Any]]]:
    """How often each plan was used, and its row in the report, by device and problem."""
    uses: Dict[Tuple[str, str], Tuple[int, Dict[str, Any]]] = {}
    for row in report_rows():
        if row["problem"]:
            key = (row["device"], row["problem"])
            uses[key] = (uses.get(key, (0, row))[0] + row["served"] + row["native"], row)
    return uses


class _Recording:
    """The plans that are used while it is open, whatever ``clear()`` removes."""

    def __init__(self) -> None:
        self.rows: Dict[Tuple[str, str], Dict[str, Any]] = {}
        self.before = _uses()

    def keep(self) -> None:
        for key, (count, row) in _uses().items():
            if count > self.before.get(key, (0, {}))[0]:
                self.rows[key] = row

    def before_clear(self) -> None:
        self.keep()
        self.before = {}


def _manifest_line(row: Dict[str, Any]) -> str:
    command, problem = row["problem"].split(" ", 1)
    line: Dict[str, Any] = {"command": command, "problem": problem}
    if row["device"] == "cpu":
        line["architecture"] = "host"
    elif row["architecture"]:
        properties = torch.cuda.get_device_properties(row["device"])
        line["architecture"] = row["architecture"]
        line["multiprocessors"] = properties.multi_processor_count
        line["workspace"] = 16 << 20  # what src/torch/plans/workspace.hpp grants a plan
    return json.dumps(line)


@contextlib.contextmanager
def record(manifest: Path) -> Iterator[None]:
    """Writes a manifest of all plans that the ``with`` block uses, including backward passes.

    A line has a problem and the chip for which the kernels were chosen, or ``host``. Raises
    RuntimeError if Kiln is not enabled, because no plans are made then, and OSError if the file cannot be written,
    both before the block begins. A file that is there stays as it is until the block ends without an exception.
    Under the policy ``"native"`` the manifest stays empty.
    """
    if not _control.is_enabled("cuda") and not _control.is_enabled("cpu"):
        raise RuntimeError("Kiln is not enabled, so there is nothing to record; call kiln.torch.enable()")
    with open(manifest, "a", encoding="utf-8"):
        pass
    recording = _Recording()
    _control.before_clear.append(recording.before_clear)
    try:
        yield
    finally:
        _control.before_clear.remove(recording.before_clear)
    recording.keep()
    lines = [_manifest_line(row) for row in recording.rows.values()]
    with open(manifest, "w", encoding="utf-8") as file:
        file.writelines(line + "\n" for line in sorted(set(lines)))


def _run_program(*arguments: str) -> str:
    done = subprocess.run(
        [_library.program(), *arguments],
        env=_settings.environment_of_programs(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise RuntimeError(f"kiln {' '.join(arguments)} failed:\n{done.stdout}")
    return done.stdout


def prewarm(
    manifest: Path,
    bundle: Optional[Path] = None,
    *,
    arch: Union[str, Sequence[str], None] = None,
    batch: Sequence[int] = (),
    jobs: Optional[int] = None,
) -> str:
    """Compiles the kernels of a manifest into the cache, and into one file if ``bundle`` is given.

    Needs no GPU. arch: ``"sm_90a"``, a chip such as ``"h100-pcie"``, or several; None: those in the
    manifest. batch: batch sizes to use instead of the recorded ones. jobs: parallel compilations; None: one
    per CPU. Returns the output of the program ``kiln prewarm``; raises RuntimeError with the output if a
    kernel could not be compiled.
    """
    arguments = ["prewarm", os.fspath(manifest)]
    if bundle is not None:
        arguments += ["--bundle", os.fspath(bundle)]
    if arch is not None:
        arguments += ["--arch", arch if isinstance(arch, str) else ",".join(arch)]
    if batch:
        arguments += ["--mb", *map(str, batch)]
    if jobs is not None:
        arguments += ["-j", str(jobs)]
    return _run_program(*arguments)


def _tensors_of(results: Any) -> Iterator[torch.Tensor]:
    """All tensors in a model's results."""
    if isinstance(results, torch.Tensor):
        yield results
    elif isinstance(results, Mapping):
        for value in results.values():
            yield from _tensors_of(value)
    elif isinstance(results, (list, tuple)):
        for value in results:
            yield from _tensors_of(value)
    elif dataclasses.is_dataclass(results) and not isinstance(results, type):
        for field in dataclasses.fields(results):
            yield from _tensors_of(getattr(results, field.name))


@contextlib.contextmanager
def _unchanged(model: torch.nn.Module) -> Iterator[None]:
    """Restores the model's buffers and the states of the random generators afterwards."""
    buffers = [(module, name, buffer, buffer.detach().clone()) for module in model.modules()
               for name, buffer in module._buffers.items() if buffer is not None]
    with torch.random.fork_rng():
        try:
            yield
        finally:
            with torch.no_grad():
                for module, name, buffer, value in buffers:
                    buffer.copy_(value)
                    module._buffers[name] = buffer


def tune(
    model: torch.nn.Module,
    *inputs: Any,
    backward: Optional[bool] = None,
    time_limit: float = 0,
    arguments: Sequence[str] = (),
) -> str:
    """Measures all of Kiln's candidates for the model's convolutions; plans then take the fastest.

    The model's parameters and inputs must be on one device; the kernels are measured on it.

    The model runs once on the inputs, forward and, if ``backward`` (None: if it is in training mode),
    backward from the sum of its floating-point results, which may be in lists, tuples and dictionaries. Its buffers,
    such as running statistics, its parameters' gradients and the states of PyTorch's random generators are afterwards
    what they were before. The
    winners are stored in the file that ``kiln tune`` keeps beside the kernel cache, so later processes
    use them, too. time_limit: seconds after which no further problem is started; 0: no limit.
    arguments: further flags of ``kiln tune``. Returns the table that it prints.
    """
    if backward is None:
        backward = model.training
    with tempfile.TemporaryDirectory() as folder:
        manifest = os.path.join(folder, "manifest")
        before = _uses()
        with record(manifest), _unchanged(model):
            with torch.set_grad_enabled(backward):
                results = model(*inputs)
            if backward:
                total = sum(t.sum() for t in _tensors_of(results) if t.is_floating_point() and t.requires_grad)
                wanted = [p for p in model.parameters() if p.requires_grad]
                if wanted and isinstance(total, torch.Tensor):
                    torch.autograd.grad(total, wanted, allow_unused=True)
        devices = {key[0] for key, (count, _) in _uses().items() if count > before.get(key, (0, {}))[0]}
        if len(devices) != 1:
            raise RuntimeError(f"the model's convolutions ran on {sorted(devices) or 'no device'}; expected one device")
        device = devices.pop().replace("cpu", "host")
        with open(manifest, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        # Plans of reductions and additions belong to bias gradients and biases, not to convolutions.
        text = [f"{line['command']} {line['problem']}\n" for line in lines if line["command"] == "conv"]
        with open(manifest, "w", encoding="utf-8") as file:
            file.writelines(text)
        limit = ["--time-limit", str(time_limit)] if time_limit else []
        table = _run_program("tune", "--batch", manifest, "--device", device, *limit, *arguments)
    _control.clear()
    return table
