"""fuse_training(), unfuse() and fused_blocks()."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple, TypeVar

from torch import nn

from .._fuse._kinds import base_of
from .._fuse._tracing import is_plain
from ._blocks import NORMALIZATIONS
from ._image_norms import is_image_norm
from ._model import graphs_of, is_fused, prepare, set_fused

Model = TypeVar("Model", bound=nn.Module)


def _is_torchs(module: nn.Module) -> bool:
    """Whether the module is one of PyTorch's that calls no other, or no module that is called."""
    return type(module).__module__.startswith("torch.nn.modules") and not isinstance(module, nn.Sequential)


def _fuse(module: nn.Module, recompute: bool) -> None:
    """Fuses the module or, where its forward cannot be recorded, the modules inside of it."""
    inside = list(module.children())
    if not _is_torchs(module) and any(isinstance(part, NORMALIZATIONS) for part in module.modules()):
        set_fused(module, True, recompute)
        graphs, name = graphs_of(module), prepare(module)
        if name in graphs.functions:  # what it calls as it is may have blocks inside
            inside = [module.get_submodule(path) for path in dict.fromkeys(graphs.leaves[name])]
        else:
            set_fused(module, False)
            module.__dict__["_kiln_why"] = graphs.why.get(name, "")
    for part in inside:
        if not is_fused(part):
            _fuse(part, recompute)


def unfuse(model: Model) -> Model:
    """Takes back what ``fuse_training()`` did, in place. Returns the model."""
    for module in model.modules():
        module.__dict__.pop("_kiln_why", None)
        set_fused(module, False)
    return model


def fuse_training(model: Model, *, recompute: bool = False) -> Model:
    """Lets Kiln compute the model's blocks of convolution, normalization, addition and activation, in training and in
    evaluation. In place; returns the model.

    A block is a batch normalization with the convolution before it, if its result goes nowhere else, and with the
    addition and the activation after it. In training the convolution's kernel makes the statistics where it can, and
    one pass normalizes, adds and activates; the gradient takes two, the first of which the next block's convolution
    makes with its own data gradient where it can. Poolings beside blocks are Kiln's, too.

    recompute: a block's result that goes into the next block's convolution alone is not kept for the gradient, which
    computes it again from the convolution's result: less memory, the same bits, one more pass over it.

    Modules, parameters and buffers stay the same objects in the same places, so state_dict, optimizers, hooks on
    parameters, ``.to()``, ``train()`` and ``eval()``, copies and pickles are as before; the model's class becomes a
    subclass of itself. torch.fx records the model's forward, or that of modules inside where it cannot. A module with
    hooks or parametrizations is called as it is. Whatever else the forward reads from attributes, it reads when it is
    recorded: in the first call in each state of training and evaluation. Calling ``fuse_training()`` again records anew.

    Kiln computes the blocks whether ``kiln.torch.enable()`` was called or not; other convolutions, and gradients of
    all, as ``enable()`` says and as the functions of kiln.torch do. ``fused_blocks(model)`` says what was fused, and
    why other norms were not. ``unfuse(model)`` takes it back.
    """
    unfuse(model)
    _fuse(model, recompute)
    return model


class Blocks:
    """The blocks of a model: ``rows`` has a dict for each norm, ``str()`` is a table."""

    def __init__(self, rows: List[Dict[str, str]]) -> None:
        self.rows = rows

    @property
    def fused(self) -> int:
        return sum(not row["why"] for row in self.rows)

    def __str__(self) -> str:
        lines = [("norm", "convolution", "carries", "why PyTorch's")]
        lines += [(row["norm"], row["conv"], row["carries"], row["why"]) for row in self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        table = "\n".join("  ".join(c.ljust(w) for c, w in zip(line, widths)).rstrip() for line in lines)
        return f"{table}\n{self.fused} of {len(self.rows)} norms are in blocks"

    __repr__ = __str__


def _blocks(model: nn.Module) -> Iterator[Tuple[str, Dict[str, str]]]:
    for path, module in model.named_modules():
        if is_fused(module):
            name = prepare(module)
            prefix = path + "." if path else ""
            for block in graphs_of(module).blocks.get(name, ()):
                yield prefix + block.norm, {
                    "norm": prefix + block.norm,
                    "conv": "" if block.conv is None else prefix + block.conv,
                    "carries": block.carries(),
                    "why": "",
                }


def _why(model: nn.Module, path: str, module: nn.Module) -> str:
    if base_of(module) is None and not is_image_norm(module):
        tracks = " with running statistics" if getattr(module, "running_mean", None) is not None else ""
        return f"{type(module).__name__}{tracks} is not served"
    if not is_plain(module):
        return "it has hooks, parametrizations or a forward of its own"
    parts = path.split(".")
    for length in range(len(parts) - 1, -1, -1):  # the innermost module around it
        around = model.get_submodule(".".join(parts[:length]))
        if around.__dict__.get("_kiln_why"):
            return f"{'.'.join(parts[:length]) or 'the model'}: {around.__dict__['_kiln_why']}"
        if not is_plain(around) and length > 0:
            return f"{'.'.join(parts[:length])} has hooks, parametrizations or a forward of its own"
    return "the model's forward does not call it" if is_fused(model) else "no module that calls it is fused"


def fused_blocks(model: nn.Module) -> Blocks:
    """Which norms of the model are in blocks in its present state, what each block carries, and why others are
    PyTorch's own."""
    found = dict(_blocks(model))
    rows = []
    for path, module in model.named_modules():
        if path in found:
            rows.append(found[path])
        elif isinstance(module, NORMALIZATIONS):
            rows.append({"norm": path, "conv": "", "carries": "", "why": _why(model, path, module)})
    return Blocks(rows)
