"""Batch normalization and moments of kiln.torch beside PyTorch's own."""

import unittest

import torch
import torch.nn.functional as F
from support import FULL, TOLERANCE, assert_close, assert_same_strides, counts, full_only
from torch.autograd import gradcheck, gradgradcheck
from torch.library import opcheck

import kiln.torch

ACTS = {"identity": lambda x: x, "relu": F.relu, "silu": F.silu, "clipped_relu": F.relu6, "hard_swish": F.hardswish}


def operands(dtype, sizes, last=False):
    """x, residual, weight and bias."""
    wide = torch.promote_types(dtype, torch.float32)
    x, residual = (torch.randn(sizes).to(dtype) * 2 + 3, torch.randn(sizes).to(dtype))
    if last:
        x = x.to(memory_format=torch.channels_last if len(sizes) == 4 else torch.channels_last_3d)
    return x, residual, torch.rand(sizes[1], dtype=wide) + 0.5, torch.randn(sizes[1], dtype=wide)


class BatchNorm(unittest.TestCase):
    def check(self, dtype, sizes, training, activation, last=False, affine=True, running=True, residual=True):
        given = operands(dtype, sizes, last)
        wide = given[2].dtype
        statistics = [torch.randn(sizes[1], dtype=wide), torch.rand(sizes[1], dtype=wide) + 0.5] if running else [None, None]
        results = []
        for cast in (lambda t: t, lambda t: t.double()):
            leaves = [cast(t).clone(memory_format=torch.preserve_format).requires_grad_() for t in given]
            x, r, w, b = leaves
            mean, var = ([cast(t).clone() for t in statistics] if running else statistics)
            w, b = (w, b) if affine else (None, None)
            if cast(given[0]) is given[0]:
                y = kiln.torch.batch_norm_act_add(
                    x, mean, var, w, b, training, 0.3, 1e-3, residual=r if residual else None, activation=activation)
                strides = y
            else:
                y = F.batch_norm(x, mean, var, w, b, training, 0.3, 1e-3)
                y = ACTS[activation](y + r if residual else y)
            wanted = [t for t, has in zip(leaves, (True, residual, affine, affine)) if has]
            gradient = torch.linspace(-1, 1.5, y.numel(), dtype=torch.float64).view(y.shape).to(dtype).to(y.dtype)
            results.append([y.detach(), *torch.autograd.grad(y, wanted, gradient), *(t for t in (mean, var) if t is not None)])
        assert_same_strides(self, strides, given[0])
        for got, want in zip(*results):
            error = (got.double() - want).abs().max() / want.abs().max().clamp(min=1e-2)
            # Sums of gradients are of rounded summands.
            self.assertLessEqual(error.item(), 4 * TOLERANCE[dtype], (dtype, sizes, training, activation))

    def test_types_layouts_and_dimensions(self):
        _, native = counts()
        self.check(torch.float64, (3, 4, 3, 2), True, "silu")
        self.check(torch.float32, (3, 5, 4), True, "relu", residual=False)
        self.check(torch.float32, (4, 6), False, "identity", affine=False)
        self.check(torch.float16, (3, 8, 3, 2), True, "relu", last=True)
        self.check(torch.bfloat16, (2, 8, 2, 3, 2), False, "clipped_relu", last=True)
        self.check(torch.float32, (3, 4, 3, 2), True, "hard_swish", last=True, running=False, residual=False)
        self.assertEqual(counts()[1], native)  # none was PyTorch's

    @full_only
    def test_everything(self):
        for dtype in TOLERANCE:
            for sizes in ((4, 3), (2, 5, 3), (2, 8, 3, 3), (2, 3, 2, 3, 2)):
                for training in (True, False):
                    for activation in ACTS:
                        self.check(dtype, sizes, training, activation, last=len(sizes) > 3 and training)

    def test_gradients_of_gradients(self):
        make = lambda *sizes: torch.randn(*sizes, dtype=torch.float64, requires_grad=True)
        x, w, b, r = make(2, 2, 3, 2), make(2), make(2), make(2, 2, 3, 2)

        def of_parts(x, w, b, r):  # statistics are operands with gradients of their own
            variance, mean = torch.var_mean(x, [0, 2, 3], correction=0)
            return kiln.torch.norm_act_add(x, mean, variance * 12, w, b, r, activation="silu")

        whole = lambda x, w, b, r: kiln.torch.batch_norm_act_add(x, None, None, w, b, True, residual=r, activation="silu")
        for function in (of_parts, whole):
            self.assertTrue(gradcheck(function, (x, w, b, r)) and gradgradcheck(function, (x, w, b, r)))
        assert_close(self, of_parts(x, w, b, r).detach(), whole(x, w, b, r).detach())
        moments = lambda x, w: kiln.torch.conv_moments(x, w, padding=1)
        self.assertTrue(gradcheck(moments, (x, make(3, 2, 3, 3))) and gradgradcheck(moments, (x, make(3, 2, 3, 3))))

    def test_values_that_are_not_numbers(self):
        x = torch.randn(2, 3, 2, 2)
        x[0, 0, 0, 0], x[0, 1, 0, 0] = float("nan"), float("inf")
        got = kiln.torch.batch_norm_act_add(x, None, None, None, None, True, activation="relu")
        want = F.relu(F.batch_norm(x, None, None, None, None, True))
        self.assertEqual(torch.isnan(got).tolist(), torch.isnan(want).tolist())
        assert_close(self, got[:, 2], want[:, 2])

    def test_operators_under_torch_compile(self):
        ops = torch.ops.kiln
        x = torch.randn(2, 4, 3, 2).to(memory_format=torch.channels_last).requires_grad_()
        w, residual = torch.randn(4, 4, 3, 3, requires_grad=True), torch.randn(2, 4, 3, 2, requires_grad=True)
        statistics = lambda: (torch.zeros(4), torch.ones(4))
        def step(x, w, residual, mean, var):
            y, m, m2 = kiln.torch.conv_moments(x, w, padding=1)
            return kiln.torch.batch_norm_act_add(y, mean, var, None, None, True, residual=residual, activation="relu").sum() + (m * m2).sum()
        results = []
        for function in (step, torch.compile(step, backend="aot_eager", fullgraph=True)):
            kept = statistics()
            y = function(x, w, residual, *kept)
            results.append([y.detach(), *torch.autograd.grad(y, (x, w, residual)), *kept])
        for got, want in zip(*results):
            assert_close(self, got, want)
        if FULL:
            moments = ops.moments(x.detach())
            opcheck(ops.convolution_moments.default, (x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1))
            opcheck(ops.moments.default, (x,))
            opcheck(ops.combine_moments.default, (moments, *statistics(), 0.1, 1e-5))
            opcheck(ops.normalize.default, (x, *ops.combine_moments(moments, None, None, 0.1, 1e-5), None, None, residual, 702, 0.0, True))

    def test_what_is_composed_of_pytorchs(self):
        x, w = torch.randn(3, 4, 2, 2).half(), torch.rand(4).half()  # parameters of f16
        got = kiln.torch.batch_norm_act_add(x, None, None, w, w, True, activation="relu")
        assert_close(self, got, F.relu(F.batch_norm(x, None, None, w, w, True)))
        x = torch.randn(3, 4, 2, 2)
        composed = lambda x: F.relu(F.batch_norm(x, None, None, None, None, True))
        own = lambda x: kiln.torch.batch_norm_act_add(x, None, None, None, None, True, activation="relu")
        for got, want in zip(*(torch.func.jvp(f, (x,), (x.flip(0),)) for f in (own, composed))):
            assert_close(self, got, want)

    def test_moments_of_parts(self):
        x = torch.randn(6, 4, 3) * 2 + 5
        own, torchs = (torch.zeros(4), torch.ones(4)), (torch.zeros(4), torch.ones(4))
        parts = torch.stack([torch.ops.kiln.moments(part) for part in (x[:1], x[1:4], x[4:])])
        mean, invstd = torch.ops.kiln.combine_moments(parts, *own, 0.5, 1e-3)
        want = F.batch_norm(x, *torchs, None, None, True, 0.5, 1e-3)
        assert_close(self, kiln.torch.norm_act_add(x, mean, invstd=invstd), want)
        for got, want in zip(own, torchs):
            assert_close(self, got, want)

    def test_wrong_arguments(self):
        x, four = torch.randn(2, 4, 3, 3), torch.ones(4)
        norm, batch, conv = kiln.torch.norm_act_add, kiln.torch.batch_norm_act_add, kiln.torch.conv_moments
        for text, call in (
            ("more than 1 value per channel", lambda: batch(torch.randn(1, 4), None, None, training=True)),
            ("running_mean or running_var is None", lambda: batch(x, None, four)),
            (r"running_var has sizes \(3,\); expected \(4,\)", lambda: batch(x, four, torch.ones(3))),
            ("momentum is None; expected a number", lambda: batch(x, four, four, training=True, momentum=None)),
            ("neither m2 nor invstd given; expected one", lambda: norm(x, four)),
            (r"residual has sizes \(1, 4, 3, 3\).*expected those of input", lambda: norm(x, four, four, residual=x[:1])),
            ("activation is 'swish'; expected one of", lambda: norm(x, four, four, activation="swish")),
            ("input has 3 dimensions; expected 4", lambda: conv(x[0], torch.randn(2, 4, 1, 1))),
            ("weight has 2 dimensions; expected 3, 4 or 5", lambda: conv(x, torch.randn(2, 4))),
        ):
            with self.assertRaisesRegex(ValueError, text):
                call()


if __name__ == "__main__":
    unittest.main()
