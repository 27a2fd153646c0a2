#!/usr/bin/env python3
"""Compares fuse() of generated models (models.py) with the models in evaluation mode.

    tests/torch/python/differential.py [MODELS] [FIRST-SEED]     default 10000, 0

For each model: results, what is written into its argument and its buffers, the parameters' names, the result in f64
where some weights are converted, under autocast where that is drawn, and the copy that is fused or traced again.
Needs PyTorch and no GPU. Prints a line for each fault and exits with 1 if there is one. test_fuse.py runs some.
"""

import pathlib
import random
import sys
import time
import warnings

here = pathlib.Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(here), str(here.parents[2] / "src" / "python")]

import models  # noqa: E402
import torch  # noqa: E402
from torch import fx  # noqa: E402

import kiln.torch  # noqa: E402
from kiln.torch._fuse import FusedConvolution  # noqa: E402


def observed(model, x, autocast):
    """Results and argument after a call, and the buffers; an exception's type, if it raises one."""
    torch.manual_seed(0)
    x = x.clone(memory_format=torch.preserve_format)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        try:
            return list(model(x))
        except (RuntimeError, ValueError, TypeError) as error:
            return str(error).splitlines()[:1] or [repr(error)]


def differences(got, want, tolerance):
    """Sentences about results that differ."""
    if len(got) != len(want) or any(isinstance(a, str) != isinstance(b, str) for a, b in zip(got, want)):
        yield f"gives {[a if isinstance(a, str) else tuple(a.shape) for a in got]}, "\
              f"not {[a if isinstance(a, str) else tuple(a.shape) for a in want]}"
        return
    for i, (a, b) in enumerate(zip(got, want)):
        if isinstance(a, str):
            continue
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            yield f"result {i} is {tuple(a.shape)} {a.dtype}, not {tuple(b.shape)} {b.dtype}"
            continue
        finite = torch.isfinite(b.double())
        scale = max(b.double()[finite].abs().max().item(), 1e-2) if finite.any() else 1.0
        error = (a.double() - b.double())[finite].abs().max().item() / scale if finite.any() else 0.0
        if not error <= tolerance or not torch.equal(torch.isfinite(a.double()), finite):
            yield f"result {i} differs by {error:.1e} of its largest"


def adds_inside(fused):
    """Whether a block that is called as a whole adds in place. torch.fx records that as an addition whose result has
    the wider type, in a trace of the model itself, too; under autocast the two types differ."""
    called = [fused.get_submodule(node.target) for node in fused.graph.nodes if node.op == "call_module"]
    return any(isinstance(module, models.Block) and module.skips for module in called)


def check(seed):
    """Sentences about faults of the fused copy of one model, and how many fused convolutions it has."""
    chance = random.Random(~seed)
    model, x = models.generate(seed)
    autocast = chance.random() < 0.15
    before = {name: value.clone() for name, value in model.state_dict().items()}
    reference = models.generate(seed)[0]
    faults = []
    if chance.random() < 0.15:
        model, reference, x = model.double(), reference.double(), x.double()
    fused = kiln.torch.fuse(model)
    count = sum(isinstance(module, FusedConvolution) for module in fused.modules())
    tolerance = 6e-2 if autocast else 1e-10 if x.dtype == torch.float64 else 2e-4
    want = observed(reference, x, autocast)
    same = lambda one, what: faults.extend(f"{what}: {text}" for text in differences(observed(one, x, autocast), want, tolerance))
    same(fused, "fused")
    want = observed(reference, x, autocast)  # again: hooks may have changed what the model keeps
    again = chance.random()
    if again < 0.15:
        same(kiln.torch.fuse(fused), "fused again")
    elif again < 0.25:
        try:
            twice = fx.symbolic_trace(fused)
        except Exception as error:  # what torch.fx says of the model itself counts
            try:
                fx.symbolic_trace(model)
                faults.append(f"traced by torch.fx: {error}")
            except Exception:
                pass
        else:
            if not any(fused._forward_hooks) and not (autocast and adds_inside(fused)):
                same(twice, "traced by torch.fx")
    elif again < 0.35 and x.dtype == torch.float32:
        x, tolerance = x.double(), 1e-5  # norms were folded in f32
        for module in (fused, reference):
            module.double()
        want = observed(reference, x, autocast)
        same(fused, "converted to f64")
        return faults, count, model
    for name, value in model.state_dict().items():
        computed = name.endswith((".weight_u", ".weight_v", "._u", "._v", "table"))
        if not computed and not torch.equal(value.to(before[name].dtype), before[name]):
            faults.append(f"fuse() changed {name} of the model")
    return faults, count, model


def run(first, count, seconds=float("inf"), check=check):
    """Checks so many models, at most so long. Returns models, what was fused (here convolutions), and faults, a text each."""
    faults, fused, done, start = [], 0, 0, time.monotonic()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + count):
            if time.monotonic() - start > seconds:
                break
            try:
                found, more, model = check(seed)
            except Exception as error:
                found, more, model = [f"raises {type(error).__name__}: {error}"], 0, models.generate(seed)[0]
            done, fused = done + 1, fused + more
            faults += [f"model {seed}: {text}\n{model.text()}" for text in found]
    return done, fused, faults


def main(check=check, models=10000, step=100, what="fused convolutions") -> int:
    """Checks as many models as the program's arguments say, or ``models``, and tells each ten times ``step`` of them."""
    count, first = [int(a) for a in sys.argv[1:]] + [models, 0][len(sys.argv) - 1 :]
    faulty, total, fused = 0, 0, 0
    for begin in range(first, first + count, step):
        done, more, faults = run(begin, min(step, first + count - begin), check=check)
        total, fused, faulty = total + done, fused + more, faulty + len(faults)
        print("\n\n".join(faults) + ("\n" if faults else ""), end="", flush=True)
        if begin // step % 10 == 9:
            print(f"{total} models, {fused} {what}, {faulty} faults", flush=True)
    print(f"{total} models, {fused} {what}, {faulty} faults")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
