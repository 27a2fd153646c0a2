"""Products of matrices and linear layers against PyTorch's, and their gradients against differences."""

import unittest

import torch
import torch.nn.functional as F
from support import assert_close, run

import kiln.torch


def double(*sizes):
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def served():
    return sum(row["served"] for row in kiln.torch.report().rows if row["pass"] == "matrix product")


class Matmul(unittest.TestCase):
    def setUp(self):
        kiln.torch.clear()

    def check(self, ours, theirs, *tensors):
        for got, want in zip(run(ours, *tensors), run(theirs, *tensors)):
            assert_close(self, got, want)
        self.assertGreater(served(), 0)

    def test_linear_layers_and_gradients(self):
        for sizes in ((5, 12), (2, 3, 12), (12,)):
            self.check(kiln.torch.linear, F.linear, double(*sizes), double(7, 12), double(7))
        self.check(kiln.torch.linear, F.linear, double(4, 12), double(7, 12))
        self.check(kiln.torch.linear, F.linear, double(4, 12), double(12))

    def test_every_type(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            x, w, b = (torch.randn(*sizes, dtype=dtype) for sizes in ((6, 16), (24, 16), (24,)))
            y = kiln.torch.linear(x, w, b)
            self.assertEqual(y.dtype, dtype)
            assert_close(self, y, F.linear(x.double(), w.double(), b.double()).to(dtype))
        self.assertEqual(served(), 3)

    def test_residuals_and_activations(self):
        functions = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu, "sigmoid": torch.sigmoid}
        for name, function in functions.items():
            self.check(
                lambda x, w, b, z: kiln.torch.linear(x, w, b, residual=z, activation=name),
                lambda x, w, b, z: function(F.linear(x, w, b) + z),
                double(2, 5, 8), double(6, 8), double(6), double(2, 5, 6),
            )
        ours = lambda x, w: kiln.torch.linear(x, w, activation="leaky_relu", coefficient=0.3)
        self.check(ours, lambda x, w: F.leaky_relu(F.linear(x, w), 0.3), double(5, 8), double(6, 8))

    def test_products_of_any_strides(self):
        self.check(kiln.torch.matmul, torch.matmul, double(5, 8), double(8, 6))
        self.check(lambda a, b: kiln.torch.matmul(a.t(), b.t()), lambda a, b: a.t() @ b.t(), double(8, 5), double(6, 8))
        self.check(kiln.torch.matmul, torch.matmul, double(3, 5, 8), double(3, 8, 6))
        heads = lambda f: lambda q, k: f(q.transpose(0, 1), k.permute(1, 2, 0))
        self.check(heads(kiln.torch.matmul), heads(torch.matmul), double(5, 3, 8), double(6, 3, 8))
        expanded = lambda f: lambda a, b: f(a, b.expand(3, 8, 6))
        self.check(expanded(kiln.torch.matmul), expanded(torch.matmul), double(3, 5, 8), double(8, 6))

    def test_weights_keep_their_layout(self):
        w = torch.randn(7, 12, requires_grad=True)
        kiln.torch.linear(torch.randn(5, 12), w).sum().backward()
        self.assertTrue(w.grad.is_contiguous())
        dw, = torch.autograd.grad(kiln.torch.linear(torch.randn(5, 12), w).sum(), w)
        self.assertTrue(dw.is_contiguous())

    def test_gradients_of_any_order(self):
        function = lambda x, w, b, z: kiln.torch.linear(x, w, b, residual=z, activation="silu")
        tensors = (double(2, 3), double(4, 3), double(4), double(2, 4))
        self.assertTrue(torch.autograd.gradcheck(function, tensors, fast_mode=True))
        self.assertTrue(torch.autograd.gradgradcheck(function, tensors, fast_mode=True))

    def test_what_pytorch_serves(self):
        empty = kiln.torch.linear(torch.ones(0, 4), torch.ones(3, 4), torch.ones(3))
        self.assertEqual(tuple(empty.shape), (0, 3))
        whole = kiln.torch.matmul(torch.ones(2, 3, dtype=torch.int64), torch.ones(3, 2, dtype=torch.int64))
        self.assertEqual(whole.tolist(), [[3, 3], [3, 3]])
        numbers = torch.randn(2, 3, dtype=torch.complex64)
        self.assertTrue(torch.allclose(kiln.torch.matmul(numbers, numbers.t()), numbers @ numbers.t()))
        self.assertEqual(served(), 0)
        whys = {row["why"] for row in kiln.torch.report().rows if row["pass"] == "matrix product"}
        self.assertEqual(whys, {"an empty tensor", "the type is not f32, f64, f16 or bf16"})

    def test_refusals(self):
        x, w = torch.ones(2, 4), torch.ones(3, 4)
        with self.assertRaisesRegex(ValueError, r"input has sizes \(2, 5\) and weight \(3, 4\)"):
            kiln.torch.linear(torch.ones(2, 5), w)
        with self.assertRaisesRegex(ValueError, "residual has sizes"):
            kiln.torch.linear(x, w, residual=x)
        with self.assertRaisesRegex(ValueError, "activation is 'swish'"):
            kiln.torch.linear(x, w, activation="swish")
        with self.assertRaisesRegex(ValueError, "coefficient is 2"):
            kiln.torch.linear(x, w, activation="relu", coefficient=2)
        with self.assertRaisesRegex(ValueError, "input has 1 dimensions"):
            kiln.torch.matmul(torch.ones(4), w.t())
        with self.assertRaises(RuntimeError):
            kiln.torch.matmul(x, w)
        with self.assertRaises(RuntimeError):
            kiln.torch.linear(x, w, torch.ones(5))

    def test_autocast_and_transforms(self):
        x, w = torch.randn(4, 8), torch.randn(6, 8)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = kiln.torch.linear(x, w)
        self.assertEqual(y.dtype, torch.bfloat16)
        assert_close(self, y, F.linear(x.bfloat16().double(), w.bfloat16().double()).bfloat16())
        got = torch.func.grad(lambda t: kiln.torch.linear(x, t, activation="relu").sum())(w)
        assert_close(self, got, torch.func.grad(lambda t: F.relu(F.linear(x, t)).sum())(w))

    def test_operator_is_sound(self):
        kiln.torch.matmul(torch.ones(1, 1), torch.ones(1, 1))
        operator = torch.ops.kiln.matmul_bias_activation.default
        for a, b, bias, z in (
            (double(3, 4), double(4, 2), double(2), double(3, 2)),
            (double(2, 3, 4), double(2, 4, 2), None, None),
        ):
            torch.library.opcheck(operator, (a, b, bias, z, 702, 0.0, False))

    def test_compiled(self):
        function = lambda x, w, b: kiln.torch.linear(x, w, b, activation="gelu").sum()
        compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
        for rows in (3, 5):
            self.check(compiled, function, double(rows, 8), double(6, 8), double(6))

    def test_flops(self):
        from torch.utils.flop_counter import FlopCounterMode

        with FlopCounterMode(display=False) as counter:
            kiln.torch.linear(torch.ones(5, 8, requires_grad=True), torch.ones(6, 8, requires_grad=True)).sum().backward()
        self.assertEqual(counter.get_total_flops(), 3 * 2 * 5 * 8 * 6)


if __name__ == "__main__":
    unittest.main()
