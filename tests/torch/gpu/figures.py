"""Images a second and peak memory of a training step, and the latency of inference under CUDA graphs:
native, Kiln, and Kiln under the policy `measure`, in alternating blocks.

Cases come in the order of their weight, so that what fits into a limited time is what matters most.
"""

import csv
import datetime
import gc
import statistics
import time

import torch
from networks import NETWORKS, Training, parts_of, prepare

import kiln.torch

WAYS = {"native": None, "kiln": "wait", "measure": "measure"}
POLICIES = {**WAYS, "native policy": "native", "background": "background"}
BLOCKS = 5
COLUMNS = ["date", "chip", "torch", "cudnn", "network", "mode", "what", "batch", "way", "ms", "images_per_s",
           "peak_mib", "native_over_this", "spread"]


def milliseconds(run, count):
    if not torch.cuda.is_available():
        started = time.perf_counter()
        for _ in range(count):
            run()
        return (time.perf_counter() - started) / count * 1e3
    begin, end = torch.cuda.Event(True), torch.cuda.Event(True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(count):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / count


def enter(way):
    if POLICIES[way] is None:
        kiln.torch.disable()
    else:
        kiln.torch.enable(POLICIES[way], devices="cuda" if torch.cuda.is_available() else "cpu")


def compile_all(run):
    """All kernels at once, on as many threads as there are CPUs."""
    enter("background")
    run()
    kiln.torch.wait()


def measure_all(run, calls):
    """What `measure` wants to know: the times of every call, and what its stream is doing."""
    enter("measure")
    for _ in range(2):
        run()
        kiln.torch.wait()
    for _ in range(calls):
        run()


def alternate(runs, block_ms, blocks=BLOCKS):
    """The median of blocks of each way, and half the distance of the quartiles as a share of it."""
    counts = {}
    for way, run in runs.items():
        enter(way)
        run()
        counts[way] = max(1, round(block_ms / max(milliseconds(run, 2), 0.01)))
    samples = {way: [] for way in runs}
    for block in range(blocks):  # each way has either neighbour before it: what they heat up is the next one's
        for way, run in list(runs.items())[:: -1 if block % 2 else 1]:
            enter(way)
            run()
            samples[way].append(milliseconds(run, counts[way]))
    out = {}
    for way, values in samples.items():
        values.sort()
        out[way] = (statistics.median(values), (values[-2] - values[1]) / 2 / statistics.median(values))
    return out


def peak_memory(run):
    if not torch.cuda.is_available():
        return 0
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() / 2**20


def inference_of(name, mode, batch):
    model, x = prepare(name, mode, batch)
    model.eval()

    def run():
        with torch.no_grad(), torch.autocast(x.device.type, torch.float16, enabled=parts_of(mode)[0] == "amp"):
            return model(x)

    return run, batch


def training_of(name, mode, batch=None):
    model, x = prepare(name, mode, batch)
    return Training(model, x, mode).step, x.shape[0]


def train(name, mode, batch=None):
    step, images = training_of(name, mode, batch)
    enter("native")
    for _ in range(3):
        step()
    compile_all(step)
    measure_all(step, 12)
    peaks = {}
    for way in WAYS:
        enter(way)
        peaks[way] = peak_memory(step)
    times = alternate({way: step for way in WAYS}, 120)
    for way, (ms, spread) in times.items():
        yield [name, mode, "training", images, way, round(ms, 3), round(images / ms * 1e3, 1),
               round(peaks[way]), round(times["native"][0] / ms, 3), round(spread, 4)]


def infer(name, mode, batch):
    run, _ = inference_of(name, mode, batch)
    enter("native")
    for _ in range(3):
        run()
    compile_all(run)
    measure_all(run, 1)
    graphs = {}
    for way in WAYS:
        enter(way)
        run()
        graphs[way] = run
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run()
            graphs[way] = graph.replay
    times = alternate(graphs, 30)
    for way, (ms, spread) in times.items():
        yield [name, mode, "inference", batch, way, round(ms, 4), round(batch / ms * 1e3, 1), "",
               round(times["native"][0] / ms, 3), round(spread, 4)]


def variants(name, mode):
    """`measure` beside itself with other weights of the host's time: by the device's alone, and by the
    sum of both; and what it costs to be enabled and leave all to PyTorch."""
    step, images = training_of(name, mode)
    enter("native")
    for _ in range(3):
        step()
    compile_all(step)
    measure_all(step, 12)
    rows = kiln.torch.report().rows
    mixed = [r for r in rows if r["kiln_us"] is not None]
    print(f"{name} {mode}: of {len(mixed)} results, "
          f"{sum(r['kiln_us'] <= r['native_us'] for r in mixed)} in calls that are faster by Kiln; "
          f"device, ms: Kiln {sum(r['kiln_us'] for r in mixed) / 1e3:.2f}, "
          f"native {sum(r['native_us'] for r in mixed) / 1e3:.2f}; host, ms: "
          f"Kiln {sum(r['kiln_host_us'] for r in mixed) / 1e3:.2f}, "
          f"native {sum(r['native_host_us'] for r in mixed) / 1e3:.2f}", flush=True)
    times = alternate({way: step for way in (*WAYS, "native policy")}, 120)
    path = kiln._library.cache_folder() / "torch_choices"
    measured = path.read_text()
    for variant, cost in (("device", lambda d, h: (d, 0.0)), ("sum", lambda d, h: (d + h, 0.0))):
        lines = []
        for line in measured.splitlines():
            key, ways = line.rsplit("\t", 1)
            changed = []
            for way in ways.split(" "):
                native, _, both = way.partition(":")
                d, h = cost(*map(float, both.split("/")))
                changed.append(f"{native}:{d}/{h}")
            lines.append(key + "\t" + " ".join(changed) + "\n")
        path.write_text("".join(lines))
        kiln.torch.disable()
        kiln.torch.clear()
        measure_all(step, 2)
        times.update({f"measure by {variant}": alternate({w: step for w in ("native", "measure")}, 120)["measure"]})
    path.write_text(measured)
    kiln.torch.disable()
    kiln.torch.clear()
    for way, (ms, spread) in times.items():
        yield [name, mode, "training", images, way, round(ms, 3), round(images / ms * 1e3, 1), "",
               round(times["native"][0] / ms, 3), round(spread, 4)]


MAIN = ("resnet50", "vgg16", "mobilenet_v2", "convnext_tiny")


def cases(arguments):
    """(what is computed, its network, mode and batch), the weightiest first."""
    names = [n for n in arguments.networks.split(",") if n] or list(NETWORKS)
    modes = arguments.modes.split(",")
    some = [n for n in names if n in MAIN or arguments.networks]
    rest = [n for n in names if n not in some]
    small = lambda chosen: [n for n in chosen if n not in ("r3d_18", "diffusion")]
    out = []
    if "variants" in modes:
        out += [(variants, n, "amp", None) for n in names if n in ("resnet50", "mobilenet_v2", "convnext_tiny", "small")]
    if "amp" in modes:
        out += [(train, n, "amp", None) for n in names]
        out += [(infer, n, "amp", batch) for n in small(some) for batch in (1, 32)]
    if "f32" in modes:
        out += [(train, n, "f32", None) for n in some + [n for n in rest if n == "r3d_18"]]
    if "f64" in modes:
        out += [(train, "resnet18", "f64", None)]
    if "tf32" in modes:
        out += [(train, n, "tf32", None) for n in some]
    if "amp" in modes:
        out += [(infer, n, "amp", batch) for n in small(rest) for batch in (1, 32)]
    for mode in [m for m in ("f32", "tf32") if m in modes]:
        out += [(train, n, mode, None) for n in rest if (n, mode) != ("r3d_18", "f32")]
        out += [(infer, n, mode, batch) for n in small(names) for batch in (1, 32)]
    for mode in [m for m in modes if "-" in m]:
        out += [(train, n, mode, None) for n in some]
    if arguments.batch:
        out = [(train, n, mode, arguments.batch) for function, n, mode, _ in out if function is train]
    return out[arguments.skip : arguments.skip + arguments.first]


def compile_ahead(chosen):
    """Compiles the kernels of all cases at once, so that all CPUs are at work to the end."""
    started = time.time()
    torch.backends.cudnn.benchmark = False
    seen = set()
    for function, name, mode, batch in chosen:
        if (name, mode, batch) in seen:
            continue
        seen.add((name, mode, batch))
        enter("background")
        (inference_of if function is infer else training_of)(name, mode, batch)[0]()
    enqueued = time.time() - started
    kiln.torch.wait()
    torch.backends.cudnn.benchmark = True
    print(f"compiled {len(kiln.torch.report().rows)} plans in {time.time() - started:.1f} s, of which the models took "
          f"{enqueued:.1f}", flush=True)
    kiln.torch.disable()
    gc.collect()
    torch.cuda.empty_cache()


def about():
    if not torch.cuda.is_available():
        return [datetime.date.today().isoformat(), "host", torch.__version__, ""]
    return [datetime.date.today().isoformat(), torch.cuda.get_device_name(0), torch.__version__,
            torch.backends.cudnn.version()]


def main(arguments):
    torch.backends.cudnn.benchmark = True
    deadline = time.time() + arguments.seconds
    with open(arguments.csv, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        chosen = cases(arguments)
        if arguments.compile_ahead:
            compile_ahead(chosen)
        for function, name, mode, batch in chosen:
            what = f"{name} {mode} {function.__name__}" + (f" {batch}" if batch else "")
            if time.time() > deadline:
                print("stopped before", what, flush=True)
                break
            started = time.time()
            try:
                for row in function(name, mode, batch) if batch else function(name, mode):
                    writer.writerow([*about(), *row])
                    print(*row, flush=True)
                    file.flush()
            except Exception as error:  # one case is not all
                print("FAILED", what, repr(error)[:300], flush=True)
            print(f"({what}: {time.time() - started:.1f} s)", flush=True)
            kiln.torch.disable()
            gc.collect()
            torch.cuda.empty_cache()
