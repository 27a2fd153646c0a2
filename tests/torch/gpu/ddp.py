#!/usr/bin/env python3
"""A network trained on 1, 2, 4, ... GPUs of one host: DistributedDataParallel over NCCL, started by
torchrun, PyTorch's own convolutions (cuDNN with benchmark=True) beside Kiln's.

    tests/torch/gpu/ddp.py --results FOLDER [--gpus 1,2,4,8] [--modes amp,f32] [--network resnet50]

FOLDER gets a file for each mode, batch and number of GPUs, which a later run does not measure again, and
ddp.csv, the table of all of them. --speed-only leaves out losses and first steps.

Checked, with exit status 1 where it does not hold: all ranks hold the same parameters, bit for bit,
after the last step; the losses are those of one GPU with the whole batch, as closely as PyTorch's own
are; and on a node whose kernel cache is empty each kernel is compiled once, not once a rank.

Measured: images a second (a fixed batch a GPU), how that scales, which share of the all-reduce is
hidden behind the backward pass, and the first step with an empty kernel cache and with a full one.
Without a GPU, `--network small --gpus 1,2` runs the same over gloo on the host device.
"""

import argparse
import csv
import ctypes
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(here), str(here.parents[2] / "src" / "python")]

import torch
import torch.distributed as dist
from figures import about, compile_all, milliseconds
from networks import DEVICE, NETWORKS, Training, prepare, set_mode
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import kiln.torch

BLOCKS, BLOCK_STEPS = 5, 10
WAYS = ("native", "kiln")
COLUMNS = ["date", "chip", "torch", "cudnn", "network", "mode", "gpus", "way", "batch_per_gpu", "step_ms",
           "images_per_s", "scaling", "reduce_ms", "hidden", "first_step_empty_s",
           "first_step_full_s", "compiled", "kernels", "whole_batch", "first_loss", "last_loss", "loss_difference"]


def enter(way):
    if way == "kiln":
        kiln.torch.enable("wait", devices=DEVICE)
    else:
        kiln.torch.disable()


def synchronize():
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def parallel(model):
    return DistributedDataParallel(model, device_ids=[torch.cuda.current_device()] if DEVICE == "cuda" else None,
                                   gradient_as_bucket_view=True)


def overlap(training):
    """Milliseconds a step of the all-reduces' kernels, and which share of that time other kernels ran
    beside them, by the profiler's record of three steps."""
    if DEVICE != "cuda":
        return 0.0, 0.0
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        for _ in range(3):
            training.step()
        synchronize()
    reductions, others = [], []
    for event in profiler.events():
        if event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith(("Mem", "gpu_")):
            kind = reductions if "nccl" in event.name.lower() else others
            kind.append((event.time_range.start, event.time_range.end))
    total = sum(end - start for start, end in reductions)
    hidden, busy = 0.0, []
    for start, end in sorted(others):  # joined where they touch or overlap
        if busy and start <= busy[-1][1]:
            busy[-1][1] = max(busy[-1][1], end)
        else:
            busy.append([start, end])
    for start, end in reductions:
        hidden += sum(max(0.0, min(end, e) - max(start, s)) for s, e in busy)
    return total / 3e3, hidden / total if total else 0.0


def slowest(value):
    """The largest of all ranks' values: a step ends with its last rank."""
    tensor = torch.tensor([value], dtype=torch.float64, device=DEVICE)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return tensor.item()


def compiled_here():
    """How many kernels this process has compiled: the fifth word of kilnCacheStats_t."""
    words = (ctypes.c_uint64 * 5)(40)
    if kiln._library.load().kilnGetCacheStats(words):
        raise RuntimeError("kilnGetCacheStats failed")
    return words[4]


def first_step(arguments):
    """Seconds of a process's first step with Kiln, and how many kernels all ranks compiled for it."""
    model, x = prepare(arguments.network, arguments.mode, arguments.batch)
    training = Training(parallel(model), x, arguments.mode)
    dist.barrier()
    synchronize()
    enter("kiln")
    started = time.perf_counter()
    training.step()
    synchronize()
    seconds = slowest(time.perf_counter() - started)
    compiled = torch.tensor([compiled_here()], device=DEVICE)
    dist.all_reduce(compiled)
    return training, {"first_step_s": seconds, "compiled": compiled.item()}


