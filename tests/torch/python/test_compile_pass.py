"""compile_pass(): graphs that torch.compile and AOTInductor make, rewritten. Most tests rewrite a graph and execute it
without inductor's code, whose C++ takes seconds to compile."""

import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import differential_compile
import torch
import torch.nn.functional as F
from support import FULL, assert_close, counts, full_only
from torch import nn
from torch._inductor.codegen import common
from torch._inductor.custom_graph_pass import CustomGraphModulePass
from torch._inductor.decomposition import select_decomp_table
from torch.fx.experimental.proxy_tensor import make_fx

import kiln.torch
from kiln.torch import _activations, _operators
from kiln.torch._compile import _pass, _rewrite

KILN = torch.ops.kiln.convolution_bias_activation.default


def graph_of(function, *tensors):
    """The function as inductor's passes get it, its convolutions replaced, and what they carry."""
    _operators.register()
    with torch.no_grad():
        gm = make_fx(function, select_decomp_table(), tracing_mode="fake")(*tensors)
    gm.graph.eliminate_dead_code()
    carried = [carries for _, carries in _rewrite.rewrite(gm.graph, "cpu")]
    gm.recompile()
    return gm, carried


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        block = lambda c, k, s=1: nn.Sequential(nn.Conv2d(c, k, 3, s, 1, bias=False), nn.BatchNorm2d(k))
        self.stem, self.first, self.second = block(3, 8), block(8, 8), block(8, 8)
        self.down, self.third = block(8, 8, 2), block(8, 8, 2)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.relu(self.second(F.relu(self.first(x))) + x)
        return F.relu(self.third(x) + self.down(x)).mean((2, 3))


class MobileNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.widen, self.depth = nn.Conv2d(3, 12, 1, bias=False), nn.Conv2d(12, 12, 3, padding=1, groups=12, bias=False)
        self.narrow, self.gate = nn.Conv2d(12, 3, 1), nn.Conv2d(12, 12, 1)
        self.norms = nn.ModuleList(nn.BatchNorm2d(12) for _ in range(2))

    def forward(self, x):
        y = F.hardswish(self.norms[0](self.widen(x)))
        y = F.silu(self.norms[1](self.depth(y)))
        y = y * torch.sigmoid(self.gate(y.mean((2, 3), keepdim=True)))
        return self.narrow(y) + x


class ConvNeXt(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.depth = nn.Conv2d(3, 8, 2, 2), nn.Conv2d(8, 8, 7, padding=3, groups=8)
        self.norm, self.wide, self.narrow = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        x = self.stem(x)
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        return x + self.narrow(F.gelu(self.wide(y))).permute(0, 3, 1, 2)


EXPECTED = {
    ResNet: ["norm, relu", "norm, relu", "norm, addition, relu", "norm", "norm, addition, relu"],
    MobileNet: ["norm, hard_swish", "norm, silu", "bias, sigmoid", "bias, addition"],
    ConvNeXt: ["bias", "bias"],
}


def lifted(model):
    """The model as a function of its argument and of its tensors, and these, as inductor has it."""
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return lambda x, *t: torch.func.functional_call(model, dict(zip(named, t)), (x,)), [t.detach() for t in named.values()]


def prepared(cls):
    torch.manual_seed(3)
    model = cls().eval()
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d):
            for tensor in (norm.running_mean, norm.weight.data, norm.bias.data):
                tensor.uniform_(-1, 1)
            norm.running_var.uniform_(0.5, 2)
    return model


