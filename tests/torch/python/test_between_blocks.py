"""What stands between blocks: poolings, and squeeze-and-excitation."""

import copy
import unittest

import torch
import torch.nn.functional as F
from torch import nn

import kiln.torch
from kiln.torch import _channels, _operators
from kiln.torch._train import _gates, _pools

MAXIMA = (None, F.max_pool1d, F.max_pool2d, F.max_pool3d)
AVERAGES = (None, F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)


def with_gradients(function, *operands):
    given = [x.clone(memory_format=torch.preserve_format).requires_grad_() for x in operands]
    y = function(*given)
    dy = torch.arange(y.numel()).view(y.shape).remainder(7).sub(3).to(y.dtype)
    return [y.detach(), *torch.autograd.grad(y, given, dy)]


class Pools(unittest.TestCase):
    def setUp(self):
        _operators.register()
        torch.manual_seed(0)

    def test_a_maximum_is_pytorchs(self):
        for sizes, windows in (
            ((2, 3, 9), ([3], [2], [1], [1], False)), ((2, 8, 7, 9), ([3, 2], [2, 3], [1, 0], [1, 2], True)),
            ((2, 4, 5, 6, 7), ([2, 2, 2], [2, 2, 2], [0, 1, 1], [1, 1, 1], False)),
        ):
            for dtype in (torch.float32, torch.bfloat16):
                x = torch.randint(-2, 3, sizes).to(dtype)  # most windows have several maxima
                if len(sizes) == 4:
                    x = x.contiguous(memory_format=torch.channels_last)
                own = MAXIMA[len(sizes) - 2]
                for got, want in zip(
                    with_gradients(lambda t: torch.ops.kiln.pool(t, *windows, 0), x),
                    with_gradients(lambda t: own(t, *windows), x),
                ):
                    self.assertTrue(torch.equal(got, want))
                    self.assertEqual(got.stride(), want.stride())

    def test_an_average_is_pytorchs(self):
        for sizes, windows in (
            ((2, 3, 9), ([3], [2], [1])), ((2, 8, 7, 9), ([3, 2], [2, 3], [1, 0])), ((2, 8, 7, 9), ([2, 2], [2, 2], [0, 0])),
            ((2, 4, 5, 6, 7), ([2, 3, 2], [2, 2, 2], [0, 1, 1])),
        ):
            for ceil_mode in (False, True):
                for include in (False, True):
                    x = torch.randn(sizes, dtype=torch.float64)
                    own, dilation = AVERAGES[len(sizes) - 2], [1] * len(windows[0])
                    for got, want in zip(
                        with_gradients(lambda t: torch.ops.kiln.pool(t, *windows, dilation, ceil_mode, 2 - include), x),
                        with_gradients(lambda t: own(t, *windows, ceil_mode, include), x),
                    ):
                        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)

    def test_second_derivatives_and_refusals(self):
        x = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
        for mode in (0, 1):
            pool = lambda t: torch.ops.kiln.pool(t.square(), [2], [2], [0], [1], False, mode)
            self.assertTrue(torch.autograd.gradgradcheck(pool, x))
            with self.assertRaisesRegex(RuntimeError, "pad"):
                torch.ops.kiln.pool(x, [2], [2], [2], [1], False, mode)


class Gate(nn.Module):
    """As torchvision and timm write squeeze-and-excitation."""

    def __init__(self, channels, pooled):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1) if pooled else None
        self.less, self.act, self.more = nn.Conv2d(channels, 2, 1), nn.ReLU(inplace=True), nn.Conv2d(2, channels, 1)

    def forward(self, x):
        s = x.mean((2, 3), keepdim=True) if self.pool is None else self.pool(x)
        s = self.more(self.act(self.less(s))).sigmoid()
        return x * s if self.pool is None else s * x


