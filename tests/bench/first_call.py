#!/usr/bin/env python3
"""How long a new shape takes until it can be computed: Kiln's plans, exact and by a stand-in, beside
the first call of PyTorch's convolution (cuDNN), with benchmark off and on.

    tests/bench/first_call.py --out first_call.csv [--shapes 200] [--compiled 40] [--processes 20]

Shapes are random, from a seed: channels-last convolutions of usual sizes in f16, forward passes and
both gradients, none twice. Each contestant has a process of its own, with kernel caches that hold
no kernel of any of the shapes; those of stand-ins hold what `kiln prewarm --stand-ins` compiles:

    kiln compiled    kilnFinalizePlan, which compiles
    kiln loaded      kilnStartFinalizePlan with a stand-in, in a process that has loaded stand-ins
    kiln fresh       the same for a process's first shape; the stand-in's kernel is on disk
    cudnn heuristic  PyTorch's own first call, benchmark off, in a process that has used cuDNN
    cudnn benchmark  the same, benchmark on

Clocks begin when the descriptors are there. `usable_ms` is until the plan can be executed, `first_ms`
until its first result is there (for PyTorch: of the first call), `again_ms` what a later execution
takes, the host's part included. Needs PyTorch and a GPU; without one it runs on the host device, with
tiny shapes, which shows that it works and says nothing of speed.
"""

import argparse
import csv
import ctypes
import datetime
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src" / "python"))

COLUMNS = ["contestant", "direction", "shape", "usable_ms", "first_ms", "again_ms", "stand_in", "engine", "origin",
           "device", "date"]
DIRECTIONS = ("forward", "data", "filter")
STAND_IN_ANY, PLAN_ENGINE = 1502, 1401
ORIGINS = {1300: "compiled", 1301: "memory", 1302: "disk", 1303: "bundle"}


class Shape:
    """One convolution, of any of the three directions."""

    def __init__(self, chance, tiny):
        pick = chance.choice
        self.direction = pick(DIRECTIONS)
        if tiny:
            self.n, self.c, self.k = pick((1, 2)), pick((8, 16, 24)), pick((8, 16, 24))
            self.h, self.w = chance.randint(5, 16), chance.randint(5, 16)
        else:
            self.n, self.c, self.k = pick((1, 2, 4, 8, 16, 32)), 8 * chance.randint(2, 64), 8 * chance.randint(2, 64)
            self.h = self.w = chance.randint(7, 112)
            while self.n * max(self.c, self.k) * self.h * self.w > 1 << 25:
                self.h = self.w = self.h // 2
        self.r = pick((1, 3, 3, 3, 5))
        self.stride, self.padding = pick((1, 1, 1, 2)), self.r // 2

    def outputs(self, size):
        return (size + 2 * self.padding - self.r) // self.stride + 1

    def sizes(self):
        x, w = (self.n, self.c, self.h, self.w), (self.k, self.c, self.r, self.r)
        return x, w, (self.n, self.k, self.outputs(self.h), self.outputs(self.w))

    def __str__(self):
        return (f"mb{self.n}_ic{self.c}ih{self.h}iw{self.w}oc{self.k}kh{self.r}kw{self.r}"
                f"sh{self.stride}sw{self.stride}ph{self.padding}pw{self.padding}")


def shapes(seed, count, tiny):
    chance, seen, out = random.Random(seed), set(), []
    while len(out) < count:
        shape = Shape(chance, tiny)
        if (shape.direction, str(shape)) not in seen:
            seen.add((shape.direction, str(shape)))
            out.append(shape)
    return out


def milliseconds_since(begin):
    return (time.perf_counter() - begin) * 1e3


class Bench:
    """A contestant's process: the device, tensors of a shape, and the clock."""

    def __init__(self):
        import torch

        self.torch = torch
        self.cuda = torch.cuda.is_available()
        self.device = torch.cuda.get_device_name() if self.cuda else "host"

    def tensors(self, shape):
        """x, w, y, or what stands for them in a direction; in f16 on a GPU, else in f32."""
        torch = self.torch
        kind = dict(device="cuda", dtype=torch.float16) if self.cuda else dict(dtype=torch.float32)
        return [torch.randn(size, **kind).to(memory_format=torch.channels_last) for size in shape.sizes()]

    def wait(self):
        if self.cuda:
            self.torch.cuda.synchronize()

    def again(self, call):
        times, most_ms = [], 50
        while len(times) < 5 and sum(times) < most_ms:
            begin = time.perf_counter()
            call()
            self.wait()
            times.append(milliseconds_since(begin))
        return statistics.median(times)

    def row(self, shape, **columns):
        print(json.dumps(dict(columns, direction=shape.direction, shape=str(shape), device=self.device)), flush=True)


