#!/usr/bin/env python3
"""Times training steps of networks, in AMP with channels last: as called and in a CUDA graph, eager and under
torch.compile, by PyTorch (cuDNN in benchmark mode) and by Kiln with the policies wait and measure.

    tests/bench/network_steps.py resnet50:128,32 vgg16:64,32 --out tests/bench/h200/network_steps.csv

Networks are torchvision's; the first number of images is the one of torch.compile. A step is a forward pass, cross entropy
and the gradients of all parameters, without an optimizer and without dropout. Blocks of all ways alternate. Rows are
written as they are measured. Needs PyTorch, torchvision and kiln.torch (src/python); without a GPU there are no graphs, and
the times, of the host device, show only that it works.
"""

import argparse
import csv
import datetime
import pathlib
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src" / "python"))

import torch

import kiln.torch

COLUMNS = ["suite", "layer", "batch", "operation", "direction", "type", "layout", "math", "contestant", "kernel",
           "clock", "median_us", "min_us", "max_us", "samples", "tflops", "gbps", "flops", "bytes", "workspace_bytes",
           "relative_rms", "max_error", "note", "problem"]
CONTESTANTS = {"native": "pytorch", "wait": "kiln", "measure": "kiln measure"}
METHOD = ("images of 224x224; forward, cross entropy and the gradients of all parameters, without an optimizer and without "
          "dropout; PyTorch (the policy native) and Kiln in one process, median of {blocks} blocks in turn, in a CUDA graph of "
          "five replays")
GPU = torch.cuda.is_available()
DEVICE = "cuda" if GPU else "cpu"


def synchronize():
    if GPU:
        torch.cuda.synchronize()


def network_of(name):
    """One of torchvision's, or timm.NAME."""
    import torchvision

    torch.manual_seed(0)
    if name.startswith("timm."):
        import timm

        model = timm.create_model(name.removeprefix("timm."))
    else:
        model = getattr(torchvision.models, name)()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout) or type(module).__name__ == "StochasticDepth":
            module.p = 0.0
        if type(module).__name__ == "DropPath":
            module.drop_prob = 0.0
    return model.to(DEVICE).train().to(memory_format=torch.channels_last)


def step_of(forward, parameters, images, pixels, target=None):
    """target: the classes; one of each image if None."""
    x = torch.randn(images, 3, pixels, pixels, device=DEVICE).to(memory_format=torch.channels_last)
    target = torch.arange(images, device=DEVICE) % 1000 if target is None else target
    half = torch.float16 if GPU else torch.bfloat16

    def step():
        # A captured graph may not use casts that were made outside it.
        with torch.autocast(DEVICE, half, cache_enabled=False):
            loss = torch.nn.functional.cross_entropy(forward(x), target)
        return torch.autograd.grad(loss * 1024, parameters)

    return step


def captured(step):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gradients = step()
    del gradients
    return graph.replay


def milliseconds(run, count):
    synchronize()
    start = time.perf_counter()
    for _ in range(count):
        run()
    synchronize()
    return (time.perf_counter() - start) / count * 1e3


def alternate(runs, blocks, block_ms):
    """{policy: milliseconds of each block}. block_ms None: five runs a block."""
    counts, times = {}, {policy: [] for policy in runs}
    for policy, run in runs.items():
        kiln.torch.enable(policy, devices=DEVICE)
        run()
        counts[policy] = 5 if block_ms is None else max(3, int(block_ms / milliseconds(run, 2)))
    for block in range(blocks):
        for policy in list(runs)[:: -1 if block % 2 else 1]:
            kiln.torch.enable(policy, devices=DEVICE)
            runs[policy]()
            times[policy].append(milliseconds(runs[policy], counts[policy]))
    return times


def measure(name, images, step, policies, suffix, arguments, write):
    """A row for each policy: as called, and in a graph."""
    for policy in policies:
        kiln.torch.enable(policy, devices=DEVICE)
        # 40 calls of each convolution tell `measure` whether the program waits for the host.
        for _ in range(arguments.warm_up):
            step()
    hows = {"called": lambda: step}
    if GPU:
        hows["graph"] = lambda: captured(step)
    for how, make in hows.items():
        runs = {}
        for policy in policies:
            kiln.torch.enable(policy, devices=DEVICE)
            runs[policy] = make()
        for policy, times in alternate(runs, arguments.blocks, None if how == "graph" else 250).items():
            write({"suite": "steps", "layer": name, "batch": images, "operation": "network", "direction": how, "type": "AMP",
                   "layout": "nhwc", "math": "default", "contestant": CONTESTANTS[policy] + suffix,
                   "clock": "device" if how == "graph" else "host", "median_us": f"{statistics.median(times) * 1e3:.1f}",
                   "min_us": f"{min(times) * 1e3:.1f}", "max_us": f"{max(times) * 1e3:.1f}", "samples": len(times)})
            print(f"{name}, {images} images, {how}{suffix}, {policy}: {statistics.median(times):.2f} ms "
                  f"({min(times):.2f} to {max(times):.2f})", flush=True)


def heading(method):
    """The lines before the table."""
    version = torch.backends.cudnn.version() if GPU else None
    cudnn = f"{version // 10000}.{version // 100 % 100}" if version else "none:"
    commit = subprocess.run(["git", "-C", pathlib.Path(__file__).parent, "rev-parse", "--short", "HEAD"], text=True,
                            capture_output=True, check=False).stdout.strip() or "unknown"
    return (f"# date: {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC\n"
            f"# kiln: {kiln.__version__} (commit {commit}, through kiln.torch)\n"
            f"# device: {torch.cuda.get_device_name() if GPU else 'the host device'}\n"
            f"# cudnn: {cudnn} (graph interface, every engine and any workspace, through PyTorch "
            f"{torch.__version__.split('+')[0]} with cudnn.benchmark)\n"
            f"# method: {method}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", help="NAME:IMAGES[,IMAGES...]")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=40, help="steps of each policy before it is timed")
    parser.add_argument("--pixels", type=int, default=224)
    parser.add_argument("--mode", default="default", help="of torch.compile; none: without it")
    arguments = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark_limit = 0
    with arguments.out.open("w", newline="", encoding="utf-8") as file:
        file.write(heading(f"{METHOD.format(blocks=arguments.blocks)}; torch.compile's mode: {arguments.mode}"))
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()

        def write(row):
            writer.writerow(row)
            file.flush()

        for item in arguments.networks:
            name, _, batches = item.partition(":")
            model = network_of(name)
            parameters = list(model.parameters())
            for place, images in enumerate(map(int, batches.split(","))):
                step = step_of(model, parameters, images, arguments.pixels)
                kiln.torch.enable("background", devices=DEVICE)  # all kernels side by side
                step()
                kiln.torch.wait()
                measure(name, images, step, list(CONTESTANTS), "", arguments, write)
                if place == 0 and arguments.mode != "none":
                    step = step_of(torch.compile(model, mode=arguments.mode), parameters, images, arguments.pixels)
                    measure(name, images, step, ["native", "wait"], " compiled", arguments, write)
                kiln.torch.disable()
                if GPU:
                    torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
