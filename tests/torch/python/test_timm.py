"""What timm's networks are made of: norms with an activation inside, and modules that do nothing between others."""

import copy
import unittest

import torch
import torch.nn.functional as F
from torch import nn

import kiln.torch
from kiln.torch._fuse import FusedConvolution


class BatchNormAct2d(nn.BatchNorm2d):
    """As timm's: what it does and how its parts are called."""

    def __init__(self, channels, act, drop=None):
        super().__init__(channels)
        self.drop = drop or nn.Identity()
        self.act = act

    def forward(self, x):
        if self.training:
            self.num_batches_tracked.add_(1)
        x = F.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, self.training, self.momentum, self.eps
        )
        return self.act(self.drop(x))


BatchNormAct2d.__module__ = "timm.layers.norm_act"  # by which Kiln knows it


class Net(nn.Module):
    def __init__(self, act=nn.SiLU, drop=None):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 4, 3, padding=1), BatchNormAct2d(4, act(), drop)
        self.conv2, self.bn2 = nn.Conv2d(4, 4, 3, padding=1, groups=4), BatchNormAct2d(4, nn.Identity())
        self.conv3, self.bn3, self.blur, self.relu = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4), nn.Identity(), nn.ReLU()

    def forward(self, x):
        x = self.bn1(self.conv1(x))
        return self.relu(self.blur(self.bn3(self.conv3(x + self.bn2(self.conv2(x))))))


def outcome(model, x):
    y = model(x)
    gradients = torch.autograd.grad(y.square().sum(), list(model.parameters()), allow_unused=True)
    return [y.detach(), *(g for g in gradients if g is not None), *(b.clone().double() for b in model.buffers())]


class Timm(unittest.TestCase):
    def same(self, model, own, x):
        for got, want in zip(outcome(model, x), outcome(own, x), strict=True):
            torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)

    def setUp(self):
        torch.manual_seed(0)
        self.x = torch.randn(3, 3, 5, 4, dtype=torch.float64)

    def test_training(self):
        own = Net().double()
        fused = kiln.torch.fuse_training(copy.deepcopy(own))
        rows = {row["norm"]: (row["conv"], row["carries"]) for row in kiln.torch.fused_blocks(fused).rows}
        self.assertEqual(rows, {
            "bn1": ("conv1", "moments, silu"),
            "bn2": ("conv2", "moments, addition, gradient in conv3"),
            "bn3": ("conv3", "moments, relu"),
        })
        for training in (True, True, False):
            self.same(fused.train(training), own.train(training), self.x)
        fused.train(), own.train()
        for model in (fused, own):
            model.bn1.act.register_forward_hook(lambda module, arguments, result: result * 2)
            model.blur.register_forward_hook(lambda module, arguments, result: result * 3)
        self.same(fused, own, self.x)
        rows = {row["norm"]: row["carries"] for row in kiln.torch.fused_blocks(fused).rows}
        self.assertEqual(rows, {"bn1": "moments", "bn2": "moments, addition, gradient in conv3", "bn3": "moments"})

    def test_inference(self):
        own = Net().double().eval()
        own.bn1.running_mean.uniform_(-1, 1), own.bn1.running_var.uniform_(0.5, 2)
        fused = kiln.torch.fuse(own)
        self.assertEqual([type(m) for m in fused.children()], 3 * [FusedConvolution])
        torch.testing.assert_close(fused(self.x).detach(), own(self.x).detach(), rtol=1e-9, atol=1e-9)

    def test_parts_that_kiln_does_not_have(self):
        for model in (Net(nn.Softplus), Net(nn.ReLU, nn.Dropout(0.0))):
            own = model.double()
            fused = kiln.torch.fuse_training(copy.deepcopy(own))
            carries = [row["carries"] for row in kiln.torch.fused_blocks(fused).rows]
            self.assertEqual(carries, ["moments", "moments, addition, gradient in conv3", "moments, relu"])
            self.same(fused, own, self.x)
            own.eval()
            torch.testing.assert_close(kiln.torch.fuse(own)(self.x).detach(), own(self.x).detach(), rtol=1e-9, atol=1e-9)


if __name__ == "__main__":
    unittest.main()
