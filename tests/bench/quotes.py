"""Figures of the CSV files that pages quote: tables between two marks, `<!-- figures: NAME -->` and `<!-- end -->`, and
numbers in sentences. figures.py writes both.
"""

import csv
import math
import re
import statistics
import sys

from results import ROOT, chip_and_days, grouped, in_order, mean, pairs, panel_name, read, speeds

CHECKOUT = ROOT.parent.parent
NETWORKS = {
    "resnet18": "ResNet-18",
    "resnet50": "ResNet-50",
    "wide_resnet50_2": "Wide-ResNet-50",
    "resnext50_32x4d": "ResNeXt-50",
    "densenet121": "DenseNet-121",
    "vgg16": "VGG-16",
    "alexnet": "AlexNet",
    "mobilenet_v2": "MobileNetV2",
    "efficientnet_b0": "EfficientNet-B0",
    "convnext_tiny": "ConvNeXt-T",
    "unet": "U-Net",
    "vgg16_bn": "VGG-16-BN",
    "timm.resnet50d": "ResNet-50-D (timm)",
    "timm.regnety_032": "RegNetY-3.2GF (timm)",
    "diffusion": "diffusion blocks",
    "r3d_18": "R3D-18",
}
# Of first_call.csv.
FIRST_CALLS = {
    "kiln loaded": "Kiln, by a stand-in that the process has loaded",
    "kiln fresh": "Kiln, by a stand-in from the cache, in a new process",
    "kiln compiled": "Kiln, its own kernel compiled",
    "cudnn heuristic": "cuDNN through PyTorch, benchmark off",
    "cudnn benchmark": "cuDNN through PyTorch, benchmark on",
}
FRONT = ["resnet50", "vgg16", "efficientnet_b0", "mobilenet_v2", "convnext_tiny"]


def table(head, lines):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *lines])


def layers(name):
    return read([ROOT / "h200" / f"layers_{name}.csv"])[1]


def times(value):
    return f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def speed_ranges():
    """Of each problem class the slowest and the fastest group, and the share of layers and passes in which cuDNN is faster."""
    lines = []
    for name, kind in {"exact f32": "f32", "TF32": "tf32", "f16": "f16"}.items():
        cells = [name]
        for layout in ("nhwc", "nchw"):
            rows = [row for row in layers(f"{kind}_{layout}") if row["suite"] != "large"]
            groups = [mean(ratios) for ratios in speeds(rows).values()]
            slower = [cudnn["median_us"] < kiln["median_us"] for kiln, cudnn in pairs(rows)]
            cells += [f"{times(min(groups))} to {times(max(groups))}", f"{sum(slower) / len(slower):.0%}"]
        lines.append(cells)
    return table(["", "channels last", "cuDNN faster", "channels first", "cuDNN faster"], lines)


def as_called():
    """{(network, mode, what, batch, way): row} of whole networks, called from Python."""
    with open(CHECKOUT / "tests/torch/gpu/figures.csv", encoding="utf-8", newline="") as file:
        return {tuple(row[name] for name in ("network", "mode", "what", "batch", "way")): row for row in csv.DictReader(file)}


def network_steps(how="graph", compiled=""):
    """{(network, batch): {contestant: row}} of steps in CUDA graphs or as called, with or without torch.compile."""
    steps = {}
    for row in read([ROOT / "h200/network_steps.csv"])[1]:
        if row["direction"] == how and row["contestant"].endswith(" compiled") == bool(compiled):
            steps.setdefault((row["layer"], int(row["batch"])), {})[row["contestant"].removesuffix(" compiled")] = row
    return steps


def faster(own, contestant="kiln"):
    return f"{own['pytorch']['median_us'] / own[contestant]['median_us']:.2f}"


def front_networks():
    called, graphs, compiled = as_called(), network_steps(), network_steps(compiled=" compiled")
    lines = []
    for network in in_order(network for network, _ in graphs):
        row = called[network, "amp", "training", "32", "kiln"]
        lines.append([NETWORKS[network], f"{float(row['native_over_this']):.2f}"] +
                     [", ".join(f"{faster(own)} ({batch})" for (name, batch), own in steps.items() if name == network)
                      for steps in (graphs, compiled)])
    return table(["H200; AMP, channels last (images)", "as called, 32 images, 2026-11-26", "in a CUDA graph, 2026-11-28",
                  "in a CUDA graph, both under torch.compile"], lines)


def networks_as_called():
    called = as_called()
    lines = []
    for network in NETWORKS:
        batches = sorted({int(key[3]) for key in called if key[0] == network and key[2] == "training"})
        for batch in map(str, batches):
            for modes in (("amp", "tf32", "f32"), ("amp-nchw", "tf32-nhwc", "")):
                columns = [(mode, "training", batch) for mode in modes]
                first = batch == str(batches[0]) and modes[0] == "amp"
                columns += [("amp", "inference", images) if first else ("", "", "") for images in ("1", "32")]
                cells = []
                for column in columns:
                    own = [called.get((network, *column, way)) for way in ("kiln", "measure")]
                    cells.append(" / ".join(f"{float(row['native_over_this']):.2f}" for row in own) +
                                 ("*" if "H100" in own[0]["chip"] else "") if all(own) else "")
                if any(cells):
                    other = "" if modes[0] == "amp" else ", the other layout"
                    lines.append([f"{NETWORKS[network]}, {batch}{other}", *cells])
    return table(["network, images", "AMP", "TF32", "exact f32", "inference, AMP, 1 image", "32 images"], lines)


