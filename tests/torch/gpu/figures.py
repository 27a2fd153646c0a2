"""Images a second and peak memory of a training step, and the latency of inference under CUDA graphs:
native, Kiln, and Kiln under the policy `measure`, in alternating blocks."""

import csv
import gc
import statistics
import time

import torch
from networks import NETWORKS, Training, prepare

import kiln.torch

WAYS = {"native": "native", "kiln": "wait", "measure": "measure"}
BLOCKS = 5


def milliseconds(run, count):
    begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
    begin.record()
    for _ in range(count):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / count


def enter(way):
    if way == "native":
        kiln.torch.disable()
    else:
        kiln.torch.enable(WAYS[way])


def compile_all(run):
    """All kernels at once, on as many threads as there are CPUs; then what `measure` wants to know."""
    kiln.torch.enable("background")
    run()
    kiln.torch.wait()
    run()
    kiln.torch.set_policy("measure")
    for _ in range(2):
        run()
    kiln.torch.wait()
    run()


def alternate(runs, block_ms):
    """The median of blocks of each way, and half the spread between quartiles as a share of it."""
    counts = {}
    for way, run in runs.items():
        enter(way)
        run()
        counts[way] = max(1, round(block_ms / max(milliseconds(run, 2), 0.01)))
    samples = {way: [] for way in runs}
    for _ in range(BLOCKS):
        for way, run in runs.items():
            enter(way)
            run()
            samples[way].append(milliseconds(run, counts[way]))
    out = {}
    for way, values in samples.items():
        values.sort()
        out[way] = (statistics.median(values), (values[-2] - values[1]) / 2 / statistics.median(values))
    return out


def peak_memory(run):
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**20


def train(name, mode):
    model, x = prepare(name, mode)
    training = Training(model, x, mode)
    enter("native")
    for _ in range(3):
        training.step()
    started = time.time()
    compile_all(training.step)
    seconds = time.time() - started
    peaks = {}
    for way in WAYS:
        enter(way)
        peaks[way] = peak_memory(training.step)
    times = alternate({way: training.step for way in WAYS}, 150)
    images = x.shape[0]
    for way, (ms, spread) in times.items():
        yield [name, mode, "training", images, way, round(ms, 3), round(images / ms * 1e3, 1),
               round(peaks[way]), round(times["native"][0] / ms, 3), round(spread, 4), round(seconds, 1)]


def infer(name, mode, batch):
    model, x = prepare(name, mode, batch)
    model.eval()

    def run():
        with torch.no_grad(), torch.autocast("cuda", torch.float16, enabled=mode == "amp"):
            return model(x)

    enter("native")
    for _ in range(3):
        run()
    compile_all(run)
    graphs = {}
    for way in WAYS:
        enter(way)
        run()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run()
        graphs[way] = graph.replay
    times = alternate(graphs, 50)
    for way, (ms, spread) in times.items():
        yield [name, mode, "inference", batch, way, round(ms, 4), round(batch / ms * 1e3, 1), "",
               round(times["native"][0] / ms, 3), round(spread, 4), ""]


def cases(arguments):
    names = [n for n in arguments.networks.split(",") if n] or list(NETWORKS)
    for mode in arguments.modes.split(","):
        for name in names:
            yield lambda name=name, mode=mode: train(name, mode), f"{name} {mode} training"
            for batch in (1, 32):
                if name in ("r3d_18", "diffusion") and batch == 32:
                    continue
                yield (
                    lambda name=name, mode=mode, batch=batch: infer(name, mode, batch),
                    f"{name} {mode} inference {batch}",
                )
    if not arguments.networks:
        yield lambda: train("resnet18", "f64"), "resnet18 f64 training"


def main(arguments):
    torch.backends.cudnn.benchmark = True
    deadline = time.time() + arguments.seconds
    with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["network", "mode", "what", "batch", "way", "ms", "images_per_s", "peak_mib",
                         "native_over_this", "spread", "compile_s"])
        for case, what in cases(arguments):
            if time.time() > deadline:
                print("stopped before", what, flush=True)
                break
            try:
                for row in case():
                    writer.writerow(row)
                    print(*row, flush=True)
                file.flush()
            except Exception as error:  # one case is not all
                print("FAILED", what, repr(error)[:300], flush=True)
            kiln.torch.disable()
            gc.collect()
            torch.cuda.empty_cache()
