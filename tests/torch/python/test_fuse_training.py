"""fuse_training(): a model trained through fused blocks beside the same model as it is."""

import copy
import pickle
import random
import unittest

import differential_training
import torch
import torch.nn.functional as F
from support import FULL, assert_close, full_only
from torch import nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import kiln.torch


class Residual(nn.Module):
    def __init__(self, channels, more, **norm):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, more, 3, padding=1, bias=False), nn.BatchNorm2d(more, **norm)
        self.conv2, self.bn2 = nn.Conv2d(more, more, 1), nn.BatchNorm2d(more, **norm)
        self.relu = nn.ReLU(inplace=True)
        self.down = None if more == channels else nn.Sequential(nn.Conv2d(channels, more, 1), nn.BatchNorm2d(more, **norm))

    def forward(self, x, scale=None):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        shortcut = x if self.down is None else self.down(x)
        out += shortcut
        return self.relu(out) if scale is None else self.relu(out) * scale


class Net(nn.Module):
    """Residual blocks with and without a convolution beside them, and a norm before its convolution."""

    def __init__(self, **norm):
        super().__init__()
        self.layer1, self.layer2 = Residual(3, 4, **norm), Residual(4, 4, **norm)
        self.norm, self.act, self.last = nn.BatchNorm2d(4, **norm), nn.SiLU(), nn.Conv2d(4, 2, 1)

    def forward(self, x):
        return self.last(self.act(self.norm(self.layer2(self.layer1(x))))).mean((2, 3))


def pair(**norm):
    torch.manual_seed(0)
    own = Net(**norm).double()
    return kiln.torch.fuse_training(copy.deepcopy(own)), own, torch.randn(3, 3, 3, 2, dtype=torch.float64)