class Graphs(unittest.TestCase):
    def check(self, function, expected, *tensors):
        want = function(*tensors)
        kiln.torch.clear()
        gm, carried = graph_of(function, *tensors)
        self.assertEqual(carried, expected)
        got = gm(*tensors)
        self.assertEqual(counts(), (len(expected), 0))
        assert_close(self, got.detach(), want.detach())
        self.assertEqual(got.stride(), want.stride())
        return gm

    def setUp(self):
        torch.manual_seed(5)
        self.x, self.w, self.b = torch.randn(2, 4, 7, 6), torch.randn(4, 4, 3, 3), torch.randn(4)

    def conv(self, x, w, b=None, padding=1, **more):
        return F.conv2d(x, w, b, padding=padding, **more)

    def test_every_activation(self):
        for name, found in _activations.ACTIVATIONS.items():
            for coefficient in {found.coefficient, found.coefficient and 0.7}:
                function = lambda *t: found.apply(self.conv(*t), coefficient or 0.0)
                expected = ["bias" if name == "identity" else f"bias, {name}"]
                self.check(function, expected, self.x, self.w, self.b)
                gm, carried = graph_of(function, self.x.half(), self.w.half(), self.b.half())
                self.assertEqual(carried, expected)
                (call,) = [node for node in gm.graph.nodes if node.target is KILN]
                self.assertEqual(call.args[10:], (found.number, coefficient or 0.0))

    def test_models_in_both_layouts(self):
        for cls, expected in EXPECTED.items():
            for memory_format in (torch.contiguous_format, torch.channels_last):
                function, tensors = lifted(prepared(cls).to(memory_format=memory_format))
                self.check(function, expected, torch.randn(2, 3, 12, 12).to(memory_format=memory_format), *tensors)

    def test_norms_in_one_and_three_dimensions(self):
        for spatial, conv in ((1, F.conv1d), (3, F.conv3d)):
            x, w = torch.randn(2, 3, *(5,) * spatial), torch.randn(4, 3, *(3,) * spatial)
            mean, var = torch.randn(4), torch.rand(4) + 0.5
            function = lambda x, w, b, *p: F.relu(F.batch_norm(conv(x, w, b, padding=1), *p))
            self.check(function, ["bias, norm, relu"], x, w, self.b, mean, var)

    def test_norm_with_parameters_of_f32(self):
        numbers = torch.randn(4), torch.rand(4) + 0.5, torch.randn(4), torch.randn(4)
        function = lambda x, w, *p: F.relu(F.batch_norm(self.conv(x, w), *p))
        self.check(function, ["norm, relu"], self.x.bfloat16(), self.w.bfloat16(), *numbers)

    def test_filter_larger_than_the_result(self):
        function = lambda x, w, *p: F.batch_norm(self.conv(x, w), *p)
        self.check(function, [""], self.x[:1, :, :3, :3].contiguous(), self.w, self.b, self.b.abs() + 0.5)

    def test_what_is_read_twice_is_kept(self):
        x, w, b = self.x, self.w, self.b
        self.check(lambda x, w: (lambda y: F.relu(y) + y)(self.conv(x, w)), [""], x, w)
        self.check(lambda x, w: (lambda y: F.relu(y) + y)(self.conv(x, w) + x), ["addition"], x, w)
        self.check(lambda x, w: (lambda y: torch.sigmoid(y) * y.exp())(self.conv(x, w)), [""], x, w)
        self.check(lambda x, w: (lambda y: y + y)(self.conv(x, w)), [""], x, w)
        twice = lambda y, *p: F.batch_norm(y, *p) * y.mean()
        self.check(lambda x, w, *p: twice(self.conv(x, w), *p), [""], x, w, b, b.abs() + 1)

    def test_additions_that_are_not_of_the_result(self):
        x, w = self.x, self.w
        self.check(lambda x, w, b: F.relu(self.conv(x, w) + b.view(-1, 1, 1)), [""], x, w, self.b)
        self.check(lambda x, w: torch.add(self.conv(x, w), x, alpha=2), [""], x, w)
        self.check(lambda x, w: (self.conv(x, w) + x.double()).float(), [""], x, w)
        self.check(lambda x, w: self.conv(x, w) + 1.0, [""], x, w)
        self.check(lambda x, w: F.relu(self.conv(x, w)) + x, ["relu"], x, w)

    def test_results_in_a_wider_type(self):
        x, w = self.x.half(), self.w.half()
        # In f32 throughout: what the program rounds once would be rounded twice.
        self.check(lambda x, w: F.silu(self.conv(x, w).float()), [""], x, w)
        both = lambda s: s.half() * s.mean().half()
        self.check(lambda x, w: both(F.silu(self.conv(x, w).float())), ["silu"], x, w)
        # As older releases have two operations after one another.
        function = lambda x, w, *p: F.silu(F.batch_norm(self.conv(x, w).float(), *p)).half()
        self.check(function, ["norm, silu"], x, w, self.b, self.b.abs() + 1)

    def test_transposed_and_others(self):
        x, w, b = self.x, self.w, self.b
        self.check(lambda x, w, b: F.relu(F.conv_transpose2d(x, w, b, 2, 1)), ["bias, relu"], x, w, b)
        up = lambda groups: lambda x, w, *p: F.conv_transpose2d(x, w, padding=1, groups=groups) + x
        self.check(up(1), ["addition"], x, w)
        norm = lambda groups: lambda x, w, *p: F.silu(F.batch_norm(F.conv_transpose2d(x, w, groups=groups), *p))
        self.check(norm(1), ["norm, silu"], x, torch.randn(4, 3, 3, 3), *torch.rand(4, 3))
        self.check(norm(2), [""], x, torch.randn(4, 3, 3, 3), *torch.rand(4, 6))
        plain = lambda x, w: torch.ops.aten.convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1)
        self.assertEqual(graph_of(plain, x.to(torch.complex64), w.to(torch.complex64))[1], [])
        self.check(lambda x, w: F.relu(self.conv(x, w)), ["relu"], x.double(), w.double())

    def test_writes_between(self):
        """A graph that still writes in place: nothing moves over the write."""
        def function(x, w):
            y = self.conv(x, w)
            return F.relu(y), x.mul_(2)

        _operators.register()
        gm = make_fx(lambda x, w: function(x, w), tracing_mode="fake")(self.x.clone(), self.w)
        nodes = {node.target: node for node in gm.graph.nodes}
        write, relu = nodes[torch.ops.aten.mul_.Tensor], nodes[torch.ops.aten.relu.default]
        write.append(relu)
        self.assertEqual(_rewrite.rewrite(gm.graph, "cpu"), [("convolution", "")])


