"""Locally connected layers against PyTorch's unfold, and their gradients against differences."""

import unittest

import torch
import torch.nn.functional as F
from support import assert_close, run

import kiln.torch


def double(*sizes):
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def by_unfold(x, w, b=None, **geometry):
    """In two dimensions: every pixel's patch times the pixel's weights."""
    own = w.dim() == 7
    p, q, k, c, r, s = w.shape[-6:]
    groups = geometry.pop("groups", 1)
    patches = F.unfold(x, (r, s), **geometry).reshape(x.shape[0], groups, c * r * s, p, q)
    weights = w.reshape(*w.shape[: 3 if own else 2], groups, k // groups, c * r * s)
    equation = "ngjpq,npqgkj->ngkpq" if own else "ngjpq,pqgkj->ngkpq"
    y = torch.einsum(equation, patches, weights).reshape(x.shape[0], k, p, q)
    if b is None:
        return y
    return y + (b if b.dim() == 3 else b[:, None, None])


class Local(unittest.TestCase):
    def check(self, *tensors, **geometry):
        ours = run(lambda *t: kiln.torch.local_conv2d(*t, **geometry), *tensors)
        theirs = run(lambda *t: by_unfold(*t, **geometry), *tensors)
        for got, want in zip(ours, theirs):
            assert_close(self, got, want)

    def test_values_and_gradients(self):
        self.check(double(2, 3, 6, 7), double(4, 5, 8, 3, 3, 3))
        self.check(double(2, 3, 6, 7), double(6, 7, 4, 3, 3, 3), double(4, 6, 7), padding=1)
        self.check(double(3, 4, 7, 5), double(3, 3, 6, 2, 3, 2), double(6), stride=(2, 2), padding=(0, 1), groups=2)
        self.check(double(2, 3, 8, 8), double(2, 4, 4, 4, 3, 3, 3), dilation=2)

    def test_every_type_and_layout(self):
        for dtype in (torch.float32, torch.float16, torch.bfloat16):
            x = torch.randn(2, 8, 6, 6, dtype=dtype).to(memory_format=torch.channels_last)
            w = torch.randn(4, 4, 8, 8, 3, 3, dtype=dtype)
            y = kiln.torch.local_conv2d(x, w)
            self.assertTrue(y.is_contiguous(memory_format=torch.channels_last))
            assert_close(self, y, by_unfold(x.double(), w.double()).to(dtype))

    def test_weights_in_the_order_of_keras(self):
        x, keras = double(2, 3, 5, 5), double(3, 3, 3, 3, 3, 4)  # (P, Q, R, S, C, K)
        self.check(x, keras.detach().permute(0, 1, 5, 4, 2, 3).requires_grad_())

    def test_one_and_three_dimensions_and_no_batch(self):
        x, w = double(2, 3, 7), double(5, 4, 3, 3)
        want = torch.einsum("ncqs,qkcs->nkq", x.unfold(2, 3, 1), w)
        assert_close(self, kiln.torch.local_conv1d(x, w), want)
        assert_close(self, kiln.torch.local_conv1d(x[0], w), want[0])
        x, w = double(1, 2, 3, 4, 3), double(2, 3, 2, 3, 2, 2, 2, 2)
        patches = x.unfold(2, 2, 1).unfold(3, 2, 1).unfold(4, 2, 1)
        want = torch.einsum("ncopqtrs,opqkctrs->nkopq", patches, w)
        assert_close(self, kiln.torch.local_conv3d(x, w), want)

    def test_gradients_of_any_order(self):
        for w in (double(2, 2, 3, 2, 2, 2), double(1, 2, 2, 3, 2, 2, 2)):
            tensors = (double(1, 2, 3, 3), w, double(3, 2, 2))
            self.assertTrue(torch.autograd.gradcheck(kiln.torch.local_conv2d, tensors, fast_mode=True))
            self.assertTrue(torch.autograd.gradgradcheck(kiln.torch.local_conv2d, tensors, fast_mode=True))

    def test_operators_are_sound(self):
        kiln.torch.local_conv2d(torch.ones(1, 1, 2, 2), torch.ones(2, 2, 1, 1, 1, 1))
        x, w, b, dy = double(2, 2, 4, 4), double(2, 2, 3, 2, 3, 3), double(3), double(2, 3, 2, 2)
        geometry = ([1, 1], [0, 0], [1, 1], 1)
        torch.library.opcheck(torch.ops.kiln.local_convolution.default, (x, w, b, *geometry))
        torch.library.opcheck(torch.ops.kiln.local_convolution_input.default, (dy, w, [2, 2, 4, 4], *geometry))
        torch.library.opcheck(
            torch.ops.kiln.local_convolution_weight.default, (x, dy, [2, 2, 3, 2, 3, 3], *geometry)
        )

    def test_an_empty_batch(self):
        x, w = double(0, 2, 4, 4), double(2, 2, 3, 2, 3, 3)
        y = kiln.torch.local_conv2d(x, w)
        self.assertEqual(y.shape, (0, 3, 2, 2))
        y.sum().backward()
        self.assertEqual(w.grad.abs().max().item(), 0)

    def test_autocast(self):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = kiln.torch.local_conv2d(torch.ones(1, 2, 3, 3), torch.ones(2, 2, 3, 2, 2, 2))
        self.assertEqual((y.dtype, y.unique().tolist()), (torch.bfloat16, [8.0]))

    def test_what_does_not_fit(self):
        x = torch.ones(1, 2, 4, 4)
        with self.assertRaisesRegex(ValueError, "expected 6 of them"):
            kiln.torch.local_conv2d(x, torch.ones(3, 2, 3, 3))
        with self.assertRaisesRegex(RuntimeError, "w has 5 input channels"):
            kiln.torch.local_conv2d(x, torch.ones(2, 2, 3, 5, 3, 3))
        with self.assertRaisesRegex(ValueError, r"the weights are for \(2, 3\) output pixels; expected \(2, 2\)"):
            kiln.torch.local_conv2d(x, torch.ones(2, 3, 3, 2, 3, 3))
        with self.assertRaisesRegex(ValueError, "bias has sizes"):
            kiln.torch.local_conv2d(x, torch.ones(2, 2, 3, 2, 3, 3), torch.ones(2))


if __name__ == "__main__":
    unittest.main()
