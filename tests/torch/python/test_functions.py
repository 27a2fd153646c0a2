"""The functions called by name, the operators below them, and fuse()."""

import unittest

import numpy
import torch
import torch.nn.functional as F
from support import assert_close, assert_same_strides, counts, full_only, on_kiln, run
from torch import nn

import kiln.torch
from kiln.torch._activations import ACTIVATIONS


def double(*sizes):
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


class Functions(unittest.TestCase):
    def setUp(self):
        kiln.torch.clear()
        kiln.torch.set_policy("wait")

    def check(self, ours, theirs, *tensors):
        for got, want in zip(run(ours, *tensors), run(theirs, *tensors)):
            assert_close(self, got, want)
            assert_same_strides(self, got, want)

    def test_they_are_pytorchs_without_enable(self):
        self.assertFalse(kiln.torch.is_enabled("cpu"))
        x, w, b = double(2, 4, 5, 6), double(6, 2, 3, 3), double(6)
        arguments = dict(stride=2, padding=(1, 0), groups=2)
        self.check(
            lambda *t: kiln.torch.conv2d(*t, **arguments), lambda *t: F.conv2d(*t, **arguments), x, w, b
        )
        self.assertEqual(counts(), (4, 0))
        w = double(4, 3, 3, 3)
        arguments = dict(stride=2, output_padding=1, groups=2)
        self.check(
            lambda *t: kiln.torch.conv_transpose2d(*t, **arguments),
            lambda *t: F.conv_transpose2d(*t, **arguments),
            x, w, b,
        )
        self.assertEqual(counts()[1], 0)

    def test_one_and_three_dimensions_and_no_batch(self):
        self.check(kiln.torch.conv1d, F.conv1d, double(2, 3, 7), double(4, 3, 3), double(4))
        self.check(kiln.torch.conv2d, F.conv2d, double(3, 5, 5), double(4, 3, 3, 3), double(4))
        self.check(kiln.torch.conv3d, F.conv3d, double(1, 2, 4, 4, 4), double(3, 2, 2, 2, 2), double(3))

    def test_residual_and_activation_are_in_the_same_call(self):
        x, w, b, r = double(2, 3, 6, 6), double(4, 3, 3, 3), double(4), double(2, 4, 6, 6)
        self.check(
            lambda x, w, b, r: kiln.torch.conv2d(x, w, b, padding=1, residual=r, activation="relu"),
            lambda x, w, b, r: F.relu(F.conv2d(x, w, b, padding=1) + r),
            x, w, b, r,
        )
        forward = [row for row in kiln.torch.report().rows if row["pass"] == "forward"]
        self.assertEqual([(row["served"], row["native"]) for row in forward], [(1, 0)])

    @full_only
    def test_every_activation_and_its_gradients(self):
        x, w, b = double(1, 2, 4, 4), double(2, 2, 3, 3), double(2)
        for name, activation in ACTIVATIONS.items():
            c = 0.7 if activation.coefficient is not None else None
            ours = lambda *t: kiln.torch.conv2d(*t, activation=name, coefficient=c)
            theirs = lambda *t: activation.apply(F.conv2d(*t), c)
            with self.subTest(name):
                self.check(ours, theirs, x, w, b)
                self.assertTrue(torch.autograd.gradcheck(ours, (x, w, b)))
                self.assertTrue(torch.autograd.gradgradcheck(ours, (x, w, b)))

    def test_gradients_against_differences(self):
        x, w, b, r = double(1, 2, 3, 3), double(2, 2, 2, 2), double(2), double(1, 2, 2, 2)
        for name in ("identity", "silu"):
            function = lambda x, w, b, r: kiln.torch.conv2d(x, w, b, residual=r, activation=name)
            self.assertTrue(torch.autograd.gradcheck(function, (x, w, b, r), fast_mode=True))
            self.assertTrue(torch.autograd.gradgradcheck(function, (x, w, b, r), fast_mode=True))

    def test_operators_are_sound(self):
        kiln.torch.conv2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 1, 1))
        x, w, b, r = double(2, 2, 4, 4), double(4, 2, 3, 3), double(4), double(2, 4, 2, 2)
        geometry = ([1, 1], [0, 0], [1, 1], False, [0, 0], 1)
        tests = ("test_schema", "test_autograd_registration", "test_faketensor")
        for activation in (700, 702, 709):
            torch.library.opcheck(
                torch.ops.kiln.convolution_bias_activation.default,
                (x, w, b, r, *geometry, activation, 0.0),
                test_utils=tests,
            )
        last = x.detach().to(memory_format=torch.channels_last)
        torch.library.opcheck(
            torch.ops.kiln.convolution_bias_activation.default,
            (last, w, None, None, *geometry, 700, 0.0),
            test_utils=tests,
        )
        torch.library.opcheck(
            torch.ops.kiln.convolution_backward.default,
            (r.detach(), x, w, [4], *geometry, [True, True, True]),
            test_utils=tests,
        )

    @full_only
    def test_compile(self):
        x, w, b = double(2, 3, 6, 6), double(4, 3, 3, 3), double(4)
        function = lambda *t: kiln.torch.conv2d(*t, activation="relu") * 2
        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True)
        for dynamic in (x, double(3, 3, 7, 7)):
            for got, want in zip(run(compiled, dynamic, w, b), run(function, dynamic, w, b)):
                assert_close(self, got, want)

    def test_autocast(self):
        x, w, r = torch.randn(1, 2, 4, 4), torch.randn(3, 2, 3, 3), torch.randn(1, 3, 2, 2)
        with torch.autocast("cpu", torch.bfloat16):
            y = kiln.torch.conv2d(x, w, residual=r, activation="relu")
            want = F.relu(F.conv2d(x, w) + r.bfloat16())
        self.assertEqual(y.dtype, torch.bfloat16)
        assert_close(self, y, want)

    def test_what_is_wrong_is_named(self):
        x, w = torch.ones(1, 2, 4, 4), torch.ones(3, 2, 3, 3)
        for error, words, function in (
            (ValueError, "activation is 'rlu'; expected one of identity,", lambda: kiln.torch.conv2d(x, w, activation="rlu")),
            (ValueError, "the activation 'relu' takes none", lambda: kiln.torch.conv2d(x, w, activation="relu", coefficient=1)),
            (TypeError, "stride is 1.5; expected integers", lambda: kiln.torch.conv2d(x, w, stride=1.5)),
            (ValueError, "padding is 'sane'", lambda: kiln.torch.conv2d(x, w, padding="sane")),
            (ValueError, "expected a stride of 1", lambda: kiln.torch.conv2d(x, w, padding="same", stride=2)),
            (ValueError, "stride has 3 values; expected 1 or 2", lambda: kiln.torch.conv2d(x, w, stride=[1, 1, 1])),
            (RuntimeError, r"residual has sizes \(1, 3, 1, 1\)", lambda: kiln.torch.conv2d(x, w, residual=torch.ones(1, 3, 1, 1))),
            (RuntimeError, "expected input", lambda: kiln.torch.conv2d(x[:, :1], w)),
        ):
            with self.assertRaisesRegex(error, words):
                function()

    def test_padding_in_words_and_integers_of_numpy(self):
        x, w = double(2, 4, 6, 7), double(6, 4, 2, 3)
        for padding in ("same", "valid"):
            words = dict(padding=padding, dilation=(1, 2))
            self.check(lambda *t: kiln.torch.conv2d(*t, **words), lambda *t: F.conv2d(*t, **words), x, w)
        two, one = numpy.int64(2), numpy.int32(1)
        self.check(
            lambda *t: kiln.torch.conv2d(*t, stride=two, padding=numpy.array([1, 0]), groups=one),
            lambda *t: F.conv2d(*t, stride=2, padding=(1, 0)),
            x, w,
        )
        v = double(6, 7, 3, 4, 3, 3)
        y = kiln.torch.local_conv2d(x, v, padding="same", stride=one)
        assert_close(self, y.detach(), kiln.torch.local_conv2d(x, v, padding=1).detach())

    def test_complex_tensors_are_pytorchs(self):
        x, w = torch.randn(1, 2, 4, 4, dtype=torch.complex64), torch.randn(3, 2, 3, 3, dtype=torch.complex64)
        v, bias = torch.randn(2, 3, 3, 3, dtype=torch.complex64), torch.randn(3, dtype=torch.complex64)
        for got, want in (
            (kiln.torch.conv2d(x, w, bias, padding=1), F.conv2d(x, w, bias, padding=1)),
            (kiln.torch.conv2d(x, w, padding="same", residual=bias.view(3, 1, 1).expand(1, 3, 4, 4)),
             F.conv2d(x, w, bias, padding=1)),
            (kiln.torch.conv_transpose2d(x, v, stride=2), F.conv_transpose2d(x, v, stride=2)),
        ):
            self.assertLess((got - want).abs().max().item(), 1e-4)

    def test_empty_batch_and_policy_native(self):
        w = torch.randn(3, 2, 3, 3)
        self.assertEqual(kiln.torch.conv2d(torch.ones(0, 2, 4, 4), w, activation="relu").shape, (0, 3, 2, 2))
        kiln.torch.set_policy("native")
        x = torch.randn(1, 2, 4, 4)
        assert_close(self, kiln.torch.conv2d(x, w, activation="relu"), F.relu(F.conv2d(x, w)))
        self.assertEqual(counts()[0], 0)