class Kiln(Bench):
    def __init__(self):
        super().__init__()
        import kiln.arrays._functions as functions

        self.functions = functions
        self.call = functions._call
        self.handle = ctypes.c_void_p()
        self.call("kilnCreate", ctypes.byref(self.handle), 1200 if self.cuda else 1201, 0)
        if self.cuda:
            stream = self.torch.cuda.current_stream().cuda_stream
            self.call("kilnSetStream", self.handle, ctypes.c_void_p(stream))
        self.plans = []  # destroyed by none: that would wait for compilers

    def descriptors(self, shape, x, w, y):
        f = self.functions

        def described(kind, setter, tensor):
            out = f._Descriptor(kind)
            self.call(setter, out, f.TYPES[str(tensor.dtype).split(".")[1]], 4, f._array(tensor.shape),
                      f._array(tensor.stride()))
            return out

        convolution, pair = f._Descriptor("Convolution"), lambda value: f._array([value] * 2)
        self.call("kilnSetConvolutionNdDescriptor", convolution, 2, pair(shape.padding), None, pair(shape.stride),
                  pair(1), f.CROSS_CORRELATION, f.TYPES["float32"])
        self.call("kilnSetConvolutionAlignment", convolution, ctypes.c_int64(16))
        tensor, filter_ = "kilnSetTensorNdDescriptor", "kilnSetFilterNdDescriptorStrided"
        return (described("Tensor", tensor, x), described("Filter", filter_, w), described("Tensor", tensor, y),
                convolution)

    def time(self, contestant, shape, finalize, results=True):
        x, w, y = self.tensors(shape)
        x_desc, w_desc, y_desc, convolution = self.descriptors(shape, x, w, y)
        one, zero = ctypes.byref(ctypes.c_float(1)), ctypes.byref(ctypes.c_float(0))
        xp, wp, yp = (ctypes.c_void_p(t.data_ptr()) for t in (x, w, y))
        name, descs, operands = {
            "forward": ("Forward", (x_desc, w_desc, convolution, y_desc), (one, xp, wp, zero, yp)),
            "data": ("BackwardData", (w_desc, y_desc, convolution, x_desc), (one, wp, yp, zero, xp)),
            "filter": ("BackwardFilter", (x_desc, y_desc, convolution, w_desc), (one, xp, yp, zero, wp)),
        }[shape.direction]
        plan = ctypes.c_void_p()

        def execute():
            self.call(f"kilnExecuteConvolution{name}", self.handle, plan, *operands)

        self.wait()
        begin = time.perf_counter()
        self.call(f"kilnCreateConvolution{name}Plan", self.handle, *descs, ctypes.byref(plan))
        finalize(plan)
        usable = milliseconds_since(begin)
        execute()
        self.wait()
        first = milliseconds_since(begin)
        self.plans.append(plan)
        if results:
            self.row(shape, contestant=contestant, usable_ms=usable, first_ms=first, again_ms=self.again(execute),
                     **self.served_by(plan))
        return plan

    def start(self, plan):
        self.call("kilnSetPlanStandIn", plan, STAND_IN_ANY)
        self.call("kilnStartFinalizePlan", plan)

    def finalize(self, plan):
        self.call("kilnFinalizePlan", plan)

    def served_by(self, plan):
        engine = ctypes.c_char_p()
        self.call("kilnGetPlanText", plan, PLAN_ENGINE, ctypes.byref(engine))
        info = PlanInfo(struct_size=ctypes.sizeof(PlanInfo))
        self.call("kilnGetPlanInfo", plan, ctypes.byref(info))
        return {"engine": engine.value.decode(), "stand_in": info.stand_in, "origin": ORIGINS[info.origin]}

    def withdraw_all(self):
        for plan in self.plans:
            self.call("kilnCancelFinalizePlan", plan, None)


class PlanInfo(ctypes.Structure):
    """kilnPlanInfo_t."""

    _fields_ = ([("struct_size", ctypes.c_size_t), ("origin", ctypes.c_int)]
                + [(name, ctypes.c_double) for name in ("generate", "lookup", "compile", "load", "total")]
                + [("workspace", ctypes.c_size_t), ("alignment", ctypes.c_size_t), ("blocks", ctypes.c_int64)]
                + [(name, ctypes.c_int) for name in ("threads", "shared", "registers", "local", "steps")]
                + [("best_workspace", ctypes.c_size_t), ("stand_in", ctypes.c_int)])


def run_compiled(given, warm):
    bench = Kiln()
    for shape in given:
        bench.time("kiln compiled", shape, bench.finalize)


def run_loaded(given, warm):
    """Stand-ins are loaded by the shapes of `warm`."""
    bench = Kiln()
    for shape in warm:
        bench.time("", shape, bench.start, results=False)
    for shape in given:
        bench.time("kiln loaded", shape, bench.start)
    bench.withdraw_all()


def run_fresh(given, warm):
    bench = Kiln()
    for shape in given:
        bench.time("kiln fresh", shape, bench.start)
    bench.withdraw_all()