def networks_in_graphs():
    compiled = network_steps(compiled=" compiled")
    lines = []
    for (network, batch), own in network_steps().items():
        cells = [f"{own['pytorch']['median_us'] / 1000:.2f}", *(faster(own, name) for name in ("kiln", "kiln measure"))]
        other = compiled.get((network, batch))
        cells += [f"{other['pytorch']['median_us'] / 1000:.2f}", faster(other)] if other else ["", ""]
        lines.append([f"{NETWORKS[network]}, {batch}", *cells])
    return table(["network, images", "PyTorch, ms", "`wait`", "`measure`", "PyTorch under torch.compile, ms", "`wait` under it"],
                 lines)


def fused_steps(how):
    """{(network, batch): {contestant: row}} of steps in CUDA graphs or as called."""
    rows = read([ROOT / "h200/fused_steps.csv"])[1]
    return {(name, int(batch)): {row["contestant"]: row for row in own}
            for (name, batch, direction), own in grouped(rows, ["layer", "batch", "direction"]).items() if direction == how}


FUSED = {"pytorch": "PyTorch", "kiln": "`enable()`", "kiln fused": "fused", "kiln fused recompute": "with `recompute`",
         "pytorch compiled": "torch.compile"}


def fused_networks():
    """Milliseconds in a CUDA graph, and the GiB that a step holds."""
    graphs, called, lines = fused_steps("graph"), fused_steps("called"), []
    for key, own in graphs.items():
        cells = [f"{own[name]['median_us'] / 1000:.2f}" if name in own else "" for name in FUSED]
        cells += [f"{called[key][name]['workspace_bytes'] / 2**30:.2f}" if name in called[key] else ""
                  for name in FUSED if name != "kiln"]
        lines.append([f"{NETWORKS[key[0]]}, {key[1]}", *cells])
    return table(["network, images", *(f"{name}, ms" for name in FUSED.values()),
                  *(f"{name}, GiB" for way, name in FUSED.items() if way != "kiln")], lines)


def fused_speeds(network, batch):
    """How many times as fast as PyTorch's a step in fused blocks is in a CUDA graph, and as torch.compile's."""
    own = fused_steps("graph")[network, batch]
    return [f"{own[peer]['median_us'] / own['kiln fused']['median_us']:.2f}" for peer in ("pytorch", "pytorch compiled")]


def worst_measure():
    """By how many percent a step with `measure` takes longer than the better of PyTorch's and that with `wait`, at worst."""
    longer = [own["kiln measure"]["median_us"] / min(own["pytorch"]["median_us"], own["kiln"]["median_us"])
              for own in network_steps().values()]
    return f"{100 * (max(longer) - 1):.1f}"


def widest(compiled):
    """By how many percent the slowest block of a step in a graph took longer than its fastest, at most."""
    rows = [row for own in network_steps(compiled=compiled).values() for row in own.values()]
    return f"{100 * (max(row['max_us'] / row['min_us'] for row in rows) - 1):.1f}"


def host_times(chip, contestants):
    rows = read([ROOT / chip / "host_time.csv"])[1]
    lines = []
    for call, own in grouped(rows, ["layer"]).items():
        us = {row["contestant"]: row["median_us"] for row in own}
        lines.append([*call, *(f"{us[name]:.0f}" for name in contestants)])
    return table(["", *contestants.values()], lines)


HOST = {"pytorch": "PyTorch alone", "kiln": "Kiln, `wait`", "kiln measure": "`measure`",
        "kiln native policy": "left to PyTorch by Kiln, `native`", "kiln disabled": "after `disable()`"}