def throughput(training):
    """Of each way: milliseconds of a step, and what the all-reduces in it take and hide."""
    samples, out = {way: [] for way in WAYS}, {}
    for way in WAYS:
        enter(way)
        for _ in range(3):
            training.step()
    for block in range(BLOCKS):
        for way in WAYS[:: -1 if block % 2 else 1]:
            enter(way)
            training.step()
            samples[way].append(slowest(milliseconds(training.step, BLOCK_STEPS)))
    for way in WAYS:
        enter(way)
        reduce_ms, hidden = overlap(training)
        out[way] = {"step_ms": statistics.median(samples[way]), "reduce_ms": reduce_ms, "hidden": hidden}
    return out


def same_on_all_ranks(model):
    """Whether every rank holds the same bits: the smallest and the largest of each word agree."""
    words = torch.cat([p.detach().contiguous().view(torch.int32).flatten() for p in model.parameters()])
    low, high = words.clone(), words
    dist.all_reduce(low, dist.ReduceOp.MIN)
    dist.all_reduce(high, dist.ReduceOp.MAX)
    return torch.equal(low, high)


def losses(arguments, way):
    """The losses of the whole batch, of which each rank has its part, and whether parameters agree
    after the last step. Batch normalization takes the statistics of all ranks, so that the mathematics
    is that of one GPU."""
    rank, world = dist.get_rank(), dist.get_world_size()
    model, x = prepare(arguments.network, arguments.mode, arguments.whole_batch)
    generator = torch.Generator().manual_seed(2)
    labels = torch.randint(0, 10, (arguments.whole_batch,), generator=generator).to(DEVICE)
    part = slice(rank * len(x) // world, (rank + 1) * len(x) // world)
    x, labels = x[part], labels[part]
    if DEVICE == "cuda":
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    model = parallel(model.train())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)  # larger steps make rounding grow into chaos
    amp = arguments.mode == "amp"
    scaler = torch.amp.GradScaler(DEVICE, init_scale=1024.0, enabled=amp)  # no step is left out for an overflow

    def loss_of_part():
        with torch.autocast(DEVICE, torch.float16, enabled=amp):
            y = model(x)
        return nn.functional.cross_entropy(y.float().flatten(1), labels)

    if way == "kiln":  # the kernels of this batch, on all CPUs: what a first step takes is measured elsewhere
        compile_all(lambda: loss_of_part().backward())
    enter(way)
    out = []
    for _ in range(arguments.steps):
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of_part()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        mean = loss.detach().double()
        dist.all_reduce(mean)
        out.append(mean.item() / world)
    return {"losses": out, "same": same_on_all_ranks(model)}


def work(arguments):
    if DEVICE == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.backends.cudnn.benchmark = True
    dist.init_process_group("nccl" if DEVICE == "cuda" else "gloo")
    set_mode(arguments.mode)
    training, out = first_step(arguments)
    if not arguments.first_step_only:
        out["times"] = throughput(training)
        out["native_results"] = kiln.torch.report().native
        del training
    if not arguments.first_step_only and not arguments.speed_only:
        out["losses"] = {way: losses(arguments, way) for way in WAYS}
    if dist.get_rank() == 0:
        pathlib.Path(arguments.result).write_text(json.dumps(out))
    kiln.torch.disable()
    dist.destroy_process_group()


def launch(arguments, gpus, mode, cache, *more):
    with tempfile.TemporaryDirectory() as folder:
        result = pathlib.Path(folder) / "result.json"
        subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={gpus}", __file__,
             "--worker", "--result", str(result), "--mode", mode, "--network", arguments.network,
             "--batch", str(arguments.batch), "--whole-batch", str(arguments.whole_batch),
             "--steps", str(arguments.steps), *(["--speed-only"] if arguments.speed_only else []), *more],
            check=True, env={**os.environ, "KILN_CACHE_DIR": str(cache)})
        return json.loads(result.read_text())


def stored_kernels(cache):
    return len({path.stem for path in pathlib.Path(cache).rglob("*.kiln")})


def difference(losses, reference):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, reference))


def rows_of(result, mode, gpus, base):
    """The table's rows. `base` gets the results of the fewest GPUs of a mode, beside which others stand."""
    found, empty = result["found"], result["empty"]
    for way in WAYS:
        times, losses = found["times"][way], found["losses"][way]["losses"] if empty else []
        images = result["batch"] * gpus / times["step_ms"] * 1e3
        one = base.setdefault((mode, result["batch"], way), {"images": images / gpus, "losses": losses})
        row = [*result["about"], result["network"], mode, gpus, way, result["batch"], round(times["step_ms"], 3),
               round(images, 1), round(images / gpus / one["images"], 4), round(times["reduce_ms"], 3),
               round(times["hidden"], 3) if gpus > 1 else ""]
        if empty and way == "kiln":
            row += [round(empty["first_step_s"], 2), round(found["first_step_s"], 2), empty["compiled"], result["kernels"]]
        else:
            row += [""] * 4
        if empty:
            row += [result["whole_batch"], round(losses[0], 6), round(losses[-1], 6),
                    f"{difference(losses, one['losses']):.1e}"]
        yield dict(itertools.zip_longest(COLUMNS, row, fillvalue=""))


