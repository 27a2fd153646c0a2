#!/usr/bin/env python3
"""Pictures of what `kiln bench --csv FILE` wrote: a bar chart of layers against peers for each
selection of batch, direction, type, layout and math mode, a roofline, plan latency; of rows that face
cuDNN's graph interface, how fast Kiln is in each suite beside it.

    tests/bench/plot.py FILE.csv... --out FOLDER [--only layers|roofline|latency|memory|speed]

Needs matplotlib. Where several files have the same row, the last one counts.
"""

import argparse
import pathlib
import statistics
import sys

from results import caption, grouped, in_order, read, speeds

try:
    import matplotlib
    import matplotlib.patches

    matplotlib.use("svg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # text stays text
    matplotlib.rcParams["svg.hashsalt"] = "kiln"  # the same CSV gives the same file
    from matplotlib import pyplot
except ImportError:
    sys.exit("plot.py needs matplotlib: python3 -m pip install matplotlib")

COLORS = {
    "kiln": "#c8501e",
    "cudnn legacy zero": "#4878a8",
    "cudnn legacy any": "#a8c4dc",
    "cudnn legacy": "#4878a8",
    "cudnn graph": "#4878a8",
    "cublas gemm": "#8a8a8a",
    "copy": "#d0d0d0",
    "fma peak": "#d0d0d0",
    "bare launch": "#d0d0d0",
}

def save(figure, axes, folder, name, title, machine):
    axes.set_title(f"{title}\n{caption(machine)}", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    path = folder / f"{name.replace(' ', '_').replace('/', '_')}.svg"
    figure.savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
    print(path)


def bars(axes, rows, key, unit):
    """A group of bars a layer, a bar a contestant, with its extremes."""
    layers = in_order(row["layer"] for row in rows)
    contestants = [name for name in COLORS if any(row["contestant"] == name for row in rows)]
    width = 0.8 / max(len(contestants), 1)
    for i, contestant in enumerate(contestants):
        own = {row["layer"]: row for row in rows if row["contestant"] == contestant}
        places = [p for p, layer in enumerate(layers) if layer in own]
        rates = [own[layers[p]][key] for p in places]
        # A rate falls as its time rises.
        low = [rate * (1 - own[layers[p]]["median_us"] / own[layers[p]]["max_us"])
               for p, rate in zip(places, rates)]
        high = [rate * (own[layers[p]]["median_us"] / own[layers[p]]["min_us"] - 1)
                for p, rate in zip(places, rates)]
        at = [p + (i - (len(contestants) - 1) / 2) * width for p in places]
        axes.bar(at, rates, width, yerr=[low, high], color=COLORS[contestant], label=contestant,
                 error_kw={"linewidth": 0.7, "ecolor": "#404040"})
        if contestant == "cudnn legacy any":
            for x, p, rate in zip(at, places, rates):
                mebibytes = own[layers[p]]["workspace_bytes"] / 2**20
                if mebibytes >= 1:
                    axes.annotate(f"{mebibytes:.0f} MiB", (x, rate), rotation=90, fontsize=6,
                                  ha="center", va="bottom", xytext=(0, 4),
                                  textcoords="offset points")
    axes.set_xticks(range(len(layers)), [layer.split(":")[-1] for layer in layers],
                    rotation=0 if len(layers) <= 8 else 60,
                    ha="center" if len(layers) <= 8 else "right")
    axes.set_ylabel(unit)
    axes.margins(y=0.2)
    axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def plot_layers(machine, rows, folder):
    names = ["suite", "batch", "direction", "type", "layout", "math"]
    convolutions = [row for row in rows if row["operation"] == "conv" and row["clock"] == "device"]
    for selection, own in grouped(convolutions, names).items():
        suite, batch, direction, kind, layout, math = selection
        layers = len(in_order(row["layer"] for row in own))
        figure, axes = pyplot.subplots(figsize=(max(6, 1 + 0.55 * layers), 3.6))
        bars(axes, own, "tflops", "TFLOP/s")
        save(figure, axes, folder, f"layers_{suite}_n{batch}_{direction}_{kind}_{layout}_{math}",
             f"{suite}, N={batch}: {direction} {kind} {layout}, {math} math", machine)


def plot_memory(machine, rows, folder):
    names = ["batch", "type", "layout"]
    bound = [row for row in rows if row["suite"] == "memory"]
    for (batch, kind, layout), own in grouped(bound, names).items():
        for row in own:
            row["layer"] = " ".join(row["layer"].split(" ")[:-1])  # the sizes are in the title
        figure, axes = pyplot.subplots(figsize=(10, 3.6))
        bars(axes, own, "gbps", "GB/s of the bytes that must move")
        save(figure, axes, folder, f"memory_n{batch}_{kind}_{layout}",
             f"memory-bound operations, N={batch}: {kind} {layout}", machine)


def plot_roofline(machine, rows, folder):
    """Arithmetic against bytes of every convolution, below what the chip was measured to reach."""
    peaks = {row["contestant"]: row for row in rows if row["suite"] == "ceilings"}
    points = [row for row in rows
              if row["contestant"] in ("kiln", "cudnn legacy zero", "cudnn legacy any") and row["flops"] > 0
              and row["clock"] == "device"]
    if not points or "copy" not in peaks:
        return
    figure, axes = pyplot.subplots(figsize=(6.5, 4.2))
    bandwidth = peaks["copy"]["gbps"] * 1e-3  # TB/s: TFLOP/s at one operation a byte
    intensities = [row["flops"] / row["bytes"] for row in points]
    least, most = min(intensities) / 2, max(intensities) * 2
    for kind in in_order(row["type"] for row in points):
        peak = peaks.get(f"fma peak {kind}")
        if peak is None:
            continue
        ridge = peak["tflops"] / bandwidth
        axes.plot([min(least, ridge / 2), ridge, most],
                  [min(least, ridge / 2) * bandwidth, peak["tflops"], peak["tflops"]],
                  color="#404040", linewidth=1)
        axes.annotate(f"FMA {kind}: {peak['tflops']:.1f} TFLOP/s", (most, peak["tflops"]),
                      ha="right", va="bottom", fontsize=7)
    if not any(f"fma peak {row['type']}" in peaks for row in points):
        axes.plot([least, most], [least * bandwidth, most * bandwidth], color="#404040",
                  linewidth=1)
    markers = {"f32": "o", "f64": "s", "f16": "^", "bf16": "v"}
    for (contestant, kind), own in grouped(points, ["contestant", "type"]).items():
        axes.scatter([row["flops"] / row["bytes"] for row in own],
                     [row["tflops"] for row in own], s=14, marker=markers[kind],
                     color=COLORS[contestant], label=f"{contestant} {kind}",
                     zorder=3 if contestant == "kiln" else 2)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations per byte that must move")
    axes.set_ylabel("TFLOP/s")
    axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(figure, axes, folder, "roofline", f"roofline; copy {peaks['copy']['gbps']:.0f} GB/s",
         machine)


def plot_latency(machine, rows, folder):
    own = [row for row in rows if row["suite"] == "latency" and row["clock"] == "host"]
    if not own:
        return
    kind = in_order(row["type"] for row in own)[0]
    own = [row for row in own if row["type"] == kind][::-1]
    figure, axes = pyplot.subplots(figsize=(6.5, 0.6 + 0.32 * len(own)))
    names = [f"{row['layer']}: {row['contestant']}" for row in own]
    medians = [row["median_us"] for row in own]
    spread = [[row["median_us"] - row["min_us"] for row in own],
              [row["max_us"] - row["median_us"] for row in own]]
    axes.barh(names, medians, xerr=spread, error_kw={"linewidth": 0.7, "ecolor": "#404040"},
              color=[COLORS.get(row["contestant"], "#4878a8") for row in own])
    for i, median in enumerate(medians):
        text = f"{median:.3g} us" if median < 1000 else f"{median / 1000:.3g} ms"
        axes.annotate(f" {text}", (median, i), va="bottom", fontsize=7)
    axes.set_xscale("log")
    axes.set_xlabel("microseconds on the host")
    save(figure, axes, folder, "latency", "what the host pays for a small convolution", machine)


# The suites of the speed picture, and the problems of its panels: type, math, layout.
SPEED_SUITES = {
    "resnet50": "ResNet-50",
    "vgg16": "VGG-16",
    "diffusion": "diffusion U-Net, VAE",
    "grouped": "grouped 3x3",
    "depthwise": "depthwise",
    "small": "batch of 1 or 4",
}
SPEED_PANELS = {
    ("f32", "default", "nchw"): "f32 at f32's accuracy, NCHW",
    ("f32", "tf32", "nhwc"): "TF32, NHWC",
    ("f16", "default", "nhwc"): "f16, NHWC",
}
SPEED_DIRECTIONS = {"fwd": "forward", "dgrad": "data gradient", "wgrad": "filter gradient"}


def plot_speed(machine, rows, folder):
    """A panel for each precision; a bar is the geometric mean of a suite's layers, right of 1 where
    Kiln is faster and left of it where cuDNN is."""
    ratios = speeds(rows)
    panels = [panel for panel in SPEED_PANELS if any(key[0] == panel for key in ratios)]
    if not panels:
        return
    figure, all_axes = pyplot.subplots(1, len(panels), figsize=(10, 4.4), sharey=True, squeeze=False)
    shades = {"fwd": 1.0, "dgrad": 0.7, "wgrad": 0.4}
    height = 0.26
    for axes, panel in zip(all_axes[0], panels):
        for i, suite in enumerate(SPEED_SUITES):
            for j, direction in enumerate(SPEED_DIRECTIONS):
                own = ratios.get((panel, suite, direction))
                if own is None:
                    continue
                mean = statistics.geometric_mean(own)
                axes.barh(i + (j - 1) * height, mean - 1, height, left=1, alpha=shades[direction],
                          color=COLORS["kiln" if mean >= 1 else "cudnn graph"])
                axes.annotate(f"{mean:.2f}", (mean, i + (j - 1) * height), fontsize=7, va="center",
                              ha="left" if mean >= 1 else "right", textcoords="offset points",
                              xytext=(2 if mean >= 1 else -2, 0))
        axes.set_xscale("log", base=2)
        axes.set_xlim(1 / 64, 8)
        ticks = [1 / 16, 1 / 4, 1, 4]
        axes.set_xticks(ticks, ["1/16", "1/4", "equal", "4x"])
        axes.minorticks_off()
        axes.axvline(1, color="#404040", linewidth=0.8)
        axes.set_title(SPEED_PANELS[panel], fontsize=10)
        axes.text(0.98, -0.13, "Kiln faster →", transform=axes.transAxes, ha="right", fontsize=8,
                  color=COLORS["kiln"])
        axes.text(0.02, -0.13, "← cuDNN faster", transform=axes.transAxes, ha="left", fontsize=8,
                  color=COLORS["cudnn graph"])
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0, labelsize=9)
        axes.tick_params(axis="x", labelsize=8)
    first = all_axes[0][0]
    layers = {suite: max(len(own) for key, own in ratios.items() if key[1] == suite)
              for suite in SPEED_SUITES}
    first.set_yticks(range(len(SPEED_SUITES)),
                     [f"{title} ({layers[suite]})" for suite, title in SPEED_SUITES.items()])
    first.invert_yaxis()
    handles = [matplotlib.patches.Patch(color="#404040", alpha=shades[d], label=title)
               for d, title in SPEED_DIRECTIONS.items()]
    figure.legend(handles=handles, loc="lower center", ncols=3, fontsize=8, frameon=False,
                  bbox_to_anchor=(0.5, -0.09))
    figure.suptitle("How many times as fast as cuDNN Kiln is: geometric mean over the layers of each "
                    f"group (number of layers)\n{caption(machine)}", fontsize=9, y=1.02)
    path = folder / "speed.svg"
    figure.savefig(path, format="svg", metadata={"Date": None}, bbox_inches="tight")
    pyplot.close(figure)
    print(path)


PICTURES = {
    "layers": plot_layers,
    "memory": plot_memory,
    "roofline": plot_roofline,
    "latency": plot_latency,
    "speed": plot_speed,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("csv", nargs="+")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--only", choices=sorted(PICTURES), action="append")
    arguments = parser.parse_args()
    machine, rows = read(arguments.csv)
    if not rows:
        sys.exit("no row has times")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.only or PICTURES:
        PICTURES[name](machine, [dict(row) for row in rows], arguments.out)


if __name__ == "__main__":
    main()