def run_cudnn(contestant, benchmark, given, warm):
    bench = Bench()
    torch = bench.torch
    torch.backends.cudnn.benchmark = benchmark

    def call_of(shape):
        x, w, y = bench.tensors(shape)
        geometry = [[shape.stride] * 2, [shape.padding] * 2, [1, 1], False, [0, 0], 1]
        if shape.direction == "forward":
            return lambda: torch.ops.aten.convolution(x, w, None, *geometry)
        mask = [shape.direction == "data", shape.direction == "filter", False]
        return lambda: torch.ops.aten.convolution_backward(y, x, w, None, *geometry, mask)

    for shape in warm:
        call_of(shape)()
    for shape in given:
        call = call_of(shape)
        bench.wait()
        begin = time.perf_counter()
        call()
        bench.wait()
        first = milliseconds_since(begin)
        bench.row(shape, contestant=contestant, usable_ms=first, first_ms=first, again_ms=bench.again(call),
                  stand_in="", engine="", origin="")


RUNS = {
    "kiln compiled": run_compiled,
    "kiln loaded": run_loaded,
    "kiln fresh": run_fresh,
    "cudnn heuristic": lambda given, warm: run_cudnn("cudnn heuristic", False, given, warm),
    "cudnn benchmark": lambda given, warm: run_cudnn("cudnn benchmark", True, given, warm),
}


def in_a_process(contestant, first, count, options, cache):
    """The rows of `count` shapes from `first` on; of a process that fails or takes too long, what it wrote."""
    command = [sys.executable, __file__, "--run", contestant, "--first", str(first), "--count", str(count),
               "--seed", str(options.seed), "--warm", str(options.warm)] + (["--tiny"] if options.tiny else [])
    environment = {**os.environ, "KILN_CACHE_DIR": cache, "KILN_COMPILE_THREADS": "2"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        timer = threading.Timer(options.timeout, process.kill)
        timer.start()
        rows = [json.loads(line) for line in process.stdout if line.endswith("\n")]
        timer.cancel()
    if process.returncode != 0:
        print(f"{contestant}: its process ended with {process.returncode}", file=sys.stderr)
    return rows


def prewarm(cache):
    """Compiles the stand-ins that serve every shape."""
    from kiln import _library

    done = subprocess.run([_library.program(), "prewarm", "--stand-ins"], stdout=subprocess.PIPE,
                          env={**os.environ, "KILN_CACHE_DIR": cache}, text=True)
    print(f"kiln prewarm --stand-ins: {(done.stdout.splitlines() or ['failed'])[-1]}", flush=True)


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(math.ceil(part * len(ordered)) - 1, len(ordered) - 1)]


def summary(rows):
    lines = ["{:16} {:>6} {:>11} {:>9} {:>11} {:>9} {:>11}".format(
        "contestant", "shapes", "usable p50", "p99", "first p50", "p99", "again p50")]
    for contestant in RUNS:
        own = [row for row in rows if row["contestant"] == contestant]
        if not own:
            continue
        cells = [percentile([row[name] for row in own], part)
                 for name, part in (("usable_ms", 0.5), ("usable_ms", 0.99), ("first_ms", 0.5), ("first_ms", 0.99),
                                    ("again_ms", 0.5))]
        lines.append("{:16} {:6} {:11.2f} {:9.2f} {:11.2f} {:9.2f} {:11.3f}".format(contestant, len(own), *cells))
    return "\n".join(lines) + "\n(milliseconds)"


def write(path, rows):
    if not path:
        return
    date = datetime.date.today().isoformat()
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(dict(row, date=date) for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", help="the CSV file to write")
    parser.add_argument("--shapes", type=int, default=200)
    parser.add_argument("--compiled", type=int, default=40, help="of these, how many kiln compiled takes")
    parser.add_argument("--processes", type=int, default=20, help="fresh processes, one shape each")
    parser.add_argument("--warm", type=int, default=60, help="other shapes before, which load what is loaded once")
    parser.add_argument("--stand-ins", help="a kernel cache that has the stand-ins; by default they are compiled now")
    parser.add_argument("--contestants", default=",".join(RUNS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=600, help="seconds, of each process")
    parser.add_argument("--tiny", action="store_true", help="shapes for the host device")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        before = 60  # shapes of no contestant
        every = shapes(options.seed, before + options.first + options.count, options.tiny)
        RUNS[options.run](every[before + options.first:], every[:min(options.warm, before)])
        return
    rows, wanted = [], options.contestants.split(",")
    with tempfile.TemporaryDirectory() as folder:
        stand_ins = options.stand_ins or os.path.join(folder, "stand-ins")
        if not options.stand_ins and not options.tiny:
            prewarm(stand_ins)
        for contestant in wanted:
            cache = os.path.join(folder, "compiled") if contestant == "kiln compiled" else stand_ins
            if contestant == "kiln fresh":
                for i in range(options.processes):
                    rows += in_a_process(contestant, options.shapes + i, 1, options, cache)
            else:
                count = options.compiled if contestant == "kiln compiled" else options.shapes
                rows += in_a_process(contestant, 0, count, options, cache)
            write(options.out, rows)
    print(summary(rows))


if __name__ == "__main__":
    main()
