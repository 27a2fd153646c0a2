#!/usr/bin/env python3
"""Times training steps of networks with batch normalization, in AMP with channels last, in a CUDA graph and as called: by
PyTorch (cuDNN in benchmark mode), by Kiln's convolutions, by kiln.torch.fuse_training() with and without recompute, and by
PyTorch under torch.compile.

    tests/bench/fused_steps.py resnet50:128 timm.regnety_032:128 unet:16 --out tests/bench/h200/fused_steps.csv

Networks are torchvision's, timm's, and U-Net with its 64 to 1024 channels on images of 256x256. Each has a process of its
own, which prepares all ways; --together of them prepare at once. Then they are timed one after the other, while nothing else
runs: blocks of all ways alternate. A step is a forward pass, cross entropy and the gradients of all parameters, without an
optimizer and without dropout. `workspace_bytes` is the most that a step as called holds beyond parameters and images. Needs a
GPU, PyTorch, torchvision and kiln.torch (src/python), timm for its networks.
"""

import argparse
import csv
import gc
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT.parents[1] / "src" / "python"), str(ROOT.parent / "torch" / "gpu")]

import network_steps as steps
import torch

import kiln.torch

# way: the contestant's name in the table.
WAYS = {"native": "pytorch", "wait": "kiln", "fused": "kiln fused", "recompute": "kiln fused recompute",
        "compile": "pytorch compiled"}
POLICIES = {"wait": "wait", "fused": "wait", "recompute": "wait"}
METHOD = ("images of {pixels} pixels; forward, cross entropy and the gradients of all parameters, without an optimizer and "
          "without dropout; all ways of a network in one process, its median of seven blocks in turn, in a CUDA graph of five "
          "replays, while no other program ran on the GPU; workspace_bytes: peak memory beyond parameters and images; "
          "torch.compile's mode: default")


def network_of(name):
    if name == "unet":
        import networks

        torch.manual_seed(0)
        return networks.UNet(64).cuda().train().to(memory_format=torch.channels_last)
    return steps.network_of(name)


def enter(way):
    if way in POLICIES:
        kiln.torch.enable(POLICIES[way])
    else:
        kiln.torch.disable()


class Prepared:
    """A network's step in one way, as a graph and as called, and the bytes that it holds at most."""

    def __init__(self, name, images, way):
        before = torch.cuda.memory_allocated()
        self.model = forward = network_of(name)
        if way in ("fused", "recompute"):
            kiln.torch.fuse_training(self.model, recompute=way == "recompute")
        if way == "compile":
            forward = torch.compile(self.model)
        pixels, target = 224, None
        if name == "unet":
            pixels = 256
            target = torch.randint(0, 2, (images, pixels, pixels), device="cuda")
        self.called = steps.step_of(forward, list(self.model.parameters()), images, pixels, target)
        held = torch.cuda.memory_allocated() - before
        if way in POLICIES:
            kiln.torch.enable("background")  # all kernels side by side
            self.called()
            kiln.torch.wait()
        enter(way)
        for _ in range(3):
            self.called()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        self.called()
        torch.cuda.synchronize()
        self.peak = torch.cuda.max_memory_allocated() - before - held
        self.replay = steps.captured(self.called)
        kiln.torch.disable()


def blocks_of(prepared, how, blocks):
    """{way: milliseconds of each block}."""
    times = {way: [] for way in prepared}
    for block in range(blocks):
        for way in list(prepared)[:: -1 if block % 2 else 1]:
            enter(way)
            run = prepared[way].replay if how == "graph" else prepared[way].called
            run()
            times[way].append(steps.milliseconds(run, 5))
    return times


def child(name, images, ways, folder):
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0
    prepared = {}
    for way in ways:
        try:
            prepared[way] = Prepared(name, images, way)
        except Exception as error:  # of any kind: other ways go on
            print(f"{name}, {way}: {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)
        kiln.torch.disable()
        gc.collect()
        torch.cuda.empty_cache()
    torch.cuda.synchronize()
    (folder / f"{name} ready").touch()
    while not (folder / f"{name} go").exists():
        time.sleep(0.05)
    with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, steps.COLUMNS, lineterminator="\n")
        for how, blocks in (("graph", 7), ("called", 3)):
            for way, times in blocks_of(prepared, how, blocks).items():
                writer.writerow({
                    "suite": "fused", "layer": name, "batch": images, "operation": "network", "direction": how, "type": "AMP",
                    "layout": "nhwc", "math": "default", "contestant": WAYS[way],
                    "clock": "device" if how == "graph" else "host", "median_us": f"{statistics.median(times) * 1e3:.1f}",
                    "min_us": f"{min(times) * 1e3:.1f}", "max_us": f"{max(times) * 1e3:.1f}", "samples": len(times),
                    "workspace_bytes": prepared[way].peak if how == "called" else "",
                })
                print(f"{name}, {images} images, {how}, {way}: {statistics.median(times):.2f} ms ({min(times):.2f} to "
                      f"{max(times):.2f}), {prepared[way].peak / 2**30:.2f} GiB", flush=True)


def run_together(items, arguments, folder, file):
    """Prepares the networks side by side, then lets each be timed alone. Those that do not get ready are left out."""
    children = {}
    for item in items:
        command = [sys.executable, __file__, item, "--out", str(folder), "--ways", arguments.ways, "--child"]
        children[item.partition(":")[0]] = subprocess.Popen(command)
    end = time.monotonic() + arguments.limit
    ready = lambda name: (folder / f"{name} ready").exists()
    while time.monotonic() < end and not all(ready(name) or own.poll() is not None for name, own in children.items()):
        time.sleep(0.1)
    for name, own in children.items():
        if not ready(name):
            print(f"{name} was not ready after {arguments.limit} s", flush=True)
            own.kill()
    for name, own in children.items():
        if own.poll() is None:
            (folder / f"{name} go").touch()
            own.wait()
            file.write((folder / f"{name}.csv").read_text(encoding="utf-8"))
            file.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", help="NAME:IMAGES")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--ways", default=",".join(WAYS), help="of %(default)s")
    parser.add_argument("--together", type=int, default=4, help="networks that prepare at once")
    parser.add_argument("--limit", type=int, default=300, help="seconds after which a network that is not ready is left out")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU")
    if arguments.child:
        name, _, images = arguments.networks[0].partition(":")
        return child(name, int(images), arguments.ways.split(","), arguments.out)
    with arguments.out.open("w", newline="", encoding="utf-8") as file, tempfile.TemporaryDirectory() as folder:
        file.write(steps.heading(METHOD.format(pixels="224x224 (U-Net: 256x256)")))
        csv.DictWriter(file, steps.COLUMNS, lineterminator="\n").writeheader()
        file.flush()
        for first in range(0, len(arguments.networks), arguments.together):
            run_together(arguments.networks[first : first + arguments.together], arguments, pathlib.Path(folder), file)


if __name__ == "__main__":
    main()
