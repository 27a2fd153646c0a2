"""What has to hold on a GPU. Native results are those of cuDNN."""

import time
import unittest

import torch
import torch.nn.functional as F
from networks import Training, prepare
from torch import nn

import kiln.torch

CASES = [  # function, sizes of x, sizes of w, arguments
    (F.conv1d, (4, 16, 50), (24, 8, 5), dict(stride=2, padding=2, groups=2)),
    (F.conv2d, (4, 3, 32, 32), (16, 3, 7, 7), dict(stride=2, padding=3)),
    (F.conv2d, (4, 32, 20, 20), (64, 32, 3, 3), dict(padding=1)),
    (F.conv2d, (4, 32, 14, 14), (32, 1, 3, 3), dict(padding=1, groups=32)),
    (F.conv2d, (4, 64, 14, 14), (32, 64, 1, 1), dict()),
    (F.conv2d, (2, 32, 20, 20), (32, 32, 3, 3), dict(padding=2, dilation=2)),
    (F.conv_transpose2d, (4, 16, 12, 12), (16, 8, 4, 4), dict(stride=2, padding=1)),
    (F.conv3d, (2, 8, 8, 10, 10), (16, 8, 3, 3, 3), dict(padding=1)),
]
TOLERANCE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def results(function, x, w, b, arguments):
    tensors = [t.detach().clone(memory_format=torch.preserve_format).requires_grad_() for t in (x, w, b)]
    y = function(*tensors, **arguments)
    generator = torch.Generator("cuda").manual_seed(3)
    dy = torch.randn(y.shape, device="cuda", dtype=torch.float32, generator=generator).to(y.dtype)
    return [y.detach(), *torch.autograd.grad(y, tensors, dy)]


