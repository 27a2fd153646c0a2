#!/usr/bin/env python3
"""Times convolutions of Kiln beside PyTorch's own, which are those of cuDNN's graph interface: every
engine, any workspace (torch.backends.cudnn.benchmark).

    tests/bench/layers.py tests/bench/h200/layers_f16_nhwc.csv --out new.csv [--suite resnet50,vgg16] [--type f16]

The cases are those of a file such as it or network_layers.py writes. Both run in one process on the
same random tensors, and their samples alternate. A layer is timed as it runs inside a step: many
calls back to back in a CUDA graph, on tensors that rotate through more than the L2 cache. The column
flushed_us has beside it the time of a single call after the L2 cache was flushed. Needs PyTorch and
kiln.torch (src/python). Without a GPU it runs on the host device, which shows that it works and says
nothing of speed.
"""

import argparse
import csv
import datetime
import math
import pathlib
import re
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python"))

import torch

import kiln.torch

COLUMNS = ["suite", "layer", "batch", "operation", "direction", "type", "layout", "math", "contestant", "kernel",
           "clock", "median_us", "min_us", "max_us", "samples", "tflops", "gbps", "flops", "bytes", "workspace_bytes",
           "relative_rms", "max_error", "note", "problem", "flushed_us"]
TYPES = {"f32": torch.float32, "f64": torch.float64, "f16": torch.float16, "bf16": torch.bfloat16}


def in_layout(tensor, layout):
    """Channels last by strides, because PyTorch has no memory format for 1-D tensors with channels last."""
    if layout == "nchw":
        return tensor.contiguous()
    return tensor.movedim(1, -1).clone(memory_format=torch.contiguous_format).movedim(-1, 1)


