#!/usr/bin/env python3
"""Compares fuse_training() of generated models (models.py) with the models as they are.

    tests/torch/python/differential_training.py [MODELS] [FIRST-SEED]     default 500, 0

For each model: results, what is written into its argument, gradients and buffers after calls in training, in evaluation,
and in training with some norms frozen; also after unfuse(). Some norms have another momentum, or no running statistics.
Needs PyTorch and no GPU. Prints a line for each fault and exits with 1 if there is one. test_fuse_training.py runs some.
"""

import functools
import pathlib
import random
import sys

here = pathlib.Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(here), str(here.parents[2] / "src" / "python")]

import differential  # noqa: E402
import models  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402

import kiln.torch  # noqa: E402

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def generate(seed):
    """A model whose norms are of more kinds, an argument for it, and how far results may be apart."""
    chance = random.Random(~seed)
    model, x = models.generate(seed)
    for norm in [module for module in model.modules() if isinstance(module, NORMS)]:
        if chance.random() < 0.1:
            norm.momentum = None
        if chance.random() < 0.05:
            norm.track_running_stats, norm.running_mean, norm.running_var = False, None, None
    if chance.random() < 0.7:
        return model.double(), x.double(), 1e-8
    return model, x, 5e-3


def freeze(model, seed):
    chance = random.Random(seed)
    for norm in [module for module in model.modules() if isinstance(module, NORMS)]:
        if chance.random() < 0.5:
            norm.eval().requires_grad_(chance.random() < 0.5)


def observed(model, x):
    """A name and a tensor for each thing that a call leaves; the exception's type, if it raises one."""
    torch.manual_seed(0)
    given = x.clone(memory_format=torch.preserve_format)
    found = {}
    try:
        results = model(given)
        found.update({f"result {i}": t.detach() for i, t in enumerate(results)})
        total = sum(t.square().mean() for t in results if t.requires_grad)
        if isinstance(total, torch.Tensor):
            wanted = {name: p for name, p in model.named_parameters() if p.requires_grad}
            gradients = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
            found.update({f"gradient of {name}": g for name, g in zip(wanted, gradients)})
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        found["exception"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    found["argument"] = given
    found.update({name: b.clone() for name, b in model.named_buffers()})
    return found


def differences(got, want, tolerance):
    """Sentences about what differs."""
    if ("exception" in got) != ("exception" in want):
        yield f"{got.get('exception', 'raises nothing')}, PyTorch: {want.get('exception', 'raises nothing')}"
        return
    for name, b in want.items():
        a = got.get(name)
        if isinstance(b, str) or (a is None and b is None):
            continue
        if a is None or b is None or (a.shape, a.dtype) != (b.shape, b.dtype):
            yield f"{name} is {None if a is None else (tuple(a.shape), a.dtype)}, not {None if b is None else (tuple(b.shape), b.dtype)}"
            continue
        a, b = a.double(), b.double()
        finite = torch.isfinite(b)
        scale = max(b[finite].abs().max().item(), 1e-2) if finite.any() else 1.0
        error = (a - b)[finite].abs().max().item() / scale if finite.any() else 0.0
        if not error <= tolerance or not torch.equal(torch.isfinite(a), finite):
            yield f"{name} differs by {error:.1e} of its largest"


def check(seed):
    """Sentences about faults of one model, and how many blocks it has."""
    (own, x, tolerance), fused = generate(seed), generate(seed)[0]
    faults = []

    def compare(what):
        got, want = observed(fused, x), observed(own, x)
        if not (writes_outside and "write to a copy of it" in got.get("exception", "")):
            faults.extend(f"{what}: {text}" for text in differences(got, want, tolerance))

    # The graph of a block that is called as a whole does not show that the model writes to what the block adds later.
    hooked = lambda module: module._forward_hooks or module._forward_pre_hooks
    writes_outside = any(isinstance(m, models.Block) and m.skips and hooked(m) for m in own.modules())
    kiln.torch.fuse_training(fused, recompute=seed % 2 == 1)
    own.train(), fused.train()
    blocks = kiln.torch.fused_blocks(fused).fused
    compare("training")
    compare("training again")
    own.eval(), fused.eval()
    compare("evaluation")
    for model in (own, fused):
        freeze(model.train(), seed)
    compare("some norms frozen")
    kiln.torch.unfuse(fused)
    compare("unfused")
    return faults, blocks, own


run = functools.partial(differential.run, check=check)


if __name__ == "__main__":
    sys.exit(differential.main(check, 500, 10, "blocks"))
