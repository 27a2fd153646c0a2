"""The parts of PyTorch that meet a convolution: compile, autocast, functorch, threads, fork, DDP."""

import copy
import importlib.util
import io
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import switching
import torch
import torch.nn.functional as F
from support import FULL, assert_close, counts, full_only, on_kiln
from torch import nn

import kiln.torch


def network():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, stride=2, groups=4),
        nn.ReLU(),
        nn.ConvTranspose2d(8, 4, 3),
    )


def step(model, x):
    x = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    y = model(x)
    y.pow(2).sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    return [y.detach(), x.grad, *gradients]


class Functions(unittest.TestCase):
    def test_autocast(self):
        x, model = torch.randn(2, 3, 12, 12), network()
        with on_kiln(), torch.autocast("cpu", torch.bfloat16):
            y = model(x)
            self.assertEqual(y.dtype, torch.bfloat16)
            y.float().sum().backward()
            self.assertEqual(counts()[1], 0)
        self.assertEqual(model[0].weight.grad.dtype, torch.float32)

    def test_vmap_and_functional_gradients(self):
        x, ws = torch.randn(2, 3, 6, 6), torch.randn(3, 4, 3, 3, 3)
        loss = lambda w: F.conv2d(x, w).pow(2).sum()
        functions = {
            "vmap": lambda: torch.func.vmap(lambda w: F.conv2d(x, w))(ws),
            "grad": lambda: torch.func.grad(loss)(ws[0]),
            "vmap of grad": lambda: torch.func.vmap(torch.func.grad(loss))(ws),
            "jvp": lambda: torch.func.jvp(lambda w: F.conv2d(x, w), (ws[0],), (ws[1],))[1],
        }
        for what, function in functions.items():
            want = function()
            with on_kiln():
                assert_close(self, function(), want, what)
                self.assertGreater(counts()[0], 0, what)

    def test_hooks_and_deepcopy_see_no_difference(self):
        x, model = torch.randn(1, 3, 8, 8), network()
        want = step(copy.deepcopy(model), x)
        with on_kiln():
            for a, b in zip(step(model, x), want):
                assert_close(self, a, b)


class Compile(unittest.TestCase):
    def check(self, memory_format, dynamic=None, sizes=(12,)):
        model = network().to(memory_format=memory_format)
        torch._dynamo.reset()
        compiled = torch.compile(model, dynamic=dynamic)
        for size in sizes:
            x = torch.randn(2, 3, size, size).to(memory_format=memory_format)
            want = step(model, x)
            with on_kiln():
                got = step(compiled, x)
                self.assertGreater(counts()[0], 0)
            for a, b in zip(got, want):
                assert_close(self, a, b, f"{memory_format} {size}")

    @full_only
    def test_both_layouts(self):
        self.check(torch.contiguous_format)
        self.check(torch.channels_last)

    @full_only
    def test_dynamic_shapes(self):
        self.check(torch.contiguous_format, True, (12, 14, 17))

    @full_only
    def test_export(self):
        x, model = torch.randn(2, 3, 12, 12), network()
        want = model(x)
        with on_kiln():
            program = torch.export.export(model, (x,))
            assert_close(self, program.module()(x).detach(), want.detach())


class Ahead(unittest.TestCase):
    @full_only
    def test_a_model_that_aotinductor_compiled(self):
        """It calls Kiln's operators in a process that has only called enable()."""
        model, x = network().eval(), torch.linspace(-1, 1, 864).view(2, 3, 12, 12)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            path = os.path.join(folder, "model.pt2")
            torch._inductor.aoti_compile_and_package(torch.export.export(kiln.torch.fuse(model), (x,)), package_path=path)
            torch.save((x, model(x)), path + ".results")
            code = f"""
import torch, kiln.torch
kiln.torch.enable(devices="cpu")
x, want = torch.load({path!r} + ".results")
assert torch.allclose(torch._inductor.aoti_load_package({path!r})(x), want, atol=1e-5)
assert kiln.torch.report().served == 3, kiln.torch.report()
"""
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            subprocess.run([sys.executable, "-c", code], check=True, timeout=300, env=environment)


