"""Results lie as PyTorch's own would, whatever the operands' strides; FakeTensor is the judge, whose
predictions the code of torch.compile is built on."""

import itertools
import unittest

import torch
import torch.nn.functional as F
from support import FULL, assert_close, assert_same_strides, counts, on_kiln
from torch._subclasses.fake_tensor import FakeTensorMode

FORMATS = {1: [None], 2: [None, torch.channels_last], 3: [None, torch.channels_last_3d]}
CONV = {
    (1, False): F.conv1d,
    (2, False): F.conv2d,
    (3, False): F.conv3d,
    (2, True): F.conv_transpose2d,
}


def tensor(sizes, dtype, memory_format):
    out = torch.randn(sizes, dtype=dtype)
    return (out if memory_format is None else out.to(memory_format=memory_format)).requires_grad_()


def strides(function, *tensors):
    result = function(*tensors)
    return result, *torch.autograd.grad(result, tensors, torch.ones_like(result))


class Layouts(unittest.TestCase):
    def test_strides_are_those_that_fake_tensors_predict(self):
        for (n, transposed), conv in (CONV if FULL else {(2, False): F.conv2d}).items():
            for dtype, x_format, w_format in itertools.product(
                (torch.float32, torch.float64), FORMATS[n], FORMATS[n]
            ):
                if n == 3 and dtype == torch.float32 and x_format != w_format:
                    continue  # which CPU kernel PyTorch would take depends on its build
                what = f"{conv.__name__} {dtype} {x_format} {w_format}"
                x = tensor((2, 4) + (5,) * n, dtype, x_format)
                w = tensor((4, 4) + (3,) * n, dtype, w_format)
                with FakeTensorMode() as mode:
                    fakes = [mode.from_tensor(t) for t in (x, w)]
                    want = strides(conv, *fakes)
                native = strides(conv, x, w)
                with on_kiln():
                    got = strides(conv, x, w)
                    self.assertEqual(counts()[1], 0, what)
                for a, b, c in zip(got, want, native):
                    assert_same_strides(self, a, b, what)
                    assert_close(self, a.detach(), c.detach(), what)

    def test_three_dimensions_on_the_cpu_lie_as_the_kernel_that_pytorch_selects(self):
        for dtype, batch in itertools.product((torch.float32, torch.float64, torch.bfloat16), (1, 2)):
            x = tensor((batch, 4, 5, 5, 5), dtype, torch.channels_last_3d)
            w = tensor((4, 4, 3, 3, 3), dtype, None)
            native = strides(F.conv3d, x, w)
            with on_kiln():
                got = strides(F.conv3d, x, w)
                self.assertEqual(counts()[1], 0)
            for a, b in zip(got, native):
                assert_same_strides(self, a, b, f"{dtype} {batch}")

    def test_operands_of_any_strides(self):
        base = torch.randn(2, 8, 12, 12)
        w = torch.randn(4, 4, 3, 3)
        views = {
            "a window": base[:, 2:6, 1:9, 3:10],
            "every other pixel": base[:, :4, ::2, ::2],
            "every other channel": base[:, ::2],
            "turned": base[:, :4].transpose(2, 3),
            "one image for all": base[:1, :4].expand(3, 4, 12, 12),
            "one channel for all": base[:, :1].expand(2, 4, 12, 12),
            "channels last, a window": base.to(memory_format=torch.channels_last)[:, 4:8, 2:9, 2:9],
            "a slice that is not aligned": torch.randn(2 * 4 * 8 * 8 + 1)[1:].view(2, 4, 8, 8),
        }
        for what, x in views.items():
            x = x.detach().requires_grad_()
            want = F.conv2d(x, w)
            with on_kiln():
                got = F.conv2d(x, w)
                gradient = torch.autograd.grad(got.sum(), x)[0]
                self.assertEqual(counts()[1], 0, what)
            assert_close(self, got.detach(), want.detach(), what)
            assert_close(self, gradient, torch.autograd.grad(want.sum(), x)[0], what)

    def test_filters_and_biases_of_any_strides(self):
        x = torch.randn(2, 4, 6, 6)
        w = torch.randn(3, 3, 4, 8).permute(3, 2, 0, 1)
        b = torch.randn(16)[::2]
        want = F.conv2d(x, w, b)
        with on_kiln():
            assert_close(self, F.conv2d(x, w, b), want)
            assert_close(self, F.conv2d(x, w, b[:1].expand(8)), F.conv2d(x, w, b[:1].expand(8)))
            self.assertEqual(counts()[1], 0)


if __name__ == "__main__":
    unittest.main()
