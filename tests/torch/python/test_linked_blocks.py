"""Blocks whose gradient the next block's convolution takes."""

import copy
import unittest

import torch
import torch.nn.functional as F
from support import TOLERANCE
from torch import nn

import kiln.torch
from kiln.torch import _activations, _operators
from kiln.torch._fuse import FusedConvolution

IDENTITY, RELU = (_activations.find(name).number for name in ("identity", "relu"))


def conv(inputs, outputs, size=1, **more):
    return nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False, **more)


class Bottlenecks(nn.Module):
    """Of MobileNetV2: a depthwise convolution between two others, and an addition without an activation."""

    def __init__(self):
        super().__init__()
        self.first, self.norm0 = conv(3, 4, 3), nn.BatchNorm2d(4)
        self.wide, self.norm1 = conv(4, 8), nn.BatchNorm2d(8)
        self.deep, self.norm2 = conv(8, 8, 3, groups=8), nn.BatchNorm2d(8)
        self.narrow, self.norm3 = conv(8, 4), nn.BatchNorm2d(4)
        self.after, self.norm4 = conv(4, 4, 3, stride=2), nn.BatchNorm2d(4)
        self.act = nn.ReLU6(inplace=True)

    def forward(self, x):
        x = self.act(self.norm0(self.first(x)))
        y = self.act(self.norm2(self.deep(self.act(self.norm1(self.wide(x))))))
        y = x + self.norm3(self.narrow(y))
        return F.silu(self.norm4(self.after(y))), y * 2  # y has another reader


class Dense(nn.Module):
    """Of DenseNet: norms before convolutions, which read several results at once."""

    def __init__(self):
        super().__init__()
        self.first, self.pool = conv(3, 4, 3), nn.MaxPool2d(3, 2, 1)
        self.norm0, self.norm1, self.norm2 = nn.BatchNorm2d(4), nn.BatchNorm2d(4), nn.BatchNorm2d(8)
        self.one, self.three = conv(4, 8), conv(8, 4, 3)
        self.norm3, self.last = nn.BatchNorm2d(8), conv(8, 2)

    def forward(self, x):
        x = self.pool(F.relu(self.norm0(self.first(x))))
        y = self.three(F.relu(self.norm2(self.one(F.relu(self.norm1(x))))))
        return F.max_pool2d(self.last(F.relu(self.norm3(torch.cat([x, y], 1)))), 2, ceil_mode=True)


class Writes(nn.Module):
    """The second block's residual is written to before the gradient is computed."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = conv(3, 4), conv(4, 4), conv(4, 4)
        self.norm1, self.norm2, self.norm3 = nn.BatchNorm2d(4), nn.BatchNorm2d(4), nn.BatchNorm2d(4)

    def forward(self, x):
        short = self.norm1(self.one(x))
        y = F.relu(self.norm2(self.two(x.new_ones(()) * short)) + short)
        short.mul_(2)
        return self.norm3(self.three(y)) + short


class WritesInPlace(Writes):
    """A shortcut that is activated in place after it was added, through a view, and a usual one."""

    def forward(self, x):
        first = self.norm1(self.one(x))
        y = F.silu(self.norm2(self.two(F.relu(first))) + first, inplace=True)
        F.relu(first.view(first.shape), inplace=True)
        out = self.norm3(self.three(y))
        out += y
        return F.relu(out, inplace=True)


class NormAct(nn.BatchNorm2d):
    """With a forward of its own, as timm's BatchNormAct2d has."""

    def __init__(self, channels, act, **more):
        super().__init__(channels, **more)
        self.drop, self.act = nn.Identity(), act

    def forward(self, x):
        torch._assert(x.ndim == 4, f"expected 4D input (got {x.ndim}D input)")
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        mine = self.training or (self.running_mean is None and self.running_var is None)
        tracked = not self.training or self.track_running_stats
        statistics = (self.running_mean, self.running_var) if tracked else (None, None)
        return self.act(self.drop(F.batch_norm(x, *statistics, self.weight, self.bias, mine, momentum, self.eps)))


class Named(nn.BatchNorm2d):
    """Another name of torch.nn's class."""


class Pointwise(nn.Conv2d):
    """A convolution with arguments of its own, as torchvision's Conv3DSimple."""

    def __init__(self, channels):
        super().__init__(channels, channels, 1, bias=False)


