"""Normalizations and moments of kiln.torch beside PyTorch's own."""

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


def rows_of(kind, x, w, b, r, activation, own, channels_first=False):
    """A normalization by rows, by Kiln or by PyTorch."""
    act = dict(residual=r, activation=activation)
    finish = lambda y: ACTS[activation](y if r is None else y + r)
    if kind == "group":
        call = kiln.torch.group_norm_act_add if own else F.group_norm
        return call(x, 2, w, b, 1e-3, **act) if own else finish(call(x, 2, w, b, 1e-3))
    if kind == "instance":
        if own:
            return kiln.torch.instance_norm_act_add(x, w, b, 1e-3, **act)
        return finish(F.instance_norm(x, weight=w, bias=b, eps=1e-3))
    shape = (x.shape[1] if channels_first else x.shape[-1],)
    if own and kind == "layer":
        return kiln.torch.layer_norm_act_add(x, shape, w, b, 1e-3, channels_first=channels_first, **act)
    if own:
        return kiln.torch.rms_norm_act_add(x, shape, w, 1e-3, bias=b, channels_first=channels_first, **act)
    moved = x.movedim(1, -1) if channels_first else x
    y = F.layer_norm(moved, shape, w, b, 1e-3) if kind == "layer" else F.rms_norm(moved, shape, w, 1e-3)
    if kind == "rms" and b is not None:
        y = y + b
    return finish(y.movedim(-1, 1) if channels_first else y)