def several_gpus():
    with open(CHECKOUT / "tests/torch/gpu/ddp.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = []
    for mode, name in {"f32": "exact f32", "amp": "AMP, channels last"}.items():
        for gpus in in_order(row["gpus"] for row in rows):
            native, kiln = (next(row for row in rows if (row["mode"], row["gpus"], row["way"]) == (mode, gpus, way))
                            for way in ("native", "kiln"))
            cells = [f"{float(row['images_per_s']):.0f}" for row in (native, kiln)]
            cells += [f"{float(row['scaling']):.2f}" if gpus != "1" else "" for row in (native, kiln)]
            lines.append([name, gpus, *cells])
    return table(["", "GPUs", "images a second, PyTorch", "Kiln", "scaling, PyTorch", "Kiln"], lines)


def in_first_calls():
    """Milliseconds that the first call of a new shape takes."""
    with open(ROOT / "first_call.csv", encoding="utf-8", newline="") as file:
        rows = grouped(list(csv.DictReader(file)), ["contestant"])
    lines = []
    for contestant, name in FIRST_CALLS.items():
        ms = sorted(float(row["first_ms"]) for row in rows[(contestant,)])
        parts = [statistics.median(ms), ms[math.ceil(0.99 * len(ms)) - 1]] if len(ms) >= 100 else [statistics.median(ms)]
        cells = [f"{part:.2f}" if part < 10 else f"{part:.0f}" for part in parts]
        lines.append([name, str(len(ms)), *cells, *[""] * (2 - len(cells))])
    return table(["milliseconds", "shapes", "p50", "p99"], lines)


def speed_of(name, **case):
    """cuDNN's time over Kiln's in a file's layers that agree with the case: the least."""
    own = [cudnn["median_us"] / kiln["median_us"] for kiln, cudnn in pairs(layers(name))
           if all(kiln[column] in value for column, value in case.items())]
    return f"{min(own):.2f}"


def step(network, mode, column, way="kiln"):
    return float(as_called()[network, mode, "training", "32", way][column])


def first_step(column, choose):
    """The least or the most of a column over networks whose kernels were compiled for training with two batch sizes."""
    with open(CHECKOUT / "tests/torch/gpu/first_step.csv", encoding="utf-8", newline="") as file:
        return f"{choose(float(row[column]) for row in csv.DictReader(file)):.0f}"


# Of a page: its tables.
TABLES = {
    "README.md": {"networks": front_networks, "layers": speed_ranges},
    "src/python/README.md": {"networks as called": networks_as_called, "networks in graphs": networks_in_graphs,
                             "fused blocks": fused_networks,
                             "host": lambda: host_times("h200", HOST), "several GPUs": several_gpus},
    "src/plan/README.md": {"first calls": in_first_calls},
}
# Of a page: its sentences, with {} for each number, and what gives the numbers.
SENTENCES = {
    "README.md": [
        ("compile {} to {} kernels, {} to {} s on 16 cores, once.",
         lambda: [first_step(column, choose) for column in ("kernels", "seconds") for choose in (min, max)]),
        ("In a CUDA graph a step of ResNet-50 with 128 images is then {} times as fast as PyTorch's and {} times as fast as "
         "torch.compile's.", lambda: fused_speeds("resnet50", 128)),
        ("Single layers, H200, {}.", lambda: [chip_and_days(read([ROOT / "h200/layers_f16_nhwc.csv"])[0])[1]]),
        ("filter gradients of exact f32 reach {} of cuDNN's speed at worst, DeepLab's dilated layers in TF32 {}.",
         lambda: [speed_of("f32_nchw", direction=["wgrad"], suite=["diffusion", "vgg16"]),
                  speed_of("networks_tf32_nchw", suite=["deeplabv3_resnet50"])]),
    ],
    "src/python/README.md": [
        ("A step with `measure` takes at worst {}% longer", lambda: [worst_measure()]),
        ("Blocks of one step spread by at most {}%, under torch.compile by {}%.", lambda: [widest(""), widest(" compiled")]),
        ("In TF32 the {} ms of MobileNetV2 and the {} of EfficientNet-B0",
         lambda: [f"{step(name, 'tf32', 'ms'):.1f}" for name in ("mobilenet_v2", "efficientnet_b0")]),
        ("In f64 a step of ResNet-18 is {} times as fast.", lambda: [f"{step('resnet18', 'f64', 'native_over_this'):.2f}"]),
        ("in exact f32 VGG-16 takes {} GiB instead of {}.",
         lambda: [f"{step('vgg16', 'f32', 'peak_mib', way) / 1024:.1f}" for way in ("kiln", "native")]),
    ],
}


def with_table(text, name, lines):
    """The text with these lines between the table's marks; None if it has no such marks."""
    marks = re.compile(rf"(<!-- figures: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    return marks.sub(lambda found: f"{found[1]}{lines}\n{found[2]}", text) if marks.search(text) else None


def with_numbers(text, sentence, numbers):
    """The text with these numbers in the sentence, whatever its line breaks; None if it has no such sentence."""
    words = (re.escape(word).replace(r"\{\}", r"(\d+(?:[.-]\d+)*)") for word in sentence.split())
    found = re.search(r"\s+".join(words), text)
    if not found:
        return None
    for group, number in reversed(list(enumerate(numbers, 1))):
        text = text[:found.start(group)] + number + text[found.end(group):]
    return text


def pages_that_quote():
    """{page: its text with today's figures}."""
    written = {}
    for page in in_order([*TABLES, *SENTENCES]):
        text = (CHECKOUT / page).read_text(encoding="utf-8")
        changes = [(with_table, name, make) for name, make in TABLES.get(page, {}).items()]
        changes += [(with_numbers, sentence, make) for sentence, make in SENTENCES.get(page, [])]
        for change, what, make in changes:
            text = change(text, what, make())
            if text is None:
                sys.exit(f"{page} has no place for the figures '{what}', which quotes.py writes there")
        written[CHECKOUT / page] = text
    return written