class Residual(nn.Module):
    """Two branches that are added, in place, as ResNet's blocks add them."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(4, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.conv2, self.bn2 = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.short, self.relu = nn.Sequential(nn.Conv2d(4, 8, 1), nn.BatchNorm2d(8)), nn.ReLU(inplace=True)
        self.up, self.bn3 = nn.ConvTranspose2d(8, 4, 2, 2), nn.BatchNorm2d(4)

    def forward(self, x):
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += self.short(x)
        y = self.relu(y)
        return F.gelu(self.bn3(self.up(y))) + x.mean()


def trained(model):
    """With statistics and affine parameters that are not those of the beginning."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.running_mean, module.weight.data, module.bias.data):
                tensor.uniform_(-1, 1)
            module.running_var.uniform_(0.5, 2)
    return model.eval()


class Fuse(unittest.TestCase):
    def calls(self, fused):
        return sorted(
            (module.activation, module.bias is not None)
            for module in fused.modules()
            if isinstance(module, kiln.torch._fuse.FusedConvolution)
        )

    def test_residual_block(self):
        torch.manual_seed(2)
        model = trained(Residual())
        x = torch.randn(2, 4, 6, 6)
        want = model(x)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        fused = kiln.torch.fuse(model)
        kiln.torch.clear()
        with torch.no_grad():
            assert_close(self, fused(x), want.detach())
        self.assertEqual(counts(), (4, 0))
        self.assertEqual(
            self.calls(fused), [("gelu", True), ("identity", True), ("relu", True), ("relu", True)]
        )
        self.assertFalse(any(isinstance(m, (nn.BatchNorm2d, nn.ReLU)) for m in fused.modules()))
        for name, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, before[name]), name)

    def test_what_others_see_stays(self):
        class Seen(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv, self.same = nn.Conv2d(2, 2, 1), nn.Conv2d(2, 2, 1, padding_mode="circular")

            def forward(self, x):
                y = self.conv(x)
                z = F.relu(y)
                x = x * 1
                x += self.conv(z)  # changes x, which is seen again
                return self.same(y) + z + x + torch.add(self.conv(x), z, alpha=2) + F.leaky_relu(self.conv(z), 0.2)

        model = Seen().eval()
        x = torch.randn(1, 2, 3, 3)
        want = model(x)
        assert_close(self, kiln.torch.fuse(model)(x), want)

    def test_training_mode_is_refused(self):
        with self.assertRaisesRegex(ValueError, "call model.eval()"):
            kiln.torch.fuse(Residual())


if __name__ == "__main__":
    unittest.main()
