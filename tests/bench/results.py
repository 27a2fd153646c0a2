"""Files that `kiln bench --csv FILE` wrote, or that have its columns."""

import csv
import itertools
import math
import pathlib
import re
import sys

NUMBERS = ["median_us", "min_us", "max_us", "tflops", "gbps", "flops", "bytes", "workspace_bytes"]
CASE = ["suite", "layer", "batch", "direction", "type", "layout", "math"]
DIRECTIONS = {"fwd": "forward", "dgrad": "data gradient", "wgrad": "filter gradient"}
# Groups of layers that networks are made of (layers.py).
SUITES = {
    "resnet50": "ResNet-50",
    "vgg16": "VGG-16",
    "diffusion": "diffusion U-Net, VAE",
    "dense2d": "detection, GAN, patches",
    "grouped": "grouped 3x3",
    "depthwise": "depthwise",
    "large": "depthwise 31x31",
    "small": "batch of 1 or 4",
    "conv3d": "3-D",
    "conv1d": "1-D",
    "paper": "2014 cuDNN paper",
    "padded": "channels no multiple of 8",
}
PEERS = {"cudnn": "cuDNN", "cublas": "cuBLAS"}
LAYOUTS = {"nchw": "channels first (NCHW)", "nhwc": "channels last (NHWC)"}


def read(paths):
    """The machine's lines of the last file with the dates of all, and all rows that have times; of several rows of one
    contestant of one case, the last."""
    machine, rows = {}, {}
    for path in paths:
        with open(path, encoding="utf-8", newline="") as file:
            lines = file.readlines()
        comments = list(itertools.takewhile(lambda line: line.startswith("#"), lines))
        days = machine.get("date", "")
        machine = dict(line[1:].strip().split(": ", 1) for line in comments)
        machine["date"] = f"{days} {machine.get('date', '')}".strip()
        table = csv.DictReader(lines[len(comments) :])
        missing = set(CASE + NUMBERS + ["contestant"]) - set(table.fieldnames or [])
        if missing:
            sys.exit(f"{path} has no column {', '.join(sorted(missing))}; expected kiln bench's")
        for row in table:
            if not row["median_us"]:
                continue
            # Some files have medians alone.
            row["min_us"] = row["min_us"] or row["median_us"]
            row["max_us"] = row["max_us"] or row["median_us"]
            for name in NUMBERS:
                row[name] = float(row[name] or 0)
            rows[tuple(row[name] for name in CASE + ["contestant"])] = row
    return machine, list(rows.values())


def chip_and_days(machine):
    """The chip, and the first and the last day."""
    days = sorted(set(re.findall(r"\d{4}-\d{2}-\d{2}", machine.get("date", "")))) or ["?"]
    return machine.get("device", "?"), " to ".join(dict.fromkeys([days[0], days[-1]]))


def peer(machine, name):
    """One library that Kiln was measured against ("cudnn", "cublas"), with version and interface; "" if it was not there."""
    version = machine.get(name, "none:")
    if version.startswith("none:"):
        return ""
    interface = re.search(r"\((legacy|graph) ", version)
    return (f"{PEERS[name]} {version.split(' ')[0]}"
            + (f" ({interface[1]} interface)" if interface else ""))


def peers(machine):
    return ", ".join(filter(None, (peer(machine, name) for name in PEERS)))


def version(machine):
    """Kiln's version; "" if the file does not say it."""
    return machine.get("kiln", "").split(" ")[0]


def caption(machine):
    kiln = f"Kiln {version(machine)}" if version(machine) else ""
    return ", ".join(part for part in (*chip_and_days(machine), kiln, peers(machine)) if part)


def in_order(values):
    return list(dict.fromkeys(values))


def grouped(rows, names):
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def arithmetic(kind, mode):
    """What a problem class is called: its type, and of f32 the math mode."""
    return {"tf32": "TF32", "strict": "f32 (FMA units)"}.get(mode, "exact f32") if kind == "f32" else kind


def panel_name(panel):
    kind, mode, layout = panel
    return f"{arithmetic(kind, mode)} {layout.upper()}"


def pairs(rows):
    """Kiln's row and that of cuDNN's graph interface, of each case that both have."""
    for own in grouped(rows, ["suite", "layer", "problem"]).values():
        rows_of = {row["contestant"]: row for row in own}
        if "kiln" in rows_of and "cudnn graph" in rows_of:
            yield rows_of["kiln"], rows_of["cudnn graph"]


def speeds(rows):
    """How many times as fast as cuDNN's graph interface Kiln is in each layer, by problem class
    (type, math, layout), suite and direction."""
    ratios = {}
    for kiln, cudnn in pairs(rows):
        key = ((kiln["type"], kiln["math"], kiln["layout"]), kiln["suite"], kiln["direction"])
        ratios.setdefault(key, []).append(cudnn["median_us"] / kiln["median_us"])
    return ratios


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def shape(row):
    """A convolution's layer in a few words, from the line that runs it."""
    entries = dict(re.findall(r"([a-z]+)(\d+)", row["problem"].split()[-1]))
    axes = [axis for axis in "dhw" if f"i{axis}" in entries]
    sizes = "x".join(entries["i" + axis] for axis in axes)
    taps = "x".join(entries["k" + axis] for axis in axes)
    stride = max(int(entries["s" + axis]) for axis in axes)
    groups = int(entries.get("g", 1))
    return (f"{entries['ic']} to {entries['oc']} channels, {taps} taps, {sizes}"
            + (f", stride {stride}" if stride > 1 else "") + (f", {groups} groups" if groups > 1 else ""))


ROOT = pathlib.Path(__file__).resolve().parent