class Subclasses(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.three, self.four = conv(3, 4, 3), conv(4, 4), Pointwise(4), Pointwise(4)
        self.norm1, self.norm2 = NormAct(4, nn.ReLU(inplace=True)), NormAct(4, nn.Identity(), affine=False)
        self.norm3, self.norm4 = NormAct(4, nn.SiLU(), track_running_stats=False), Named(4, momentum=None)
        self.norm5 = NormAct(4, nn.SiLU())  # called twice
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
        x = self.norm1(self.one(x))
        x = F.relu(self.drop(self.norm2(self.two(x))) + x)
        return self.norm5(self.norm5(self.norm4(self.four(self.norm3(self.three(x))))))


class LinkedBlocks(unittest.TestCase):
    def same(self, model, carries):
        torch.manual_seed(1)
        own = model().double()
        fused = kiln.torch.fuse_training(copy.deepcopy(own))
        x = torch.randn(3, 3, 7, 6, dtype=torch.float64)
        results = []
        for each in (fused, own):
            given = x.clone().requires_grad_()
            for _ in range(2):  # running statistics go on
                ys = each(given)
            ys = ys if isinstance(ys, tuple) else (ys,)
            total = sum((y.square() * (i + 1)).sum() for i, y in enumerate(ys))
            gradients = torch.autograd.grad(total, [given, *each.parameters()], allow_unused=True)
            results.append([*(y.detach() for y in ys), *gradients, *each.buffers()])
        for got, want in zip(*results):
            if want is not None:
                error = (got.double() - want.double()).abs().max() / want.double().abs().max().clamp(min=1e-2)
                self.assertLessEqual(error.item(), 1e-9)
        rows = {row["norm"]: row["carries"] for row in kiln.torch.fused_blocks(fused).rows}
        self.assertEqual(rows, carries)

    def test_around_depthwise_convolutions(self):
        self.same(Bottlenecks, {
            "norm0": "moments, clipped_relu, gradient in wide", "norm1": "moments, clipped_relu, gradient in deep",
            "norm2": "moments, clipped_relu, gradient in narrow", "norm3": "moments, addition, gradient in after",
            "norm4": "moments, silu",
        })

    def test_norms_before_convolutions(self):
        self.same(Dense, {
            "norm0": "moments, relu", "norm1": "relu, gradient in one",
            "norm2": "moments, relu, gradient in three", "norm3": "moments of parts, relu",
        })

    def test_subclasses_of_norms(self):
        carries = {
            "norm1": "moments, relu, gradient in two", "norm2": "moments", "norm3": "moments, silu, gradient in four",
            "norm4": "moments", "norm5": "",
        }
        self.same(Subclasses, carries)
        fused = kiln.torch.fuse_training(Subclasses()).eval()
        rows = {row["norm"]: row["carries"] for row in kiln.torch.fused_blocks(fused).rows}
        self.assertEqual(rows["norm1"], "moments, relu, gradient in two")
        self.assertEqual(rows["norm5"], "silu")  # nothing is counted
        inference = kiln.torch.fuse(Subclasses().eval())
        self.assertEqual(sum(isinstance(m, FusedConvolution) for m in inference.modules()), 4)
        x = torch.randn(2, 3, 5, 4)
        got = fused(x)
        self.assertLess((got - kiln.torch.unfuse(fused)(x)).abs().max().item(), 1e-5)

    def test_results_that_are_computed_again(self):
        """The same bits from less memory."""
        for model, kept in ((Bottlenecks, {"norm0", "norm3"}), (Dense, set())):
            torch.manual_seed(1)
            own = model()
            results, bytes_kept, reports = [], [], []
            for recompute in (False, True):
                fused = copy.deepcopy(kiln.torch.fuse_training(copy.deepcopy(own), recompute=recompute))
                x = torch.randn(3, 3, 7, 6, generator=torch.Generator().manual_seed(2)).requires_grad_()
                stored = {}
                note = lambda t: (stored.setdefault(t.untyped_storage().data_ptr(), t), t)[1]
                with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
                    y = fused(x)
                total = sum(each.square().sum() for each in (y if isinstance(y, tuple) else (y,)))
                results.append(torch.autograd.grad(total, [x, *fused.parameters()]))
                bytes_kept.append(sum(t.untyped_storage().nbytes() for t in stored.values()))
                rows = kiln.torch.fused_blocks(fused).rows
                reports.append({row["norm"] for row in rows if "computed again" in row["carries"]})
                linked = {row["norm"]: row["conv"] for row in rows if "gradient in" in row["carries"]}
            self.assertTrue(all(torch.equal(got, want) for got, want in zip(*results)))
            self.assertEqual(reports, [set(), set(linked) - kept])
            # norm1 and norm2 have 8 and 8 channels of 7 x 6 pixels in the first, 4 and 8 of 4 x 3 in the second.
            self.assertEqual(bytes_kept[0] - bytes_kept[1], 4 * 3 * (16 * 42 if model is Bottlenecks else 12 * 12))
        self.assertNotIn("computed again", str(kiln.torch.fused_blocks(kiln.torch.fuse_training(fused))))

    def test_a_frozen_convolution_whose_operand_is_not_kept(self):
        torch.manual_seed(1)
        own = Bottlenecks().double()
        for name in ("deep", "narrow"):
            getattr(own, name).weight.requires_grad_(False)
        fused, results = kiln.torch.fuse_training(copy.deepcopy(own), recompute=True), []
        for model in (fused, own):
            x = torch.randn(3, 3, 7, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
            total = sum(y.square().sum() for y in model(x))
            first = torch.autograd.grad(total, [x, *(p for p in model.parameters() if p.requires_grad)], create_graph=True)
            second = torch.autograd.grad(first[0].square().sum(), x)
            results.append([*(g.detach() for g in first), *second])
        for got, want in zip(*results):
            self.assertLessEqual((got - want).abs().max().item(), 1e-9 * want.abs().max().item())

    def test_a_residual_that_changes(self):
        self.same(Writes, {"norm1": "moments", "norm2": "moments, addition", "norm3": "moments, addition"})
        self.same(WritesInPlace, {
            "norm1": "moments", "norm2": "moments, addition", "norm3": "moments, addition, relu",
        })
        x = torch.randn(2, 4, 4, 4)
        with self.assertRaisesRegex(RuntimeError, "write to a copy of it"):
            y = kiln.torch.norm_act_add(x, x.new_zeros(4), x.new_ones(4), x.new_ones(4).requires_grad_(), x.new_ones(4),
                                        x, activation="silu")
            x.add_(1)
            y.sum().backward()

    def test_the_gradient_of_a_link(self):
        """kiln::link_backward beside the same by PyTorch's functions in f64."""
        _operators.register()
        torch.manual_seed(0)
        last = dict(memory_format=torch.channels_last)
        for dtype, activation, more, residual, affine, stride, groups in (
            (torch.float16, RELU, True, True, True, 1, 1), (torch.float16, IDENTITY, True, True, False, 1, 1),
            (torch.bfloat16, RELU, False, False, True, 2, 1), (torch.float32, RELU, True, False, True, 1, 64),
            (torch.float64, RELU, True, True, True, 1, 1),
        ):
            sizes = (3, 64, 5, 4)
            y = (2 * torch.randn(sizes) + 1).to(dtype).contiguous(**last)
            added, dz = (torch.randn(sizes).to(dtype).contiguous(**last) if is_one else None for is_one in (residual, more))
            wide = torch.float64 if dtype == torch.float64 else torch.float32
            weight, bias = (torch.rand(64, dtype=wide) + 0.5, torch.randn(64, dtype=wide)) if affine else (None, None)
            variance, mean = torch.var_mean(y.to(wide), (0, 2, 3), correction=0)
            invstd = (variance + 1e-3).rsqrt()
            filters = torch.randn(64, 64 // groups, 3, 3).div(24).to(dtype).contiguous(**last)
            by = lambda t: t.double().view(1, -1, 1, 1)
            normal = (y.double() - by(mean)) * by(invstd)
            argument = (normal if weight is None else normal * by(weight) + by(bias)) + (added.double() if residual else 0)
            z = (argument.relu() if activation == RELU else argument).to(dtype)
            geometry = ([stride] * 2, [1, 1], [1, 1], False, [0, 0], groups)
            dy = torch.randn_like(torch.convolution(z, filters, None, *geometry))
            got = torch.ops.kiln.link_backward(
                dz, y, mean, invstd, weight, bias, added, activation, 0.0, residual, dy, z, filters, None, *geometry,
                [True, True, False],
            )
            dx, dfilters, _ = torch.ops.aten.convolution_backward(
                dy.double(), z.double(), filters.double(), None, *geometry, [True, True, False]
            )
            g = dx + (dz.double() if more else 0)
            g = g * (argument > 0) if activation == RELU else g
            dbias, dweight = g.sum((0, 2, 3)), (g * normal).sum((0, 2, 3))
            scale = by(invstd) if weight is None else by(invstd) * by(weight)
            want = scale * (g - (by(dbias) + normal * by(dweight)) / (y.numel() // 64))
            for result, exact in zip(got, (want, g if residual else None, dweight, dbias, dfilters)):
                if exact is not None:
                    error = (result.double() - exact).abs().max() / exact.abs().max()
                    self.assertLessEqual(error.item(), TOLERANCE[dtype], (dtype, activation, stride))


if __name__ == "__main__":
    unittest.main()
