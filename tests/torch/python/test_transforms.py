"""torch.func, forward-mode derivatives, FLOP counts and meta tensors of Kiln's functions, beside PyTorch's."""

import unittest

import torch
import torch.nn.functional as F
from support import assert_close
from test_local import by_unfold
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode

import kiln.torch


def ours(x, w, b):
    return kiln.torch.conv2d(x, w, b, padding=1, groups=2, activation="silu")


def theirs(x, w, b):
    return F.silu(F.conv2d(x, w, b, padding=1, groups=2))


def local(x, w, b):
    return kiln.torch.local_conv2d(x, w, b, stride=2, padding=1, groups=2)


def by_hand(x, w, b):
    return by_unfold(x, w, b, stride=2, padding=1, groups=2)


def transposed(x, w, b):
    return kiln.torch.conv_transpose2d(x, w, b, stride=2, activation="relu")


def transposed_by_pytorch(x, w, b):
    return F.relu(F.conv_transpose2d(x, w, b, stride=2))


def double(*sizes):
    return torch.randn(*sizes, dtype=torch.float64)


CASES = [
    (ours, theirs, double(2, 4, 5, 5), double(6, 2, 3, 3), double(6)),
    (local, by_hand, double(2, 4, 5, 5), double(3, 3, 6, 2, 3, 3), double(6)),
    (transposed, transposed_by_pytorch, double(2, 4, 3, 3), double(4, 3, 2, 2), double(3)),
]


class Transforms(unittest.TestCase):
    def each(self, transform):
        for mine, right, *tensors in CASES:
            got, want = (transform(function, *tensors) for function in (mine, right))
            for a, b in zip(got, want):
                assert_close(self, a.detach(), b.detach(), mine.__name__)

    def test_forward_mode(self):
        tangents = lambda tensors: tuple(torch.ones_like(t) for t in tensors)
        self.each(lambda f, *t: torch.func.jvp(f, t, tangents(t)))

        def dual(function, *tensors):
            with forward_ad.dual_level():
                y = function(*(forward_ad.make_dual(t, torch.ones_like(t)) for t in tensors))
                return tuple(forward_ad.unpack_dual(y))

        self.each(dual)

    def test_gradients_of_torch_func(self):
        loss = lambda f: lambda *t: f(*t).pow(2).sum()
        self.each(lambda f, *t: torch.func.grad(loss(f), (0, 1, 2))(*t))
        self.each(lambda f, *t: torch.func.jacrev(lambda *u: f(*u).sum((2, 3)), (0, 1, 2))(*t))
        self.each(lambda f, *t: torch.func.jacfwd(lambda *u: f(*u).sum((2, 3)), (1, 2))(*t))

    def test_gradients_of_each_sample(self):
        loss = lambda f: lambda x, w, b: f(x[None], w, b).pow(2).sum()
        self.each(lambda f, *t: torch.func.vmap(torch.func.grad(loss(f), (1, 2)), (0, None, None))(*t))

    def test_a_fused_model(self):
        model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.ReLU()).eval()
        fused, x = kiln.torch.fuse(model), torch.randn(1, 2, 5, 5)
        got, want = (torch.func.jvp(m, (x,), (torch.ones_like(x),))[1] for m in (fused, model))
        assert_close(self, got.detach(), want.detach())


class Counts(unittest.TestCase):
    def flops(self, function, *tensors):
        tensors = [t.clone().requires_grad_() for t in tensors]
        with FlopCounterMode(display=False) as counter:
            function(*tensors).sum().backward()
        return counter.get_total_flops()

    def test_flops(self):
        # Without groups, of which PyTorch counts the filter's gradient as if there were none.
        fused = lambda x, w, b: kiln.torch.conv2d(x, w, b, activation="relu")
        plain = (fused, F.conv2d, double(2, 4, 5, 5), double(6, 4, 3, 3), double(6))
        for mine, right, *tensors in (plain, CASES[2]):
            self.assertEqual(self.flops(mine, *tensors), self.flops(right, *tensors))
        x, w, b = CASES[1][2:]
        self.assertEqual(self.flops(local, x, w, b), 3 * 2 * 2 * w.numel())

    def test_meta_tensors(self):
        for mine, right, *tensors in CASES:
            y = mine(*(t.to("meta") for t in tensors))
            self.assertEqual((y.shape, y.dtype, y.device.type), (right(*tensors).shape, torch.float64, "meta"))


if __name__ == "__main__":
    unittest.main()
