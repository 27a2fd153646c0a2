#!/usr/bin/env python3
"""Times what one convolution call costs the host, forward and backward, on an otherwise idle stream: PyTorch before Kiln is
there, Kiln's calls, and those that Kiln leaves to PyTorch.

    tests/bench/host_time.py --out tests/bench/h200/host_time.csv

Needs PyTorch and kiln.torch (src/python). Without a GPU it runs on the host device, which shows that it works.
"""

import argparse
import csv
import datetime
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python"))

import torch

from network_steps import COLUMNS, DEVICE, GPU, synchronize

METHOD = ("one image, 64 to 64 channels, 3x3, 8x8 pixels, with a bias; the operators convolution and convolution_backward (all "
          "three gradients); median of {samples} means of {calls} calls each on an idle stream; PyTorch before kiln.torch was "
          "enabled, then the policies and kiln.torch.disable() one after the other")


def calls_of(kind, layout):
    """{direction: a call}"""
    x, w, dy, b = (torch.randn(size, device=DEVICE).to(kind) for size in ((1, 64, 8, 8), (64, 64, 3, 3), (1, 64, 8, 8), 64))
    if layout == "nhwc":
        x, w, dy = (tensor.to(memory_format=torch.channels_last) for tensor in (x, w, dy))
    geometry = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    return {"forward": lambda: torch.ops.aten.convolution(x, w, b, *geometry),
            "backward": lambda: torch.ops.aten.convolution_backward(dy, x, w, [64], *geometry, [True, True, True])}


def microseconds(call, samples, calls):
    for _ in range(min(60, calls)):
        call()
    means = []
    for _ in range(samples):
        synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        means.append((time.perf_counter() - start) / calls * 1e6)
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--calls", type=int, default=200)
    arguments = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    import kiln.torch

    rows = []

    def measure(contestant):
        for kind, layout, name in ((torch.float16, "nhwc", "f16"), (torch.float32, "nchw", "f32")):
            for direction, call in calls_of(kind if GPU else torch.float32, layout).items():
                call()
                kiln.torch.wait()
                means = microseconds(call, arguments.samples, arguments.calls)
                rows.append({"suite": "latency", "layer": f"{direction} call, {name} {layout.upper()}", "batch": 1,
                             "operation": "conv", "direction": direction, "type": name, "layout": layout, "math": "default",
                             "contestant": contestant, "clock": "host", "median_us": f"{statistics.median(means):.1f}",
                             "min_us": f"{min(means):.1f}", "max_us": f"{max(means):.1f}", "samples": len(means)})
                print(f"{direction} call, {name} {layout.upper()}, {contestant}: {statistics.median(means):.1f} us", flush=True)

    measure("pytorch")
    for policy, contestant in {"wait": "kiln", "measure": "kiln measure", "native": "kiln native policy"}.items():
        kiln.torch.enable(policy, devices=DEVICE)
        measure(contestant)
    kiln.torch.disable()
    measure("kiln disabled")
    with arguments.out.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC\n"
                   f"# kiln: {kiln.__version__} (through kiln.torch)\n"
                   f"# device: {torch.cuda.get_device_name() if GPU else 'the host device'}\n"
                   f"# method: {METHOD.format(samples=arguments.samples, calls=arguments.calls)}\n")
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        # Calls of one kind stand together.
        writer.writerows(sorted(rows, key=lambda row: [other["layer"] for other in rows].index(row["layer"])))


if __name__ == "__main__":
    main()
