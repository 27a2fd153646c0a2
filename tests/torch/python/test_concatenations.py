"""Norms of concatenations take the moments of the parts."""

import copy
import unittest

import torch
import torch.nn.functional as F
from support import TOLERANCE
from torch import nn
from torch.utils import checkpoint

import kiln.torch


def conv(inputs, outputs, size=1, **more):
    return nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False, **more)


class Layer(nn.Module):
    """Of DenseNet."""

    def __init__(self, inputs, growth=4):
        super().__init__()
        self.norm1, self.one = nn.BatchNorm2d(inputs), conv(inputs, 8)
        self.norm2, self.three = nn.BatchNorm2d(8), conv(8, growth, 3)

    def forward(self, x):
        return self.three(F.relu(self.norm2(self.one(F.relu(self.norm1(x))))))


class Dense(nn.Module):
    """A dense block and a transition. between: what is done to the first part after it was read; of: to the last."""

    def __init__(self, between=lambda x: None, of=lambda x: x):
        super().__init__()
        self.first, self.layers = conv(3, 6, 3), nn.ModuleList(Layer(6 + 4 * i) for i in range(2))
        self.norm, self.last = nn.BatchNorm2d(14, momentum=None), conv(14, 2)
        self.between, self.of = between, of

    def forward(self, x):
        parts = [F.avg_pool2d(self.first(x), 2)]
        parts.append(self.layers[0](torch.cat(parts, 1)))
        parts.append(self.layers[1](torch.cat(parts, dim=1)))
        self.between(parts[0])
        return self.last(F.silu(self.norm(torch.concat([parts[0], parts[1], self.of(parts[2])], 1))))


def rows(pass_):
    return sum(row["served"] for row in kiln.torch.report().rows if row["pass"] == pass_)


class Concatenations(unittest.TestCase):
    def check(self, model, x, of=lambda model, x: model(x), tolerance=None):
        """Two steps, then an evaluation, called by ``of``, as PyTorch's in f64. Returns the fused model."""
        want = copy.deepcopy(model).double()
        got = kiln.torch.fuse_training(copy.deepcopy(model))
        kiln.torch.clear()
        for mode in (True, True, False):
            results = []
            for each, data in ((want, x.double()), (got, x)):
                each.train(mode).zero_grad()
                data = data.clone(memory_format=torch.preserve_format).requires_grad_()
                y = of(each, data) if each is got else each(data)
                (y * torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).view(y.shape)).sum().backward()
                results.append([y.detach(), data.grad, *(p.grad for p in each.parameters()), *each.buffers()])
            for right, made in zip(*results):
                error = (made.double() - right.double()).abs().max() / right.abs().max().clamp(min=1e-3)
                self.assertLessEqual(error.item(), tolerance or 8 * TOLERANCE[x.dtype])
        return got.train()

    def setUp(self):
        torch.manual_seed(11)
        self.x = torch.randn(3, 3, 8, 8)

    def gathered(self, model):
        return [row["norm"] for row in kiln.torch.fused_blocks(model).rows if "moments of parts" in row["carries"]]

    def test_a_dense_block(self):
        for x in (self.x, self.x.double(), self.x.to(memory_format=torch.channels_last)):
            model = self.check(Dense().to(x.dtype), x)
            self.assertEqual(self.gathered(model), ["layers.0.norm1", "layers.1.norm1", "norm"])
            carries = {row["norm"]: row["carries"] for row in kiln.torch.fused_blocks(model).rows}
            self.assertEqual(carries["layers.0.norm2"], "moments, relu, gradient in layers.0.three")
            # In each of the two steps: one read, of the pooled part; four convolutions of layers with moments.
            self.assertEqual((rows("moments"), kiln.torch.report().native), (2, 0))

    def test_parts_that_are_not_read_again(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm, self.conv = nn.BatchNorm2d(6), conv(6, 2)

            def forward(self, x):
                return self.conv(F.relu(self.norm(torch.cat([x, F.max_pool2d(x, 3, 1, 1)], 1))))

        model = self.check(Model(), self.x)
        self.assertEqual((self.gathered(model), rows("moments")), ([], 2))

    def test_parts_that_change(self):
        """A write to a part between two readers: each norm has what its concatenation had."""
        for write in (lambda x: x.mul_(2), lambda x: F.relu(x.view(x.shape), inplace=True)):
            model = self.check(Dense(write, lambda x: x), self.x)
            self.assertEqual(self.gathered(model), [])

    def test_parts_of_another_type(self):
        """What torch.cat converts has other moments."""
        model = self.check(Dense(of=lambda x: x.half()), self.x, tolerance=2e-3)
        self.assertEqual(self.gathered(model), ["layers.0.norm1", "layers.1.norm1", "norm"])
        self.assertEqual(rows("moments"), 2 * 3)  # of the pooled part, of the converted one, and of all for the last norm

    def test_autocast(self):
        def step(model, x):
            with torch.autocast("cpu", torch.bfloat16):
                return model(x).to(x.dtype)

        self.check(Dense(), self.x, step, tolerance=0.2)  # 30 times the type's rounding, after seven layers
        self.assertEqual((rows("moments"), kiln.torch.report().native), (2, 0))

    def test_checkpoints_and_gradients_of_gradients(self):
        self.check(Dense(), self.x, lambda m, x: checkpoint.checkpoint(m, x, use_reentrant=False))
        x, model = self.x[:2, :, :4, :4].double(), Dense().double()

        def second(each):
            data = x.clone().requires_grad_()
            (dx,) = torch.autograd.grad(each(data).square().sum(), data, create_graph=True)
            return torch.autograd.grad(dx.square().sum(), [data, *each.parameters()])

        want = second(copy.deepcopy(model))
        for right, made in zip(want, second(kiln.torch.fuse_training(model))):
            self.assertLessEqual(((made - right).abs().max() / right.abs().max()).item(), 1e-9)

    def test_under_torch_compile(self):
        torch._dynamo.reset()
        self.check(Dense(), self.x, lambda m, x: torch.compile(m, backend="aot_eager", fullgraph=True)(x))
        self.assertGreater(rows("moments"), 0)
        torch._dynamo.reset()


if __name__ == "__main__":
    unittest.main()
