"""fuse_training() of norms by statistics of an image."""

import copy
import unittest

import torch
import torch.nn.functional as F
from torch import nn

import kiln.torch


class Diffusion(nn.Module):
    """Residual blocks of image generators: norm, activation and convolution, twice."""

    def __init__(self, width=8):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(2, 4), nn.Conv2d(4, width, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, width, eps=1e-3), nn.Conv2d(width, width, 3, padding=1)
        self.short, self.out = nn.Conv2d(4, width, 1), nn.GroupNorm(1, width, affine=False)

    def forward(self, x):
        y = self.conv2(F.silu(self.norm2(self.conv1(F.silu(self.norm1(x))))))
        return F.relu(self.out(y) + self.short(x))


class Segmentation(nn.Module):
    """Of nnU-Net: convolutions of volumes, instance norms and leaky ReLU; one norm has running statistics."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv3d(3, 4, 3, padding=1), nn.InstanceNorm3d(4, affine=True)
        self.conv2, self.norm2 = nn.Conv3d(4, 4, 3, stride=2, padding=1), nn.InstanceNorm3d(4)
        self.norm3, self.batch = nn.InstanceNorm3d(4, track_running_stats=True), nn.BatchNorm3d(4)
        self.act = nn.LeakyReLU(0.01, inplace=True)

    def forward(self, x):
        x = self.act(self.norm2(self.conv2(self.act(self.norm1(self.conv1(x))))))
        return self.act(self.batch(self.norm3(x)))


def observed(model, x):
    """What a step gives: results, gradients, buffers."""
    x = x.clone().requires_grad_()
    y = model(x)
    loss = (y.double() * torch.linspace(-1, 1, y.numel(), dtype=torch.float64).view(y.shape)).sum()
    gradients = torch.autograd.grad(loss, [x, *model.parameters()])
    return [y.detach(), *gradients, *(b.clone() for b in model.buffers())]


class ImageNorms(unittest.TestCase):
    def carries(self, model):
        return {row["norm"]: row["carries"] or row["why"] for row in kiln.torch.fused_blocks(model).rows}

    def same(self, own, x, carries, tolerance=1e-9):
        fused = copy.deepcopy(kiln.torch.fuse_training(copy.deepcopy(own)))
        self.assertEqual(self.carries(fused), carries)
        for training in (True, False):
            own.train(training), fused.train(training)
            for got, want in zip(observed(fused, x), observed(own, x)):
                self.assertEqual((got.shape, got.dtype), (want.shape, want.dtype))
                error = (got.double() - want.double()).abs().max() / want.double().abs().max().clamp(min=1e-2)
                self.assertLessEqual(error.item(), tolerance)
        self.assertEqual(list(fused.state_dict()), list(own.state_dict()))

    def test_groups(self):
        torch.manual_seed(0)
        x = torch.randn(2, 4, 6, 5, dtype=torch.float64)
        carries = {"norm1": "silu", "norm2": "silu", "out": "addition, relu"}
        self.same(Diffusion().double(), x, carries)
        self.same(Diffusion().double(), x.to(memory_format=torch.channels_last), carries)
        self.same(Diffusion(), x.float().to(memory_format=torch.channels_last), carries, 1e-4)

    def test_instances(self):
        torch.manual_seed(0)
        x = torch.randn(2, 3, 5, 4, 6, dtype=torch.float64)
        self.same(Segmentation().double(), x, {
            "norm1": "leaky_relu", "norm2": "leaky_relu", "batch": "leaky_relu",
            "norm3": "InstanceNorm3d with running statistics is not served",
        })

    def test_autocast(self):
        """Types are PyTorch's: a result that a convolution reads may be of 16 bits, others are not."""
        torch.manual_seed(0)
        own = Diffusion()
        fused = kiln.torch.fuse_training(copy.deepcopy(own))
        x = torch.randn(2, 4, 6, 5)
        with torch.autocast("cpu", torch.bfloat16):
            got, want = observed(fused, x), observed(own, x)
        for a, b in zip(got, want):
            self.assertEqual(a.dtype, b.dtype)
            self.assertLessEqual((a.double() - b.double()).abs().max().item(), 0.06 * b.double().abs().max().item())

    def test_what_is_left(self):
        """Without a batch, with hooks, and errors in PyTorch's words."""
        torch.manual_seed(0)
        model = kiln.torch.fuse_training(nn.Sequential(nn.InstanceNorm1d(3, affine=True), nn.ReLU()))
        x = torch.randn(3, 7)
        self.assertLess((model(x) - F.relu(F.instance_norm(x[None])[0])).abs().max().item(), 1e-5)
        with self.assertRaisesRegex(ValueError, "expected 2D or 3D input"):
            model(torch.randn(1, 3, 4, 5))
        with self.assertRaisesRegex(ValueError, "Expected more than 1 value per channel"):
            kiln.torch.fuse_training(nn.Sequential(nn.GroupNorm(4, 4)))(torch.randn(1, 4))
        hooked = nn.Sequential(nn.GroupNorm(2, 4), nn.SiLU())
        hooked[0].register_forward_hook(lambda module, inputs, output: output * 2)
        self.assertIn("hooks", self.carries(kiln.torch.fuse_training(hooked))["0"])


if __name__ == "__main__":
    unittest.main()
