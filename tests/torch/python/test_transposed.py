"""Transposed convolutions with bias, residual, activation and moments in the kernel, and in blocks."""

import copy
import unittest

import torch
import torch.nn.functional as F
from support import TOLERANCE, assert_close, assert_same_strides, counts, run
from torch import nn

import kiln.torch
from kiln.torch import _operators
from kiln.torch._fuse import FusedConvolution

# Dimensions of space, filter, stride, padding, output padding, groups; of some outputs no tap of the filter.
SHAPES = ((2, 2, 2, 0, 0, 1), (2, 3, 2, 1, 1, 2), (2, 3, 1, 1, 0, 1), (2, 1, 2, 0, 1, 1), (1, 2, 3, 0, 2, 1), (3, 2, 2, 0, 0, 1))


def tensors(shape, dtype, last):
    spatial, size, *_, groups = shape
    x, w = torch.randn(2, 4, *(5, 4, 3)[:spatial]), torch.randn(4, 6 // groups, *(size,) * spatial)
    x, w, b = (t.to(dtype).requires_grad_() for t in (x, w, torch.randn(6)))
    return (x.detach().to(memory_format=torch.channels_last).requires_grad_() if last else x), w, b


class Functions(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(13)
        kiln.torch.clear()

    def test_what_follows_is_in_the_kernel(self):
        for shape in SHAPES:
            spatial, _, stride, padding, more, groups = shape
            own, kilns = (getattr(module, f"conv_transpose{spatial}d") for module in (F, kiln.torch))
            geometry = (stride, padding, more, groups)
            for dtype, last in ((torch.float32, False), (torch.float64, spatial == 2)):
                x, w, b = tensors(shape, dtype, last)
                r = torch.randn_like(own(x, w, b, *geometry)).requires_grad_()
                for with_residual, name, apply in ((True, "silu", F.silu), (False, "relu", F.relu), (True, "identity", None)):
                    given = (x, w, b, r) if with_residual else (x, w, b)

                    def ours(x, w, b, r=None):
                        return kilns(x, w, b, *geometry, residual=r, activation=name)

                    def pytorchs(x, w, b, r=0):
                        y = own(x, w, b, *geometry) + r
                        return y if apply is None else apply(y)

                    got, want = run(ours, *given), run(pytorchs, *given)
                    for each, right in zip(got, want):
                        assert_close(self, each, right, f"{shape} {name}")
                    assert_same_strides(self, got[0], want[0], f"{shape} {dtype}")
        self.assertEqual(counts()[1], 0)
        self.assertFalse(any(row["pass"] == "add" for row in kiln.torch.report().rows))  # of the bias

    def test_moments(self):
        _operators.register()
        for shape in SHAPES:
            spatial, _, stride, padding, more, groups = shape
            for dtype in (torch.float16, torch.float64):
                x, w, b = (t.detach() for t in tensors(shape, dtype, False))
                y, moments = torch.ops.kiln.convolution_moments(
                    x, w, b, [stride] * spatial, [padding] * spatial, [1] * spatial, True, [more] * spatial, groups
                )
                own = getattr(F, f"conv_transpose{spatial}d")
                want = own(x.double(), w.double(), b.double(), stride, padding, more, groups)
                assert_close(self, y, want.to(dtype), str(shape))
                each = y.double().transpose(0, 1).flatten(1)
                limit = 1e-5 if dtype == torch.float16 else 1e-12  # the numbers are f32, and f64
                n, mean, m2 = moments.double()
                self.assertEqual(n.tolist(), [each.shape[1]] * 6)
                self.assertLessEqual((mean - each.mean(1)).abs().max().item(), limit * each.abs().max().item())
                self.assertLessEqual((m2 - each.var(1, correction=0) * n).abs().max().item(), limit * m2.max().item())
        self.assertEqual(counts()[1], 0)


class Decoder(nn.Module):
    """Of U-Net and of DCGAN, with a shortcut."""

    def __init__(self):
        super().__init__()
        self.first, self.norm0 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.up, self.norm1 = nn.ConvTranspose2d(8, 6, 4, 2, 1, bias=False), nn.BatchNorm2d(6)
        self.side, self.norm2 = nn.ConvTranspose2d(8, 6, 3, 2, 1, output_padding=1, groups=2), nn.BatchNorm2d(6)
        self.same, self.norm3 = nn.ConvTranspose2d(6, 6, 3, padding=1), nn.BatchNorm2d(6)

    def forward(self, x):
        x = F.relu(self.norm0(self.first(x)))
        y = F.silu(self.norm1(self.up(x)) + self.norm2(self.side(x)))
        return F.relu(self.norm3(self.same(y)) + y)


class Models(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(17)
        self.model, self.x = Decoder(), torch.randn(3, 3, 5, 4)

    def test_blocks(self):
        own = copy.deepcopy(self.model).double()
        for dtype in (torch.float64, torch.float32):
            fused = kiln.torch.fuse_training(copy.deepcopy(self.model).to(dtype))
            kiln.torch.clear()
            results = []
            for each in (copy.deepcopy(own), fused):
                x = self.x.to(next(each.parameters()).dtype).requires_grad_()
                for _ in range(2):
                    y = each(x)
                weight = torch.linspace(0.5, 1.5, y.numel(), dtype=y.dtype).view(y.shape)
                kept = [p for name, p in each.named_parameters() if not name.endswith(("side.bias", "same.bias"))]
                results.append([y.detach(), *torch.autograd.grad((y * weight).sum(), [x, *kept]), *each.buffers()])
            for want, got in zip(*results):
                error = (got.double() - want.double()).abs().max() / want.double().abs().max()
                self.assertLessEqual(error.item(), 8 * TOLERANCE[dtype])
            self.assertEqual(counts()[1], 0)
        rows = {row["norm"]: (row["conv"], row["carries"]) for row in kiln.torch.fused_blocks(fused).rows}
        self.assertEqual(rows["norm0"], ("first", "moments, relu, gradient in up"))
        self.assertEqual(rows["norm1"], ("up", "moments"))
        self.assertEqual(rows["norm2"], ("side", "moments, addition, silu"))
        self.assertEqual(rows["norm3"], ("same", "moments, addition, relu"))

    def test_fused_for_inference(self):
        model = self.model.eval()
        for norm in (model.norm0, model.norm1, model.norm2, model.norm3):
            norm.running_var.uniform_(0.5, 2)
            norm.running_mean.uniform_(-1, 1)
        fused = kiln.torch.fuse(model)
        kiln.torch.clear()
        with torch.no_grad():
            assert_close(self, fused(self.x), model(self.x))
        self.assertEqual(counts(), (4, 0))
        chains = {name: (m.activation, m.addition) for name, m in fused.named_modules() if isinstance(m, FusedConvolution)}
        self.assertEqual([activation for activation, _ in chains.values()].count("silu"), 1)
        self.assertEqual(len(chains), 4)
        self.assertFalse(any(node.target is torch.add for node in fused.graph.nodes))


if __name__ == "__main__":
    unittest.main()
