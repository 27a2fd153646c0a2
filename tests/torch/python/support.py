"""What the tests of kiln.torch share. They need PyTorch, and no GPU: the operators are registered for
the CPU, and Kiln's host device computes.

KILN_TEST_FULL=1 runs all of it; without, what takes seconds.
"""

import contextlib
import os
import unittest

import torch

import kiln.torch

FULL = os.environ.get("KILN_TEST_FULL") == "1"
full_only = unittest.skipUnless(FULL, "KILN_TEST_FULL=1 runs it")

# Of a sum of a few hundred products, relative to the largest result.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


@contextlib.contextmanager
def on_kiln(policy="wait"):
    """Convolutions on the CPU are Kiln's, all counts begin at 0."""
    kiln.torch.clear()
    with kiln.torch.enabled(policy, devices="cpu"):
        yield
    kiln.torch.set_policy("wait")


def counts():
    report = kiln.torch.report()
    return report.served, report.native


def assert_close(test, got, want, what=""):
    """The same sizes, strides and type, and values within the type's tolerance."""
    test.assertEqual(got is None, want is None, what)
    if want is None:
        return
    test.assertEqual((got.shape, got.dtype), (want.shape, want.dtype), what)
    if want.numel() == 0:
        return
    largest = torch.finfo(want.dtype).max  # which stands for what overflows in f16
    got, want = (torch.nan_to_num(t, nan=float("nan"), posinf=largest, neginf=-largest) for t in (got, want))
    scale = max(want.abs().max().item(), 1e-3)
    error = (got.double() - want.double()).abs().max().item() / scale
    test.assertLessEqual(error, TOLERANCE[want.dtype], what)


def assert_same_strides(test, got, want, what=""):
    """The same strides, but for dimensions of size 1, whose strides say nothing."""
    kept = [i for i in range(want.dim()) if want.shape[i] != 1]
    test.assertEqual([got.stride(i) for i in kept], [want.stride(i) for i in kept], what)


def run(function, *tensors):
    """The results of a function and the gradients of all tensors that want one."""
    inputs = [
        t.detach().clone(memory_format=torch.preserve_format).requires_grad_(t.requires_grad)
        for t in tensors
    ]
    result = function(*inputs)
    wanted = [t for t in inputs if t.requires_grad]
    if not wanted:
        return [result.detach()]
    weight = torch.linspace(0.5, 1.5, result.numel(), dtype=result.dtype).view(result.shape)
    return [result.detach(), *torch.autograd.grad((result * weight).sum(), wanted)]