class Checks(unittest.TestCase):
    def setUp(self):
        torch.backends.cudnn.benchmark = True
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
        kiln.torch.disable()
        kiln.torch.clear()

    def tearDown(self):
        kiln.torch.disable()
        torch.backends.cudnn.allow_tf32 = True

    def operands(self):
        for function, x_sizes, w_sizes, arguments in CASES:
            for dtype in TOLERANCE:
                for last in (False, True)[: 1 if len(x_sizes) == 3 else 2]:
                    memory = torch.contiguous_format
                    if last:
                        memory = torch.channels_last if len(x_sizes) == 4 else torch.channels_last_3d
                    torch.manual_seed(0)
                    x = torch.randn(x_sizes, device="cuda", dtype=dtype).to(memory_format=memory)
                    w = (torch.randn(w_sizes, device="cuda", dtype=dtype) / 8).to(memory_format=memory)
                    outs = w_sizes[1] if function is F.conv_transpose2d else w_sizes[0]
                    b = torch.randn(outs, device="cuda", dtype=dtype)
                    what = f"{function.__name__} {x_sizes} {w_sizes} {dtype} last={last}"
                    yield what, lambda: results(function, x, w, b, arguments)

    def test_results_and_strides_are_cudnns(self):
        torch.backends.cudnn.benchmark = False
        native = [run() for _, run in self.operands()]
        kiln.torch.enable("background")  # all kernels at once
        for _, run in self.operands():
            run()
        kiln.torch.wait()
        kiln.torch.clear()
        kiln.torch.enable("wait")
        for (what, run), want in zip(self.operands(), native):
            for which, (a, c) in enumerate(zip(run(), want)):
                error = ((a - c).abs().max() / c.abs().max()).item()
                with self.subTest(f"{what} {which}"):
                    self.assertLess(error, TOLERANCE[c.dtype])
                    kept = [i for i in range(c.dim()) if c.shape[i] != 1]
                    self.assertEqual([a.stride(i) for i in kept], [c.stride(i) for i in kept])
        self.assertEqual(kiln.torch.report().native, 0, kiln.torch.report())

    def test_tf32_follows_the_flags(self):
        x = torch.randn(4, 64, 28, 28, device="cuda")
        w = torch.randn(64, 64, 3, 3, device="cuda")
        exact = F.conv2d(x.double(), w.double()).float()
        kiln.torch.enable("wait")
        error = lambda: ((F.conv2d(x, w) - exact).abs().max() / exact.abs().max()).item()
        self.assertLess(error(), 2e-6)
        with torch.backends.cudnn.flags(enabled=True, allow_tf32=True):
            self.assertGreater(error(), 2e-5)
        torch.backends.cudnn.conv.fp32_precision = "tf32"
        self.assertGreater(error(), 2e-5)
        torch.backends.cudnn.conv.fp32_precision = "ieee"
        self.assertLess(error(), 2e-6)

    def losses(self, mode, on_kiln, steps=50):
        kiln.torch.disable()
        if on_kiln:
            kiln.torch.enable("wait")
        model, x = prepare("resnet18", mode, 16)
        training = Training(model, x, mode)
        out = torch.stack([training.step() for _ in range(steps)]).tolist()
        kiln.torch.disable()
        return out

    def test_fifty_steps_of_training(self):
        for mode, tolerance in (("f32", 1e-3), ("tf32", 1e-2), ("amp", 2e-2)):
            native, ours = self.losses(mode, False), self.losses(mode, True)
            worst = max(abs(a - b) / abs(a) for a, b in zip(native, ours))
            print(f"50 steps of resnet18 {mode}: losses {native[0]:.5f} .. {native[-1]:.5f}, "
                  f"largest relative difference {worst:.1e}", flush=True)
            self.assertLess(worst, tolerance, mode)
            self.assertLess(ours[-1], ours[0])
        self.assertEqual(self.losses("f32", True, 5), self.losses("f32", True, 5))

    def test_plans_are_destroyed_and_those_of_graphs_are_kept(self):
        w = torch.randn(8, 8, 3, 3, device="cuda")
        kiln.torch.enable("wait", plans=8)
        x = torch.randn(2, 8, 30, 30, device="cuda")
        F.conv2d(x, w)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = F.conv2d(x, w)
        for round_ in range(2):
            for size in range(40):  # each evicts others while the GPU computes
                z = torch.randn(2, 8, 31 + size, 30, device="cuda")
                got = F.conv2d(z, w)
                with torch.backends.cudnn.flags(enabled=False):
                    self.assertLess((got - F.conv2d(z, w)).abs().max().item(), 1e-3)
        self.assertLessEqual(len(kiln.torch.report().rows), 16)
        x.copy_(torch.randn_like(x))
        graph.replay()
        kiln.torch.disable()
        self.assertLess((y - F.conv2d(x, w)).abs().max().item(), 1e-3)
        kiln.torch.enable(plans=4096)

    def test_graphs_captured_with_hits_and_with_a_miss(self):
        model = nn.Sequential(nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Conv2d(16, 8, 3)).cuda()
        for warm in (True, False):
            x = torch.randn(2, 8, 40 + warm, 40, device="cuda")
            want = model(x)
            kiln.torch.enable("wait")
            if warm:
                model(x)
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = model(x)
            y.zero_()
            graph.replay()
            self.assertLess(((y - want).abs().max() / want.abs().max()).item(), 1e-5)
            kiln.torch.clear()
            graph.replay()
            torch.cuda.synchronize()
            kiln.torch.disable()

    def test_compile(self):
        model, x = prepare("resnet18", "f32", 4)
        model.eval()
        want = model(x)
        kiln.torch.enable("wait")
        try:
            got = torch.compile(model)(x)
        except Exception as error:
            if "Cannot find a working triton" in str(error):
                self.skipTest("no triton")
            raise
        self.assertLess(((got - want).abs().max() / want.abs().max()).item(), 1e-4)

    def test_compile_pass(self):
        model, x = prepare("resnet18", "f32", 4)
        model, x = (t.half().to(memory_format=torch.channels_last) for t in (model.eval(), x))
        torch._dynamo.reset()
        with torch.no_grad(), kiln.torch.compile_pass() as made:
            want = model(x)
            try:
                got = torch.compile(model)(x)
            except Exception as error:
                if "Cannot find a working triton" in str(error):
                    self.skipTest("no triton")
                raise
        torch._dynamo.reset()
        self.assertLess(((got - want).abs().max() / want.abs().max()).item(), 2e-2)
        report = kiln.torch.report()
        self.assertEqual((report.served, report.native, len(made.replaced)), (20, 0, 20))
        self.assertTrue(any(carries == "norm, addition, relu" for _, carries in made.replaced))

    def test_transposed_with_what_follows(self):
        for dtype in (torch.float16, torch.float32):
            for sizes, last in (((4, 64, 20, 20), True), ((2, 24, 9, 7), False)):
                channels = sizes[1]
                x, w = torch.randn(sizes, device="cuda"), torch.randn(channels, 32, 2, 2, device="cuda")
                r = torch.randn(sizes[0], 32, 2 * sizes[2], 2 * sizes[3], device="cuda")
                x, w, b, r = (t.to(dtype) for t in (x, w, torch.randn(32, device="cuda"), r))
                if last:
                    x, r = (t.to(memory_format=torch.channels_last) for t in (x, r))
                y = F.conv_transpose2d(x.double(), w.double(), b.double(), 2)
                got = kiln.torch.conv_transpose2d(x, w, b, 2, residual=r, activation="silu")
                want = F.silu(y + r.double())
                self.assertLess(((got - want).abs().max() / want.abs().max()).item(), TOLERANCE[dtype])
                made, moments = torch.ops.kiln.convolution_moments(
                    x, w, b, [2, 2], [0, 0], [1, 1], True, [0, 0], 1
                )
                self.assertLess(((made - y).abs().max() / y.abs().max()).item(), TOLERANCE[dtype])
                mean = made.double().mean((0, 2, 3))
                self.assertLess((moments[1] - mean).abs().max().item(), 1e-5 * made.abs().max().item())
        self.assertEqual(kiln.torch.report().native, 0)

    def test_fused_model_in_a_graph(self):
        model, x = prepare("resnet18", "f32", 8)
        model = model.eval().half().to(memory_format=torch.channels_last)
        x = x.half().to(memory_format=torch.channels_last)
        fused = kiln.torch.fuse(model)
        latencies = {}
        with torch.no_grad():
            want = model(x)
            for what, run in (("native", model), ("kiln", model), ("fused", fused)):
                kiln.torch.disable()
                if what == "kiln":
                    kiln.torch.enable("wait")
                for _ in range(3):
                    run(x)
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    y = run(x)
                graph.replay()
                error = ((y - want).abs().max() / want.abs().max()).item()
                self.assertLess(error, 2e-2, what)
                begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
                begin.record()
                for _ in range(50):
                    graph.replay()
                end.record()
                torch.cuda.synchronize()
                latencies[what] = begin.elapsed_time(end) / 50
        print("resnet18 f16, batch 8, in a CUDA graph, ms:", latencies, flush=True)
        self.assertEqual(kiln.torch.report().native, 0)

    def test_streams_and_other_threads(self):
        x, w = torch.randn(4, 16, 30, 30, device="cuda"), torch.randn(16, 16, 3, 3, device="cuda")
        want = F.conv2d(x, w)
        kiln.torch.enable("wait")
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            big = torch.randn(4000, 4000, device="cuda")
            for _ in range(5):
                big = big @ big * 1e-4
            y = F.conv2d(x + 0 * big.nan_to_num(0, 0, 0)[0, 0], w)
        torch.cuda.current_stream().wait_stream(stream)
        self.assertLess(((y - want).abs().max() / want.abs().max()).item(), 1e-5)

    def test_memory_of_a_step(self):
        peaks = {}
        for way in ("native", "kiln"):
            kiln.torch.disable()
            if way == "kiln":
                kiln.torch.enable("wait")
            model, x = prepare("vgg16", "f32", 16)
            training = Training(model, x, "f32")
            for _ in range(2):
                training.step()
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            training.step()
            peaks[way] = torch.cuda.max_memory_allocated() / 2**20
            del model, training
            torch.cuda.empty_cache()
        print(f"peak of a step of vgg16, batch 16, f32: native {peaks['native']:.0f} MiB, "
              f"Kiln {peaks['kiln']:.0f} MiB", flush=True)
        self.assertLessEqual(peaks["kiln"], peaks["native"] * 1.01)

    def test_out_of_memory_is_an_error(self):
        kiln.torch.enable("wait")
        x = torch.randn(1, 1, 32, 32, device="cuda").expand(200000, 1, 32, 32)
        limit = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(2**30 / limit)
        try:
            with self.assertRaisesRegex(RuntimeError, "memory"):
                F.conv2d(x, torch.randn(64, 1, 3, 3, device="cuda"))
        finally:
            torch.cuda.set_per_process_memory_fraction(1.0)
            torch.cuda.empty_cache()

    def test_host_time_of_a_hit(self):
        x = torch.randn(1, 8, 8, 8, device="cuda")
        w, b = torch.randn(8, 8, 3, 3, device="cuda", requires_grad=True), torch.randn(8, device="cuda")

        def microseconds(run, count=2000):
            for _ in range(50):
                run()
            torch.cuda.synchronize()
            times = []
            for _ in range(5):
                started = time.perf_counter()
                for _ in range(count // 5):
                    run()
                times.append((time.perf_counter() - started) / (count // 5) * 1e6)
                torch.cuda.synchronize()
            return sorted(times)[2]

        def forward():
            with torch.no_grad():
                F.conv2d(x, w, b)

        def step():
            torch.autograd.grad(F.conv2d(x, w, b), w, dy)

        dy = torch.randn(1, 8, 6, 6, device="cuda")
        figures = {}
        for way in ("native", "kiln", "native policy"):
            kiln.torch.disable()
            if way != "native":
                kiln.torch.enable("wait" if way == "kiln" else "native")
            figures[way] = (microseconds(forward), microseconds(step))
            print(f"host time of F.conv2d, {way}: forward {figures[way][0]:.1f} us, "
                  f"forward and filter gradient {figures[way][1]:.1f} us", flush=True)
        kiln.torch.enable("wait")
        self.assertLessEqual(figures["kiln"][0], figures["native"][0] * 1.05)


if __name__ == "__main__":
    unittest.main()