class Installing(unittest.TestCase):
    def there(self):
        return common.custom_backend_passes.get("cpu")

    def test_handles(self):
        common.init_backend_registration()
        before = self.there()
        first = kiln.torch.compile_pass(devices="cpu")
        installed = self.there()
        with kiln.torch.compile_pass(devices=["cpu", "cpu"]) as second:
            self.assertIs(self.there(), installed)
            first.remove()
            first.remove()
            self.assertIs(self.there(), installed)
        self.assertIs(self.there(), before)
        second.remove()
        self.assertIs(self.there(), before)

    def test_a_pass_that_was_there_goes_first(self):
        calls = []

        class Other(CustomGraphModulePass):
            def __call__(self, gm):
                calls.append([node.target for node in gm.graph.nodes if node.op == "call_function"])

            def uuid(self):
                return "other"

        common.init_backend_registration()
        before, other = self.there(), Other()
        common.custom_backend_passes["cpu"] = other
        try:
            with kiln.torch.compile_pass(devices="cpu") as handle:
                ones = torch.ones(1, 1, 1, 1)
                gm = make_fx(lambda x, w: F.conv2d(x, w), tracing_mode="fake")(ones, ones)
                self.there()(gm)
                self.assertIn("other", self.there().uuid())
            self.assertEqual(calls, [[torch.ops.aten.convolution.default]])
            self.assertEqual([carries for _, carries in handle.replaced], [""])
            self.assertIs(self.there(), other)
        finally:
            common.custom_backend_passes["cpu"] = before

    def test_refusals(self):
        for version in ("2.9.1", "2.16.0a0+git1234", "3.0.0", "1.13.1", "unknown"):
            with self.assertRaisesRegex(RuntimeError, "PyTorch 2.10 to 2.15; this is PyTorch " + version.split("+")[0]):
                _pass.check_release(version)
        for version in ("2.10.0", "2.11.0+cu130", "2.15.0+cu132", "2.15.0.dev20260101"):
            _pass.check_release(version)
        with self.assertRaisesRegex(ValueError, "expected 'cuda' or 'cpu'"):
            kiln.torch.compile_pass(devices="tpu")