class FuseTraining(unittest.TestCase):
    def same(self, fused, own, *arguments):
        """Results, gradients and buffers."""
        results = []
        for model in (fused, own):
            y = model(*arguments)
            wanted = [p for p in model.parameters() if p.requires_grad]
            gradients = torch.autograd.grad(y.square().sum(), wanted, allow_unused=True)
            results.append([y.detach(), *gradients, *(b.clone() for b in model.buffers())])
        for got, want in zip(*results):
            if want is None:
                self.assertIsNone(got)
                continue
            error = (got.double() - want.double()).abs().max() / want.double().abs().max().clamp(min=1e-2)
            self.assertLessEqual(error.item(), 1e-9)

    def test_training_and_evaluation(self):
        fused, own, x = pair()
        rows = {row["norm"]: (row["conv"], row["carries"]) for row in kiln.torch.fused_blocks(fused).rows}
        self.assertEqual(rows, {
            "layer1.bn1": ("layer1.conv1", "moments, relu, gradient in layer1.conv2"),
            "layer1.bn2": ("layer1.conv2", "moments"),
            "layer1.down.1": ("layer1.down.0", "moments, addition, relu, gradient in layer2.conv1"),
            "layer2.bn1": ("layer2.conv1", "moments, relu, gradient in layer2.conv2"),
            "layer2.bn2": ("layer2.conv2", "moments, addition, relu"),
            "norm": ("", "silu"),
        })
        optimizers = [torch.optim.SGD(model.parameters(), 0.1, 0.9) for model in (fused, own)]
        for step in range(3):
            for model, optimizer in zip((fused, own), optimizers):
                for _ in range(2):  # gradients add up
                    model(x + step).square().sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            self.same(fused, own, x)
        for model in (fused, own):
            model.layer1.bn1.eval()  # frozen in a model that trains
            model.layer1.bn1.requires_grad_(False)
        self.same(fused, own, x)
        fused.eval(), own.eval()
        self.same(fused, own, x)

    def test_it_is_the_model(self):
        model = Net()
        parameters, buffers, names = list(model.parameters()), list(model.buffers()), list(model.state_dict())
        fused = kiln.torch.fuse_training(kiln.torch.fuse_training(model))
        self.assertIs(fused, model)
        self.assertIsInstance(model, Net)
        self.assertTrue(all(a is b for a, b in zip((*parameters, *buffers), (*model.parameters(), *model.buffers()))))
        self.assertEqual(list(model.state_dict()), names)
        x = torch.randn(2, 3, 3, 2)
        fused.eval()
        want, state = fused(x), copy.deepcopy(fused.state_dict())
        for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
            self.assertTrue(torch.equal(other(x), want))
            self.assertEqual(kiln.torch.fused_blocks(other).fused, 6)
        assert_close(self, kiln.torch.fuse(model)(x).detach(), want.detach())
        with FlopCounterMode(display=False) as counted:
            fused.train()(x).sum().backward()
        self.assertIs(type(kiln.torch.unfuse(model)), Net)
        with FlopCounterMode(display=False) as own:
            model(x).sum().backward()
        self.assertEqual(counted.get_total_flops(), own.get_total_flops())
        model.eval(), model.load_state_dict(state)
        assert_close(self, model(x).detach(), want.detach())

    def test_kinds_of_norms(self):
        for norm in ({"momentum": None}, {"affine": False}, {"track_running_stats": False}, {"eps": 0.1, "momentum": 0.5}):
            fused, own, x = pair(**norm)
            for _ in range(2):
                self.same(fused, own, x)
            fused.eval(), own.eval()
            self.same(fused, own, x)
        fused, own, x = pair()
        with self.assertRaisesRegex(ValueError, "more than 1 value per channel"):
            fused(x[:1, :, :1, :1])

    def test_states_that_come_later(self):
        fused, own, x = pair()
        calls = []
        for model in (fused, own):
            model.layer2.register_forward_hook(lambda *_: calls.append(1))
            model.layer1.bn2 = nn.InstanceNorm2d(4, track_running_stats=True)
        self.same(fused, own, x)
        self.assertEqual(calls, [1, 1])
        why = {row["norm"]: row["why"] for row in kiln.torch.fused_blocks(fused).rows if row["why"]}
        self.assertEqual(why["layer1.bn2"], "InstanceNorm2d with running statistics is not served")
        self.assertIn("layer2 has hooks", why["layer2.bn1"])
        self.assertEqual(kiln.torch.fused_blocks(kiln.torch.fuse_training(fused)).fused, 5)  # layer2 by itself
        self.same(fused, own, x)

    def test_what_cannot_be_recorded(self):
        class Decides(Net):
            def forward(self, x):
                x = self.layer1(x) if x.sum() > -1e9 else x
                self.kept = self.norm(x)
                return self.layer2(self.kept, 2.0)

        class Keeps(Net):
            def forward(self, x):
                self.kept = self.norm(self.layer1(x))
                return self.kept

        class Draws(Net):
            def forward(self, x):
                return self.norm(self.layer1(x)) * (1 if random.random() > 2 else 2)

        class Passes(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.round()

            @staticmethod
            def backward(ctx, g):
                return g

        class Rounds(Net):
            def forward(self, x):
                return Passes.apply(self.norm(self.layer1(x))).sum() + self.layer2(x[:, :1].expand(-1, 4, -1, -1)).sum()

        class Stops(Net):
            def forward(self, x):
                with torch.no_grad():
                    x = self.layer1(x)
                return self.norm(x)

        class Widens(Net):
            def forward(self, x):
                with torch.autocast("cpu", enabled=False):
                    return self.norm(self.layer1(x))

        for model, text in (
            (Decides, "torch.fx cannot trace it"), (Keeps, "Keeps sets kept"), (Draws, "draws random"),
            (Rounds, "an autograd function"), (Stops, "forward enters no_grad"), (Widens, "forward enters autocast"),
        ):
            fused, own = model().double(), model().double()
            own.load_state_dict(fused.state_dict())
            blocks = kiln.torch.fused_blocks(kiln.torch.fuse_training(fused))
            self.assertIs(type(fused), model)
            self.assertEqual(blocks.fused, 5)  # those of the two layers
            self.assertIn(text, next(row["why"] for row in blocks.rows if row["norm"] == "norm"))
            self.same(fused, own, torch.randn(2, 3, 3, 2, dtype=torch.float64))

    def test_checkpoints(self):
        """What is computed again is not counted again, unlike with PyTorch's modules."""
        for reentrant in (False, True):
            class Checkpoints(nn.Module):
                def __init__(self, inner):
                    super().__init__()
                    self.inner = inner

                def forward(self, x):
                    return checkpoint(self.inner, x, use_reentrant=reentrant)

            own = pair()[1]
            fused = kiln.torch.fuse_training(Checkpoints(copy.deepcopy(own)))
            self.assertEqual(kiln.torch.fused_blocks(fused).fused, 6)  # of the inner module
            self.assertIs(type(fused), Checkpoints)  # whose graph would not have the checkpoint
            for model in (fused, own):
                model(torch.ones(3, 3, 3, 2, dtype=torch.float64).cumsum(0).requires_grad_()).square().sum().backward()
            for got, want in zip((*fused.parameters(), *fused.buffers()), (*own.parameters(), *own.buffers())):
                got, want = (t if t.grad is None else t.grad for t in (got, want))
                self.assertLess((got.double() - want.double()).abs().max().item(), 1e-9)

    def test_gradients_of_gradients(self):
        fused, own, x = pair()
        penalties = []
        for model in (fused, own):
            given = x.clone().requires_grad_()
            (gradient,) = torch.autograd.grad(model(given).sigmoid().sum(), given, create_graph=True)
            penalty = gradient.square().sum()
            penalties.append([penalty.detach(), *torch.autograd.grad(penalty, list(model.parameters()), allow_unused=True)])
        for got, want in zip(*penalties):
            if want is not None and want.abs().max() > 1e-9:
                assert_close(self, got, want)

    def test_types(self):
        fused, own, x = pair()
        fused.float(), own.float()
        with torch.autocast("cpu", torch.bfloat16):
            assert_close(self, fused(x.float()).detach(), own(x.float()).detach())
        fused.bfloat16(), own.bfloat16()  # norms of bf16 are PyTorch's
        assert_close(self, fused(x.bfloat16()).detach(), own(x.bfloat16()).detach())

    def test_under_torch_compile(self):
        """One graph for each state, with Kiln's operators; none is compiled again in later steps."""
        fused, own, x = pair(momentum=None)
        graphs, count = [], lambda: torch._dynamo.utils.counters["stats"]["unique_graphs"]

        def keep(graph, inputs):
            graphs.append(str(graph.graph))
            return make_boxed_func(graph)

        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        compiled = torch.compile(fused, backend=aot_autograd(fw_compiler=keep, bw_compiler=keep), fullgraph=True)
        for states, change in enumerate((lambda m: m.train(), lambda m: m.layer1.bn1.eval(), lambda m: m.eval()), 1):
            change(fused), change(own)
            for _ in range(3):
                self.same(compiled, own, x)
            self.assertEqual(count(), states)
        fused.train(), own.train()
        self.same(compiled, own, x)
        self.assertEqual(count(), 3)
        for name in ("convolution_moments", "combine_moments", "normalize", "normalize_backward", "convolution_backward"):
            self.assertTrue(any(f"kiln.{name}.default" in graph for graph in graphs), name)

    @full_only
    def test_with_inductor(self):
        fused, own, x = pair()
        torch._dynamo.reset()
        compiled = torch.compile(fused, fullgraph=True)
        for _ in range(2):
            self.same(compiled, own, x)
        fused.eval(), own.eval()
        self.same(compiled, own, x)


class Generated(unittest.TestCase):
    def test_they_train_as_they_are(self):
        done, blocks, faults = differential_training.run(0, 40 if FULL else 6)
        print(f"{done} models, {blocks} blocks")
        self.assertEqual(faults, [], "\n\n".join(faults))
        self.assertGreater(blocks, 3)


if __name__ == "__main__":
    unittest.main()
