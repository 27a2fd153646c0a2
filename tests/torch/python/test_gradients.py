"""Gradients: against differences, of gradients, by masks, and where nothing or little is wanted."""

import unittest

import torch
import torch.nn.functional as F
from support import assert_close, counts, full_only, on_kiln, run


def double(*sizes):
    return torch.randn(*sizes, dtype=torch.float64, requires_grad=True)


def backward(gradient, x, w, mask, bias_sizes, padding=1):
    return torch.ops.aten.convolution_backward(
        gradient, x, w, bias_sizes, [1, 1], [padding, padding], [1, 1], False, [0, 0], 1, mask
    )


class Gradients(unittest.TestCase):
    def test_against_differences(self):
        x, w, b = double(1, 2, 4, 4), double(2, 2, 3, 3), double(2)
        with on_kiln():
            function = lambda *t: F.conv2d(*t, padding=1)
            self.assertTrue(torch.autograd.gradcheck(function, (x, w, b)))
            self.assertTrue(torch.autograd.gradgradcheck(function, (x, w, b)))
            self.assertEqual(counts()[1], 0)

    @full_only
    def test_against_differences_of_all(self):
        cases = [
            (lambda *t: F.conv1d(*t, padding=1, dilation=2), (double(2, 4, 7), double(4, 4, 3), double(4))),
            (lambda *t: F.conv2d(*t, stride=2, groups=2), (double(2, 4, 5, 5), double(4, 2, 3, 3), double(4))),
            (lambda *t: F.conv3d(*t), (double(1, 2, 3, 3, 3), double(2, 2, 2, 2, 2), double(2))),
            (lambda *t: F.conv_transpose1d(*t, stride=2), (double(1, 3, 4), double(3, 2, 3), double(2))),
            (
                lambda *t: F.conv_transpose2d(*t, stride=2, output_padding=1, groups=2),
                (double(1, 4, 3, 3), double(4, 1, 3, 3), double(2)),
            ),
            (lambda *t: F.conv_transpose3d(*t), (double(1, 2, 2, 2, 2), double(2, 1, 2, 2, 2), double(1))),
        ]
        with on_kiln():
            for index, (function, inputs) in enumerate(cases):
                with self.subTest(index):
                    self.assertTrue(torch.autograd.gradcheck(function, inputs))
                    self.assertTrue(torch.autograd.gradgradcheck(function, inputs))

    def test_masks(self):
        x, w, dy = torch.randn(2, 3, 5, 5), torch.randn(4, 3, 3, 3), torch.randn(2, 4, 5, 5)
        want = backward(dy, x, w, [True, True, True], [4])
        with on_kiln():
            for bits in range(8):
                mask = [bool(bits >> i & 1) for i in range(3)]
                got = backward(dy, x, w, mask, [4])
                for i in range(3):
                    assert_close(self, got[i], want[i] if mask[i] else None, f"mask {mask}, {i}")
            assert_close(self, backward(dy, x, w, [False, True, False], None)[1], want[1])

    def test_gradient_that_is_a_broadcast(self):
        x, w = torch.randn(2, 3, 5, 5, requires_grad=True), torch.randn(4, 3, 3, 3, requires_grad=True)
        sums = lambda a, b: F.conv2d(a, b).sum()
        want = run(sums, x, w)
        with on_kiln():
            for got, right in zip(run(sums, x, w), want):
                assert_close(self, got, right)

    def test_output_padding_of_a_stride_and_more(self):
        x, w, b = double(2, 4, 4, 5), double(4, 3, 3, 3), double(6)
        arguments = dict(stride=(1, 2), padding=1, dilation=3, output_padding=2, groups=2)
        function = lambda *t: F.conv_transpose2d(*t, **arguments)
        want = run(function, x, w, b)
        with on_kiln():
            for got, right in zip(run(function, x, w, b), want):
                assert_close(self, got, right)
            self.assertEqual(counts(), (4, 0))

    def test_empty_batch(self):
        x, w, b = double(0, 3, 5, 5), double(4, 3, 3, 3), double(4)
        want = run(F.conv2d, x, w, b)
        with on_kiln():
            got = run(F.conv2d, x, w, b)
        for a, c in zip(got, want):
            self.assertEqual((a.shape, a.stride()), (c.shape, c.stride()))
            self.assertTrue(torch.equal(a, c))

    def test_without_gradients(self):
        x, w = torch.randn(1, 3, 5, 5), torch.randn(4, 3, 3, 3)
        want = F.conv2d(x, w, padding="same")
        with on_kiln(), torch.inference_mode():
            assert_close(self, F.conv2d(x, w, padding="same"), want)
            self.assertEqual(counts(), (1, 0))

    def test_the_same_bits_again(self):
        x, w = torch.randn(2, 3, 8, 8, requires_grad=True), torch.randn(4, 3, 3, 3, requires_grad=True)
        with on_kiln():
            first, second = run(F.conv2d, x, w), run(F.conv2d, x, w)
        for a, b in zip(first, second):
            self.assertTrue(torch.equal(a, b))


if __name__ == "__main__":
    unittest.main()