class Generated(unittest.TestCase):
    def test_they_compute_what_they_did(self):
        done, fused, faults = differential_compile.run(0, 60 if FULL else 8)
        print(f"{done} models, {fused} convolutions with what follows them")
        self.assertEqual(faults, [], "\n\n".join(faults))
        self.assertGreater(fused, 3)


class Compiled(unittest.TestCase):
    def test_a_model_with_any_batch(self):
        model, expected = prepared(MobileNet), EXPECTED[MobileNet]
        torch._dynamo.reset()
        uncached = torch._inductor.config.patch(force_disable_caches=True)
        with kiln.torch.compile_pass(devices="cpu") as handle, torch.no_grad(), uncached:
            compiled = torch.compile(model, dynamic=True)
            for batch in (2, 3, 5):
                x = torch.randn(batch, 3, 12, 12)
                want = model(x)
                kiln.torch.clear()
                assert_close(self, compiled(x), want)
                self.assertEqual(counts(), (len(expected), 0))
            self.assertEqual([carries for _, carries in handle.replaced], expected)
        torch._dynamo.reset()

    def test_training(self):
        """Forward graphs keep what gradients read; gradients are PyTorch's, as enable() has it."""
        torch.manual_seed(7)
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3, bias=False), nn.BatchNorm2d(8), nn.SiLU())
        x = torch.randn(2, 3, 9, 9)

        def step(function):
            model[3].reset_running_stats()
            model.zero_grad()
            y = function(x)
            y.pow(2).sum().backward()
            return [y.detach(), model[3].running_var.clone(), *(p.grad.clone() for p in model.parameters())]

        want = step(model)
        torch._dynamo.reset()
        kiln.torch.clear()
        with kiln.torch.compile_pass(devices="cpu") as handle:
            for got, wanted in zip(step(torch.compile(model)), want):
                assert_close(self, got, wanted)
        self.assertEqual(counts()[0], 2)
        self.assertLessEqual(len(handle.replaced), 2)
        torch._dynamo.reset()

    def test_cached_graphs_are_of_the_pass(self):
        model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.ReLU()).eval()
        x = torch.randn(1, 2, 5, 5)

        def served():
            torch._dynamo.reset()
            kiln.torch.clear()
            with torch.no_grad():
                y = torch.compile(model)(x)
            self.assertEqual(y.stride(), (27, 9, 3, 1))
            return counts()[0]

        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch.dict(os.environ, TORCHINDUCTOR_CACHE_DIR=folder):
            with kiln.torch.compile_pass(devices="cpu") as handle:
                self.assertEqual((served(), len(handle.replaced)), (1, 1))
                self.assertEqual((served(), len(handle.replaced)), (1, 1))  # from the cache
                (row,) = kiln.torch.report().rows  # inductor has it so on CPUs
                self.assertIn("--layout nhwc --bias --act relu", row["problem"])
            self.assertEqual(served(), 0)
        torch._dynamo.reset()

    @full_only
    def test_a_model_that_aotinductor_compiled(self):
        """It calls Kiln's operators in a process that has only called enable()."""
        model, x = prepared(ResNet), torch.randn(2, 3, 12, 12)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad(), kiln.torch.compile_pass(devices="cpu"):
            path = os.path.join(folder, "model.pt2")
            torch._inductor.aoti_compile_and_package(torch.export.export(model, (x,)), package_path=path)
            torch.save((x, model(x)), path + ".results")
            code = f"""
import torch, kiln.torch
kiln.torch.enable(devices="cpu")
x, want = torch.load({path!r} + ".results")
assert torch.allclose(torch._inductor.aoti_load_package({path!r})(x), want, atol=1e-5)
assert kiln.torch.report().served == 5, kiln.torch.report()
"""
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            subprocess.run([sys.executable, "-c", code], check=True, timeout=300, env=environment)


if __name__ == "__main__":
    unittest.main()