def faults(result, mode, gpus, base):
    """What does not hold, in sentences."""
    found, empty, kernels = result["found"], result["empty"], result["kernels"]
    name = f"{mode} on {gpus} GPUs"
    if found["native_results"]:
        yield f"{name}: {found['native_results']} results were PyTorch's own"
    if not empty:
        return
    for way in WAYS:
        if not found["losses"][way]["same"]:
            yield f"{name}, {way}: the parameters of the ranks differ after the last step"
    native, own = (
        difference(found["losses"][way]["losses"], base[mode, result["batch"], way]["losses"]) for way in WAYS)
    if own > max(3 * native, 1e-4):
        yield f"{name}: losses differ from one GPU's by {own:.1e}, PyTorch's own by {native:.1e}"
    if empty["compiled"] != kernels:
        yield f"{name}: {empty['compiled']} compilations for {kernels} kernels"
    if found["compiled"]:
        yield f"{name}: {found['compiled']} compilations with a full kernel cache"


def measure(arguments, mode, gpus):
    """One number of GPUs: a process group that meets an empty kernel cache, then one that meets a full one."""
    started = time.time()
    with tempfile.TemporaryDirectory() as cache:
        empty = None if arguments.speed_only else launch(arguments, gpus, mode, cache, "--first-step-only")
        kernels = stored_kernels(cache)
        found = launch(arguments, gpus, mode, cache)
    print(f"ddp: {mode}, {gpus} GPUs: {time.time() - started:.0f} s", flush=True)
    return {"about": about(), "network": arguments.network, "batch": arguments.batch,
            "whole_batch": arguments.whole_batch, "found": found, "empty": empty, "kernels": kernels}


def tabulate(folder):
    """Writes the table of all results in the folder; returns what does not hold."""
    results = {}
    for path in folder.glob("*-*-*.json"):
        mode, batch, gpus = path.stem.split("-")
        results[mode, int(batch), int(gpus)] = json.loads(path.read_text())
    failures, base = [], {}
    with open(folder / "ddp.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        for (mode, _, gpus), result in sorted(results.items()):
            for row in rows_of(result, mode, gpus, base):
                writer.writerow(row)
                print("ddp:", *(f"{k}={v}" for k, v in list(row.items())[4:] if v != ""), flush=True)
            failures += faults(result, mode, gpus, base)
    return failures


def drive(arguments):
    devices = torch.cuda.device_count() if DEVICE == "cuda" else 2
    asked = [int(n) for n in arguments.gpus.split(",")]
    if left_out := [n for n in asked if n > devices]:
        print(f"ddp: not run on {left_out} GPUs: there are {devices}", flush=True)
    folder = pathlib.Path(arguments.results)
    folder.mkdir(parents=True, exist_ok=True)
    for mode in arguments.modes.split(","):
        for gpus in [n for n in asked if n <= devices]:
            path = folder / f"{mode}-{arguments.batch}-{gpus}.json"
            if not path.exists():
                path.write_text(json.dumps(measure(arguments, mode, gpus)))
    failures = tabulate(folder)
    for failure in failures:
        print("ddp: FAILED:", failure, flush=True)
    return int(bool(failures))


def main(given=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--results", default="ddp", help="a folder")
    parser.add_argument("--gpus", default="1,2,4,8", help="how many GPUs, separated by ','; what is not there is left out")
    parser.add_argument("--modes", default="amp,f32", help="amp: f16 under autocast, channels last; f32: no TF32; tf32")
    parser.add_argument("--network", default="resnet50", help=f"one of {', '.join(NETWORKS)}, small")
    parser.add_argument("--batch", type=int, default=64, help="images a GPU, where speed is measured")
    parser.add_argument("--whole-batch", type=int, default=64, help="images of all GPUs, where losses are compared")
    parser.add_argument("--steps", type=int, default=50, help="of the losses")
    parser.add_argument("--speed-only", action="store_true", help="no losses, no first steps")
    for name in ("--worker", "--first-step-only"):
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    for name in ("--mode", "--result"):
        parser.add_argument(name, help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    return work(arguments) if arguments.worker else drive(arguments)


if __name__ == "__main__":
    sys.exit(main())