class Case:
    """A row's problem as PyTorch has it, with as many sets of tensors as exceed `rotated` bytes."""

    def __init__(self, row, device, rotated=0):
        line = row["problem"].split()[-1]
        entries = {name: int(value) for name, value in re.findall(r"([a-z]+)(\d+)", line)}
        axes = [axis for axis in "dhw" if f"i{axis}" in entries]
        self.row = row
        self.stride, self.padding, dilation = ([entries[kind + axis] for axis in axes] for kind in "spd")
        self.dilation = [value + 1 for value in dilation]
        self.groups = entries["g"]
        n, c, k = entries["mb"], entries["ic"], entries["oc"]
        sizes = {"x": (n, c, *(entries["i" + axis] for axis in axes)),
                 "w": (k, c // self.groups, *(entries["k" + axis] for axis in axes)),
                 "y": (n, k, *(entries["o" + axis] for axis in axes))}
        self.flops = 2 * math.prod(sizes["y"]) * math.prod(sizes["w"][1:])
        self.bytes = sum(math.prod(size) for size in sizes.values()) * TYPES[row["type"]].itemsize
        self.sets = []
        for _ in range(rotated // self.bytes + 1):
            x, w, dy = (in_layout(torch.randn(size, device=device).to(TYPES[row["type"]]), row["layout"])
                        for size in sizes.values())
            self.sets.append((x, w / math.sqrt(w[0].numel()), dy))

    def run(self, turn=0):
        x, w, dy = self.sets[turn % len(self.sets)]
        arguments = (self.stride, self.padding, self.dilation, False, [0] * len(self.stride), self.groups)
        if self.row["direction"] == "fwd":
            return torch.ops.aten.convolution(x, w, None, *arguments)
        of_x = self.row["direction"] == "dgrad"
        gradients = torch.ops.aten.convolution_backward(dy, x, w, [0], *arguments, [of_x, not of_x, False])
        return gradients[0 if of_x else 1]


class Clock:
    """Times in microseconds."""

    def __init__(self, device):
        self.gpu = device == "cuda"
        self.flush = torch.empty(64 << 20, dtype=torch.int32, device=device) if self.gpu else None
        # Twice the L2 cache: what one call leaves in it is gone when its tensors' turn comes again.
        self.rotated = 2 * torch.cuda.get_device_properties(0).L2_cache_size if self.gpu else 0

    def time(self, run):
        if not self.gpu:
            start = time.perf_counter()
            run()
            return (time.perf_counter() - start) * 1e6
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e3

    def flushed(self, run):
        """One call's time with a cold L2 cache."""
        if self.gpu:
            self.flush.zero_()
        return self.time(run)

    def recorded(self, case):
        """A function that gives the time of a call among others like it: back to back in a CUDA graph."""
        if not self.gpu:
            return lambda: self.time(case.run)
        calls = max(12, len(case.sets))
        for turn in range(len(case.sets)):  # kernels are loaded, and chosen, here
            case.run(turn)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for turn in range(calls):
                case.run(turn)
        graph.replay()
        return lambda: self.time(graph.replay) / calls


def compile_ahead(rows, device):
    """Compiles the kernels of all cases side by side; cuDNN measures its engines meanwhile."""
    started = time.time()
    kiln.torch.set_policy("background")
    for row in rows:
        torch.backends.cudnn.allow_tf32 = row["math"] == "tf32"
        Case(row, device).run()
    kiln.torch.wait()
    print(f"compiled {len(rows)} problems in {time.time() - started:.0f} s", flush=True)


def measure(case, clock, samples):
    """For each contestant, its times back to back and with a flushed L2 cache; the relative difference of the results,
    and Kiln's kernel."""
    times, results, replays = {"wait": ([], []), "native": ([], [])}, {}, {}
    kiln.torch.clear()  # so that the report has this case alone
    for policy in times:
        kiln.torch.set_policy(policy)
        results[policy] = case.run().double()
        replays[policy] = clock.recorded(case)
    error = (results["wait"] - results["native"]).norm() / results["native"].norm()
    kernels = [f"{row['engine']} {row['tile']}".strip() for row in kiln.torch.report().rows if row["served"]]
    for _ in range(samples):
        for policy, (together, alone) in times.items():
            kiln.torch.set_policy(policy)
            together.append(replays[policy]())
            alone.append(clock.flushed(case.run))
    return times["wait"], times["native"], error.item(), " + ".join(kernels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    for name in ("suite", "layer", "direction", "type", "layout", "math"):
        parser.add_argument(f"--{name}", default="", help="some of them, separated by ','; default: all")
    parser.add_argument("--samples", type=int, default=20)
    arguments = parser.parse_args()
    wanted = {name: getattr(arguments, name).split(",") for name in
              ("suite", "layer", "direction", "type", "layout", "math") if getattr(arguments, name)}
    with arguments.cases.open(encoding="utf-8", newline="") as file:
        table = csv.DictReader(line for line in file if not line.startswith("#"))
        rows = [row for row in table if row["contestant"] == "kiln"
                and all(row[name] in values for name, values in wanted.items())]
    if not rows:
        sys.exit(f"{arguments.cases} has no case of {wanted}")

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0
    kiln.torch.enable(devices=device)
    clock = Clock(device)
    name = torch.cuda.get_device_name() if device == "cuda" else "the host device"
    version = torch.backends.cudnn.version() if device == "cuda" else None
    cudnn = f"{version // 10000}.{version // 100 % 100}.{version % 100}" if version else "none:"
    with arguments.out.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC\n# device: {name}\n"
                   f"# cudnn: {cudnn} (graph interface, every engine and any workspace, through PyTorch "
                   f"{torch.__version__.split('+')[0]} with cudnn.benchmark)\n"
                   "# method: both libraries in one process on the same random tensors, calls back to back in a CUDA "
                   "graph on tensors that rotate through more than L2 (flushed_us: a single call, L2 flushed before "
                   f"it), median of {arguments.samples} samples\n")
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        compile_ahead(rows, device)
        for row in rows:
            torch.backends.cudnn.allow_tf32 = row["math"] == "tf32"
            case = Case(row, device, clock.rotated)
            own, native, error, kernel = measure(case, clock, arguments.samples)
            for contestant, (times, flushed) in (("kiln", own), ("cudnn graph", native)):
                us = statistics.median(times)
                writer.writerow({
                    **{column: row[column] for column in
                       ("suite", "layer", "batch", "operation", "direction", "type", "layout", "math", "problem")},
                    "contestant": contestant, "kernel": kernel if contestant == "kiln" else "", "clock": "device",
                    "median_us": f"{us:.6g}", "min_us": f"{min(times):.6g}", "max_us": f"{max(times):.6g}", "samples": len(times),
                    "tflops": f"{case.flops / us / 1e6:.6g}", "gbps": f"{case.bytes / us / 1e3:.6g}",
                    "flops": case.flops, "bytes": case.bytes,
                    "note": f"differs from cuDNN's by {error:.1e}" if contestant == "kiln" else "",
                    "flushed_us": f"{statistics.median(flushed):.6g}"})
            file.flush()
            together, alone = (statistics.median(theirs) / statistics.median(ours) for theirs, ours in zip(native, own))
            print(f"{together:6.2f}x (flushed {alone:.2f}x)  {row['suite']} {row['layer']}: {row['problem']}, "
                  f"results differ by {error:.1e}, {statistics.median(own[0]):.1f} us by {kernel}", flush=True)


if __name__ == "__main__":
    main()
