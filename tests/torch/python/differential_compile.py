#!/usr/bin/env python3
"""Compares generated models (models.py), compiled with the pass of compile_pass(), with the models as they are.

    tests/torch/python/differential_compile.py [MODELS] [FIRST-SEED]     default 1000, 0

Graphs are those that inductor's passes get, with its decompositions, but they are executed as they are, so that nothing
is compiled to C++. For each model: results, in evaluation mode, at times in f64 or under autocast; and what is written
into its argument. Needs PyTorch and no GPU. Prints a line for each fault and exits with 1 if there is one.
test_compile_pass.py runs some.
"""

import pathlib
import random
import sys

here = pathlib.Path(__file__).resolve().parent
if __name__ == "__main__":
    sys.path[:0] = [str(here), str(here.parents[2] / "src" / "python")]

import differential  # noqa: E402
import models  # noqa: E402
import torch  # noqa: E402
from functorch.compile import make_boxed_func  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch._inductor.decomposition import select_decomp_table  # noqa: E402

from kiln.torch import _operators  # noqa: E402
from kiln.torch._compile import _rewrite  # noqa: E402


def check(seed):
    """Sentences about faults of one compiled model, and what its convolutions carry, all together."""
    _operators.register()
    chance, carried = random.Random(~seed), []
    (model, x), (reference, _) = models.generate(seed), models.generate(seed)
    autocast = chance.random() < 0.15
    if chance.random() < 0.15:
        model, reference, x = model.double(), reference.double(), x.double()

    def rewritten(gm, inputs):
        carried.extend(carries for _, carries in _rewrite.rewrite(gm.graph, "cpu"))
        gm.recompile()
        return make_boxed_func(gm)

    torch._dynamo.reset()
    backend = aot_autograd(fw_compiler=rewritten, inference_compiler=rewritten, decompositions=select_decomp_table())
    compiled = torch.compile(model, backend=backend)
    want = differential.observed(reference, x, autocast)
    tolerance = 6e-2 if autocast else 1e-10 if x.dtype == torch.float64 else 2e-4
    faults = list(differential.differences(differential.observed(compiled, x, autocast), want, tolerance))
    torch._dynamo.reset()
    return faults, sum(bool(carries) and carries != "bias" for carries in carried), model


def run(first, count, seconds=float("inf")):
    return differential.run(first, count, seconds, check)


if __name__ == "__main__":
    sys.exit(differential.main(check, 1000, 100, "convolutions with what follows them"))