class Rows(unittest.TestCase):
    def check(self, kind, dtype, sizes, activation="silu", last=False, parameters=2, residual=True, channels_first=False,
              parameter_type=None):
        x, r, _, _ = operands(dtype, sizes, last)
        numbers = sizes[1] if channels_first or kind in ("group", "instance") else sizes[-1]
        wide = parameter_type or torch.promote_types(dtype, torch.float32)
        w, b = ((torch.rand(numbers) + 0.5).to(wide), torch.randn(numbers).to(wide))
        given = [x, r if residual else None, w if parameters > 0 else None, b if parameters > 1 else None]
        results = []
        for own in (True, False):
            cast = (lambda t: t) if own else (lambda t: t.double())
            leaves = [None if t is None else cast(t).clone(memory_format=torch.preserve_format).requires_grad_() for t in given]
            y = rows_of(kind, leaves[0], leaves[2], leaves[3], leaves[1], activation, own, channels_first)
            if own:
                strides = y
            gradient = torch.linspace(-1, 1.5, y.numel(), dtype=torch.float64).view(y.shape).to(dtype).to(y.dtype)
            results.append([y.detach(), *torch.autograd.grad(y, [t for t in leaves if t is not None], gradient)])
        if last and (channels_first or kind in ("group", "instance")):
            assert_same_strides(self, strides, x)
        self.assertEqual(strides.dtype, dtype)
        for got, want in zip(*results):
            error = (got.double() - want).abs().max() / want.abs().max().clamp(min=1e-2)
            self.assertLessEqual(error.item(), 4 * TOLERANCE[got.dtype], (kind, dtype, sizes, activation))

    def test_types_layouts_and_dimensions(self):
        _, native = counts()
        self.check("group", torch.float16, (3, 6, 4, 2), last=True)
        self.check("group", torch.float32, (2, 4, 5), "relu", residual=False)
        self.check("group", torch.bfloat16, (2, 20, 3, 3), residual=False, parameter_type=torch.bfloat16)
        self.check("instance", torch.float64, (2, 3, 4, 3), parameters=0)
        self.check("instance", torch.float32, (2, 4, 3, 2, 4), "hard_swish", last=True, residual=False)
        self.check("layer", torch.float32, (2, 3, 5, 8), "identity", residual=False)
        self.check("layer", torch.float16, (2, 8, 3, 4), "identity", channels_first=True, parameters=1)
        self.check("layer", torch.float32, (2, 8, 3, 4), "relu", last=True, channels_first=True)
        self.check("rms", torch.bfloat16, (2, 3, 40), "identity", parameters=1, residual=False)
        self.check("rms", torch.float32, (2, 6, 2, 3, 4), channels_first=True, residual=False)
        self.assertEqual(counts()[1], native)  # none was PyTorch's

    @full_only
    def test_everything(self):
        for dtype in TOLERANCE:
            for sizes in ((4, 6), (2, 4, 3), (2, 8, 3, 3), (2, 4, 2, 3, 2)):
                for kind in ("group", "instance", "layer", "rms"):
                    for parameters in (0, 1, 2):
                        for channels_first in (False, True):
                            if kind == "instance" and len(sizes) < 3:
                                continue
                            self.check(kind, dtype, sizes, last=len(sizes) > 3 and parameters > 1,
                                       parameters=parameters, channels_first=channels_first)

    def test_results_of_several_dimensions_and_default_epsilon(self):
        x, w, b = torch.randn(3, 4, 5, 6) * 1e-3, torch.rand(5, 6), torch.randn(5, 6)
        assert_close(self, kiln.torch.layer_norm_act_add(x, (5, 6), w, b), F.layer_norm(x, (5, 6), w, b))
        assert_close(self, kiln.torch.layer_norm_act_add(x, [5, 6], None, b), F.layer_norm(x, (5, 6), None, b))
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            small = x.to(dtype)
            assert_close(self, kiln.torch.rms_norm_act_add(small, 6), F.rms_norm(small, (6,)))

    def test_gradients_of_gradients(self):
        make = lambda *sizes: torch.randn(*sizes, dtype=torch.float64, requires_grad=True)
        x, w, b, r = make(2, 4, 3), make(4), make(4), make(2, 4, 3)
        for kind in ("group", "instance", "layer", "rms"):
            function = lambda x, w, b, r: rows_of(kind, x, w, b, r, "silu", True, channels_first=True)
            self.assertTrue(gradcheck(function, (x, w, b, r)) and gradgradcheck(function, (x, w, b, r)))

    def test_values_that_are_not_numbers(self):
        for kind in ("group", "instance", "layer", "rms"):
            for bad in (float("nan"), float("inf")):
                x = torch.randn(2, 4, 2, 3)
                x[0, 1, 0, 0] = bad
                got, want = (rows_of(kind, x, None, None, None, "identity", own) for own in (True, False))
                self.assertEqual(torch.isnan(got).tolist(), torch.isnan(want).tolist())
                assert_close(self, got[1], want[1])

    def test_operators_under_torch_compile(self):
        ops = torch.ops.kiln
        x = torch.randn(2, 4, 3, 2).to(memory_format=torch.channels_last).requires_grad_()
        w, b, r = torch.rand(4, requires_grad=True), torch.randn(4, requires_grad=True), torch.randn(2, 4, 3, 2, requires_grad=True)

        def step(x, w, b, r):
            y = kiln.torch.group_norm_act_add(x, 2, w, b, residual=r, activation="silu")
            z = kiln.torch.rms_norm_act_add(y, 4, w, 1e-6, channels_first=True)
            return (z * kiln.torch.layer_norm_act_add(y, 2)).sum()

        results = []
        for function in (step, torch.compile(step, backend="aot_eager", fullgraph=True)):
            y = function(x, w, b, r)
            results.append([y.detach(), *torch.autograd.grad(y, (x, w, b, r))])
        for got, want in zip(*results):
            assert_close(self, got, want)
        if FULL:
            opcheck(ops.normalize_rows.default, (x, 2, True, w, b, r, 1e-5, 709, 0.0))
            opcheck(ops.normalize_rows.default, (x, 0, False, w, None, None, 1e-5, 700, 0.0))

    def test_what_is_composed_of_pytorchs(self):
        x = torch.randn(3, 4, 2, 2)
        for kind in ("group", "instance", "layer", "rms"):
            both = [lambda x, own=own: rows_of(kind, x, None, None, None, "relu", own) for own in (True, False)]
            for got, want in zip(*(torch.func.jvp(f, (x,), (x.flip(0),)) for f in both)):
                assert_close(self, got, want)
        one = torch.randn(3, 4, 1, 1)  # a residual that is broadcast
        got = kiln.torch.group_norm_act_add(x, 2, residual=one, activation="relu")
        assert_close(self, got, F.relu(F.group_norm(x, 2) + one))
        deep = torch.randn(2, 4, 2, 1, 2, 2)
        assert_close(self, kiln.torch.group_norm_act_add(deep, 2), F.group_norm(deep, 2))

    def test_words_of_errors(self):
        x = torch.randn(2, 4, 3, 3)
        group, layer = kiln.torch.group_norm_act_add, kiln.torch.layer_norm_act_add
        for error, text, call in (
            (ValueError, "activation is 'swish'; expected one of", lambda: group(x, 2, activation="swish")),
            (ValueError, "more than 1 value per channel", lambda: group(torch.randn(1, 4), 4)),
            (ValueError, "more than 1 spatial element", lambda: kiln.torch.instance_norm_act_add(x[:, :, :1, :1])),
            (RuntimeError, "divisible by", lambda: group(x, 3)),
            (RuntimeError, "Expected weight to be a vector of size", lambda: group(x, 2, torch.ones(3))),
            (RuntimeError, "normalized_shape", lambda: layer(x, 5)),
            (RuntimeError, "normalized_shape", lambda: layer(x, 5, channels_first=True)),
        ):
            with self.assertRaisesRegex(error, text):
                call()


if __name__ == "__main__":
    unittest.main()