class Net(nn.Module):
    def __init__(self, **pool):
        super().__init__()
        self.conv1, self.bn1, self.gate1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), Gate(8, True)
        self.conv2, self.bn2, self.gate2 = nn.Conv2d(8, 8, 1), nn.BatchNorm2d(8), Gate(8, False)
        self.shrink, self.conv3, self.bn3 = nn.AvgPool2d(2, 2, **pool), nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4)

    def forward(self, x):
        x = self.gate1(F.silu(self.bn1(self.conv1(x))))
        x = self.gate2(self.bn2(self.conv2(x))) + x
        return F.relu(self.bn3(self.conv3(self.shrink(x))))


class Between(unittest.TestCase):
    def outcome(self, model, x):
        given = x.clone().requires_grad_()
        y = model(given)
        wanted = [given, *model.parameters()]
        return [y.detach(), *torch.autograd.grad(y.square().sum(), wanted, create_graph=True)]

    def test_training(self):
        torch.manual_seed(0)
        for pool in ({}, {"ceil_mode": True, "count_include_pad": False}, {"divisor_override": 3}):
            own = Net(**pool).double()
            fused = kiln.torch.fuse_training(copy.deepcopy(own))
            x = torch.randn(3, 3, 5, 6, dtype=torch.float64)
            results = [self.outcome(model, x) for model in (fused, own)]
            for got, want in zip(*results):
                torch.testing.assert_close(got.detach(), want.detach(), rtol=1e-9, atol=1e-9)
        seconds = [torch.autograd.grad(sum(g.square().sum() for g in r[1:]), list(model.parameters()), allow_unused=True)
                   for r, model in zip(results, (fused, own))]
        for got, want in zip(*seconds):
            if want is not None:
                torch.testing.assert_close(got, want, rtol=1e-8, atol=1e-8)

    def test_they_are_kilns(self):
        fused = kiln.torch.fuse_training(Net().train())
        kiln.torch.clear()
        fused(torch.randn(2, 3, 4, 4)).sum().backward()
        served = {row["pass"] for row in kiln.torch.report().rows if row["served"]}
        self.assertLessEqual({"pool", "pool gradient", "multiply", "sum channels", "add channels"}, served)

    def test_types_and_layouts(self):
        _operators.register()
        torch.manual_seed(0)
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2), (torch.float16, 4e-3)):
            for layout in (torch.contiguous_format, torch.channels_last):
                x = torch.randn(2, 24, 5, 4).to(dtype).contiguous(memory_format=layout)
                numbers = torch.rand(2, 24, 1, 1).to(dtype)
                exact = with_gradients(_channels.multiply, x.double(), numbers.double())
                for got, want in zip(with_gradients(lambda a, b: _gates.run_product(b, a), x, numbers), exact):
                    self.assertEqual(got.dtype, dtype)
                    self.assertLessEqual(((got.double() - want).abs().max() / want.abs().max()).item(), tolerance)
                y, means = _gates.run_squeeze(x, (2, 3), True)
                self.assertEqual(y.stride(), x.stride())
                self.assertLessEqual((means.double() - _channels.means(x.double())).abs().max().item(), tolerance)

    def test_what_is_pytorchs(self):
        x, numbers = torch.randn(2, 4, 3, 3), torch.rand(2, 4, 1, 1)
        for a, b in ((x, numbers[:, :1]), (x, numbers.double()), (x, 2.0), (x, x), (numbers, torch.rand(4, 1, 1)), (3, x)):
            torch.testing.assert_close(_gates.run_product(a, b), a * b)
        one = torch.randn(4, 3, 3)  # an image alone, whose dimensions of space are the last ones
        torch.testing.assert_close(_gates.run_squeeze(one, (2, 3), True)[1], F.adaptive_avg_pool2d(one, 1))
        with torch.autocast("cpu", torch.bfloat16):
            low = x.bfloat16()
            for run, own in ((lambda t: _gates.run_squeeze(t, (2, 3), False)[1], _channels.means),
                             (lambda t: _gates.run_squeeze(t, (2, 3), True)[1], lambda t: F.adaptive_avg_pool2d(t, 1)),
                             (lambda t: _pools.run_pool(t, 2, 2, None, 0, 1, False, 1), lambda t: F.avg_pool2d(t, 2))):
                self.assertEqual(run(low).dtype, own(low).dtype)


if __name__ == "__main__":
    unittest.main()
