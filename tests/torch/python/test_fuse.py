"""fuse() of generated models, and single faults that once were there."""

import unittest

import differential
import torch
from support import FULL, assert_close
from torch import fx, nn

import kiln.torch


class Generated(unittest.TestCase):
    def test_they_give_what_the_models_give(self):
        done, fused, faults = differential.run(0, 400 if FULL else 40, float("inf") if FULL else 60)
        print(f"{done} models, {fused} fused convolutions")
        self.assertEqual(faults, [], "\n\n".join(faults))
        self.assertGreater(fused, done)


class InPlace(nn.Module):
    """What a convolution reads is changed before its chain ends."""

    def __init__(self):
        super().__init__()
        self.conv, self.other, self.act = nn.Conv2d(2, 2, 1), nn.Conv2d(2, 2, 1), nn.ReLU(inplace=True)

    def forward(self, x):
        x = x * 1
        y = self.conv(x)
        z = self.act(x)
        z[:, 0] = 1
        return self.other(z) + y


class Single(unittest.TestCase):
    def check(self, model, x, dtype=None):
        want = model(x.clone()).detach()
        fused = kiln.torch.fuse(model)
        for again in (fused, kiln.torch.fuse(fused), fx.symbolic_trace(fused)):
            assert_close(self, again(x.clone()).detach(), want)
        return fused

    def test_writes_between(self):
        self.check(InPlace().eval(), torch.randn(2, 2, 3, 3))

    def test_groups_of_a_transposed_convolution(self):
        norm = nn.BatchNorm2d(6)
        norm.running_var.uniform_(0.5, 2), norm.running_mean.uniform_(-1, 1)
        fused = self.check(nn.Sequential(nn.ConvTranspose2d(4, 6, 3, groups=2), norm).eval(), torch.randn(2, 4, 4, 4))
        self.assertEqual([type(m) for m in fused.children()], [kiln.torch._fuse.FusedConvolution])
        with self.assertRaisesRegex(ValueError, "expected 4, a batch"):
            fused(torch.randn(4, 4, 4))

    def test_a_filter_that_a_hook_computes_stays_so(self):
        conv = nn.utils.spectral_norm(nn.Conv2d(2, 3, 3))
        model = nn.Sequential(conv, nn.ReLU()).eval()
        fused = self.check(model, torch.randn(1, 2, 4, 4))
        self.assertEqual(list(fused.state_dict()), list(model.state_dict()))
        for whole in (conv.eval(), nn.utils.parametrizations.weight_norm(nn.Conv2d(2, 3, 3)).eval()):
            assert_close(self, kiln.torch.fuse(whole)(torch.ones(1, 2, 4, 4)).detach(), whole(torch.ones(1, 2, 4, 4)).detach())

    def test_a_residual_of_another_type_under_autocast(self):
        class Skip(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(2, 2, 1)

            def forward(self, x):
                return self.conv(x) + x

        model, x = Skip().eval(), torch.randn(1, 2, 3, 3)
        with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
            want, got = model(x), kiln.torch.fuse(model)(x)
        self.assertEqual((want.dtype, got.dtype), (torch.float32, torch.float32))
        self.assertLess((want - got).abs().max().item(), 3e-2)

    def test_a_hooked_block_is_not_changed(self):
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = nn.Sequential(nn.Conv2d(2, 2, 1), nn.ReLU())

            def forward(self, x):
                return self.block(x) + self.block[0](x)

        model = Outer().eval()
        calls = []
        model.block.register_forward_hook(lambda *_: calls.append(1))
        model.register_forward_pre_hook(lambda *_: calls.append(2))
        before = str(model)
        fused = kiln.torch.fuse(model)
        self.assertEqual(str(model), before)
        calls.clear()
        fused(torch.ones(1, 2, 3, 3))
        self.assertEqual(calls, [2, 1])


if __name__ == "__main__":
    unittest.main()