class Traces(unittest.TestCase):
    """What records PyTorch's operators records those that PyTorch's own kernels call."""

    def setUp(self):
        self.model, self.x = network().eval(), torch.randn(2, 3, 12, 12)
        self.want = self.model(self.x).detach()

    def test_a_trace_has_the_convolutions(self):
        for policy in ("wait", "background", "measure"):
            with on_kiln(policy), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                traced = torch.jit.trace(self.model, torch.randn(2, 3, 12, 12))
                self.assertEqual(str(traced.inlined_graph).count("aten::_convolution"), 3)
                assert_close(self, traced(self.x).detach(), self.want, policy)
                F.conv2d(self.x, self.model[0].weight)
            self.assertGreater(sum(counts()), 0)

    def test_a_wrong_call_in_a_trace_has_pytorchs_words(self):
        with on_kiln(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with self.assertRaisesRegex(RuntimeError, "to have 3 channels"):
                torch.jit.trace(self.model, torch.randn(2, 4, 12, 12))

    @unittest.skipUnless(importlib.util.find_spec("onnx"), "onnx is not installed")
    def test_the_older_export_to_onnx(self):
        import onnx

        file = io.BytesIO()
        with on_kiln(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(self.model, (self.x,), file, dynamo=False)
        kinds = [node.op_type for node in onnx.load_from_string(file.getvalue()).graph.node]
        self.assertEqual(kinds, ["Conv", "Relu", "Conv", "Relu", "ConvTranspose"])

    def test_a_trace_of_a_fused_model(self):
        fused = kiln.torch.fuse(self.model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            traced = torch.jit.trace(fused, torch.randn(2, 3, 12, 12))
        assert_close(self, traced(self.x).detach(), self.want)


class Failures(unittest.TestCase):
    def test_a_missing_compiler_gives_one_warning(self):
        code = """
import torch, warnings, kiln.torch
kiln.torch.enable(devices="cpu")
with warnings.catch_warnings(record=True) as given:
    warnings.simplefilter("always")
    for channels in (3, 4):
        x = torch.randn(1, channels, 5, 5, requires_grad=True)
        torch.nn.functional.conv2d(x, torch.ones(2, channels, 3, 3)).sum().backward()
texts = [str(warning.message) for warning in given]
assert len(texts) == 1 and "no C++ compiler" in texts[0] and "kiln.torch.report()" in texts[0], texts
assert kiln.torch.report().served == 0
"""
        missing = {"KILN_HOST_CXX": "/nonexistent/c++", "KILN_CACHE": "off", "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", code], check=True, timeout=300, env={**os.environ, **missing})


class Threads(unittest.TestCase):
    def test_many_at_once(self):
        w = torch.randn(4, 3, 3, 3)
        inputs = [torch.randn(n, 3, 8, 8) for n in range(1, 5)]
        want = [F.conv2d(x, w) for x in inputs]
        failures = []

        def work():
            try:
                for _ in range(20):
                    for x, right in zip(inputs, want):
                        assert_close(self, F.conv2d(x, w), right)
            except BaseException as error:  # a thread's own would be lost
                failures.append(error)

        with on_kiln():
            threads = [threading.Thread(target=work) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(counts(), (8 * 20 * 4, 0))
        self.assertEqual(failures, [])


    def test_enabling_and_disabling_beside_them(self):
        work = switching.switch(1000 if FULL else 100, 3)
        self.assertEqual(work.faults, [])
        self.assertGreater(min(work.calls), 10)


class Convolving(torch.utils.data.Dataset):
    """Computes in the worker's process, forked after the parent's threads were at work."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return F.conv2d(torch.full((1, 2, 6, 6), float(index)), torch.ones(3, 2, 3, 3))


class Processes(unittest.TestCase):
    def test_workers_of_a_data_loader(self):
        for policy in ("wait", "background"):
            with on_kiln(policy):
                F.conv2d(torch.ones(1, 2, 6, 6), torch.ones(3, 2, 3, 3))
                loader = torch.utils.data.DataLoader(
                    Convolving(), num_workers=2, multiprocessing_context="fork", timeout=60
                )
                sums = [batch.unique().item() for batch in loader]
            self.assertEqual(sums, [18.0 * index for index in range(8)])

    def check_two_processes(self, name):
        script = os.path.join(os.path.dirname(__file__), name)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # where no wheel is installed
        subprocess.run([sys.executable, script], check=True, timeout=300, env=environment)

    @full_only
    def test_two_processes_of_ddp(self):
        self.check_two_processes("ddp_gloo.py")

    @full_only
    def test_two_processes_train_a_fused_model(self):
        self.check_two_processes("fused_gloo.py")


if __name__ == "__main__":
    unittest.main()
