"""PyTorch's own samples of the six convolutions, forward and backward, beside native."""

import unittest

import torch
from support import FULL, assert_close, assert_same_strides, counts, full_only, on_kiln
import kiln.torch
from torch.testing._internal.common_methods_invocations import op_db

NAMES = [f"nn.functional.conv{kind}{n}d" for kind in ("", "_transpose") for n in (1, 2, 3)]
OPS = {op.name: op for op in op_db if op.name in NAMES}


def gradients(op, sample):
    y = op(sample.input, *sample.args, **sample.kwargs)
    given = [sample.input, *sample.args, *sample.kwargs.values()]
    wanted = [t for t in given if isinstance(t, torch.Tensor) and t.requires_grad]
    if not wanted:
        return [y.detach()]
    return [y.detach(), *torch.autograd.grad((y + y * y / 8).sum(), wanted, allow_unused=True)]


class Samples(unittest.TestCase):
    def check(self, name, dtype, limit=None):
        op = OPS[name]
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=True))
        if limit:
            samples = samples[:: max(1, len(samples) // limit)][:limit]
        native = [gradients(op, sample) for sample in samples]
        with on_kiln("background"):  # compiles all kernels at once
            for sample in samples:
                gradients(op, sample)
            kiln.torch.wait()
        with on_kiln():
            for index, (sample, want) in enumerate(zip(samples, native)):
                got = gradients(op, sample)
                for which, (a, b) in enumerate(zip(got, want)):
                    what = f"{name} {dtype} sample {index} result {which}: {sample}"
                    assert_close(self, a, b, what)
                    if dtype == torch.float64 and which == 0:
                        assert_same_strides(self, a, b, what)
            served, natively = counts()
        self.assertGreater(served, natively)
        print(f"{name} {dtype}: {len(samples)} samples, {served} results by Kiln, {natively} native")

    def test_some(self):
        for name, limit in zip(NAMES, (4, 4, 2, 4, 4, 2)):
            with self.subTest(name):
                self.check(name, torch.float64, limit)

    @full_only
    def test_all(self):
        for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
            for name in NAMES:
                with self.subTest(f"{name} {dtype}"):
                    self.check(name, dtype)


if __name__ == "__main__":
    print("all samples" if FULL else "twenty samples")
    unittest.main()
