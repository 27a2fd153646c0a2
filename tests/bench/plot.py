#!/usr/bin/env python3
"""Pictures of what `kiln bench --csv FILE` or layers.py wrote.

    tests/bench/plot.py FILE.csv... --out FOLDER [--only layers|roofline|latency|memory|speed]

layers: rates of Kiln and its peers, a picture for each selection of suite, batch, direction, type,
layout and math mode; roofline: rates over operations a byte, below what the chip can do; memory:
memory-bound operations against the device's copy; latency: what the host pays; speed: how many times
as fast as cuDNN's graph interface Kiln is in groups of layers. Needs matplotlib. Where several files
have the same row, the last one counts. figures.py draws those that are kept in this folder.
"""

import argparse
import pathlib
import sys

from results import (DIRECTIONS, LAYOUTS, SUITES, arithmetic, caption, grouped, in_order, mean, panel_name, read, shape,
                     speeds)

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
TITLES = {
    "kiln": "Kiln, no workspace",
    "cudnn legacy zero": "cuDNN, legacy interface, no workspace",
    "cudnn legacy any": "cuDNN, legacy interface, any workspace (MiB above)",
    "cudnn legacy": "cuDNN, legacy interface",
    "cublas gemm": "cuBLAS, the lowered matrices' product alone",
}
# Dense rates of the tensor cores of an H100 SXM and an H200, by NVIDIA's data sheet, TFLOP/s; exact f32
# is three products of TF32.
TENSOR_ROOFS = {"f16": 989, "bf16": 989, "TF32": 495, "exact f32": 165, "f64": 67}
MARKERS = {"f16": "^", "bf16": "v", "TF32": "D", "exact f32": "o", "f32 (FMA units)": "x", "f64": "s"}
HUES = {"f16": "#c8501e", "bf16": "#8c6bb1", "TF32": "#e8a13c", "exact f32": "#2c7f62", "f32 (FMA units)": "#4878a8",
        "f64": "#555555"}


def save(figure, path, stamp=None):
    metadata = {"Date": None, "Creator": f"Matplotlib v{matplotlib.__version__}"}
    if stamp:
        metadata["Source"] = stamp
    figure.savefig(path, format="svg", metadata=metadata, bbox_inches="tight")
    pyplot.close(figure)
    print(path)


def finish(figure, axes, folder, name, title, machine, stamp):
    axes.set_title(f"{title}\n{caption(machine)}", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    save(figure, folder / f"{name.replace(' ', '_').replace('/', '_')}.svg", stamp)


def bars(axes, rows, key, unit):
    """A group of bars a layer, a bar a contestant, with its extremes; over Kiln's how many times as fast
    it is as the fastest cuDNN."""
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
        axes.bar(at, rates, width, yerr=[low, high], color=COLORS[contestant],
                 label=TITLES.get(contestant, contestant), error_kw={"linewidth": 0.7, "ecolor": "#404040"})
        for x, p, rate, above in zip(at, places, rates, high):
            text = ""
            if contestant == "cudnn legacy any" and own[layers[p]]["workspace_bytes"] >= 2**20:
                text = f"{own[layers[p]]['workspace_bytes'] / 2**20:.0f}"
            others = [row[key] for row in rows if row["layer"] == layers[p] and row["contestant"].startswith("cudnn")]
            if contestant == "kiln" and others:
                text = f"{rate / max(others):.1f}x"
            axes.annotate(text, (x, rate + above), fontsize=7, ha="center", va="bottom", xytext=(0, 3),
                          textcoords="offset points", color=COLORS["kiln"] if contestant == "kiln" else "#404040")
    axes.set_ylabel(unit)
    axes.margins(y=0.15)
    axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return layers


def plot_layers(machine, rows, folder, stamp=None):
    names = ["suite", "batch", "direction", "type", "layout", "math"]
    convolutions = [row for row in rows if row["operation"] == "conv" and row["clock"] == "device"]
    for selection, own in grouped(convolutions, names).items():
        suite, batch, direction, kind, layout, mode = selection
        count = len(in_order(row["layer"] for row in own))
        figure, axes = pyplot.subplots(figsize=(max(7.5, 1 + 0.55 * count), 3.8))
        layers = bars(axes, own, "tflops", "TFLOP/s (more is better)")
        shapes = {row["layer"]: shape(row).replace(" channels", "").replace(", ", "\n") for row in own}
        if count <= 8:
            axes.set_xticks(range(count), [f"{layer.split(':')[-1]}\n{shapes[layer]}" for layer in layers], fontsize=8)
        else:
            axes.set_xticks(range(count), [layer.split(":")[-1] for layer in layers], rotation=60, ha="right")
        finish(figure, axes, folder, f"layers_{suite}_n{batch}_{direction}_{kind}_{layout}_{mode}",
               f"{SUITES.get(suite, suite)}, {batch} images, {DIRECTIONS[direction]}, {arithmetic(kind, mode)}, "
               f"{LAYOUTS[layout]}. 2x: Kiln needs half the time of the fastest cuDNN", machine, stamp)


def plot_memory(machine, rows, folder, stamp=None):
    """Operations of the largest batch: bars of Kiln and cuDNN, as shares of the device's own copy."""
    bound = [row for row in rows if row["suite"] == "memory"]
    if not bound:
        return
    batch = max(in_order(row["batch"] for row in bound), key=int)
    bound = [row for row in bound if row["batch"] == batch]
    panels = in_order((row["type"], row["math"], row["layout"]) for row in bound)
    operations = in_order(row["layer"] for row in bound)
    figure, all_axes = pyplot.subplots(1, len(panels), figsize=(2.4 * len(panels) + 2, 0.25 * len(operations) + 1.2),
                                       sharey=True, squeeze=False)
    for axes, panel in zip(all_axes[0], panels):
        own = {(row["layer"], row["contestant"]): row["gbps"] for row in bound
               if (row["type"], row["math"], row["layout"]) == panel}
        for i, contestant in enumerate(("kiln", "cudnn legacy")):
            shares = [own.get((operation, contestant), 0) / own[operation, "copy"] for operation in operations]
            axes.barh([p + (i - 0.5) * 0.4 for p in range(len(operations))], shares, 0.4, color=COLORS[contestant],
                      label=TITLES[contestant].replace(", no workspace", ""))
        axes.axvline(1, color="#404040", linewidth=0.8)
        axes.set_xticks([0, 0.5, 1], ["0", "50%", "100%"])
        axes.set_title(f"{panel[0]} {panel[2].upper()}", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8)
    first = all_axes[0][0]
    first.set_yticks(range(len(operations)), [operation.rsplit(" ", 1)[0] for operation in operations])
    first.invert_yaxis()
    all_axes[0][-1].legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.suptitle(f"Memory-bound operations on {operations[0].rsplit(' ', 1)[1]}, {batch} images: share of the device's own "
                    f"copy (longer is better)\n{caption(machine)}", fontsize=9)
    save(figure, folder / "memory.svg", stamp)


def plot_roofline(machine, rows, folder, stamp=None):
    """Rates of convolutions over operations a byte, below the roofs of memory, FMA units and tensor cores."""
    peaks = {row["contestant"]: row for row in rows if row["suite"] == "ceilings"}
    points = [row for row in rows if row["contestant"] == "kiln" and row["flops"] > 0 and row["clock"] == "device"]
    if not points or "copy" not in peaks:
        return
    figure, axes = pyplot.subplots(figsize=(8, 5))
    bandwidth = peaks["copy"]["gbps"] * 1e-3  # TB/s: TFLOP/s at one operation a byte
    intensities = [row["flops"] / row["bytes"] for row in points]
    least, most = min(intensities) / 2, max(intensities) * 1.5
    kinds = in_order(arithmetic(row["type"], row["math"]) for row in points)
    roofs = [(f"tensor cores, {kind}", TENSOR_ROOFS[kind], "-") for kind in kinds if kind in TENSOR_ROOFS]
    roofs += [(f"FMA units, {kind}, measured", peaks[f"fma peak {kind}"]["tflops"], "--") for kind in ("f32", "f64")
              if f"fma peak {kind}" in peaks]
    top = max(peak for _, peak, _ in roofs)
    axes.plot([least, top / bandwidth], [least * bandwidth, top], color="#404040", linewidth=1)
    axes.annotate(f"memory: {bandwidth:.2f} TB/s, measured by a copy", (least * 1.15, least * 1.15 * bandwidth), fontsize=7,
                  rotation=38, rotation_mode="anchor", va="bottom", xytext=(0, 3), textcoords="offset points")
    below = None
    for text, peak, style in sorted(roofs, key=lambda roof: roof[1]):
        axes.plot([peak / bandwidth, most], [peak, peak], color="#808080", linewidth=0.8, linestyle=style)
        apart = 5 if below and peak / below < 1.1 else 0  # points, of two roofs that lie together
        axes.annotate(f"{text}: {peak:.0f} TFLOP/s", (most, peak), ha="left", va="center", fontsize=7,
                      xytext=(4, apart), textcoords="offset points")
        below = peak
    for (kind, layout), own in grouped([{**row, "kind": arithmetic(row["type"], row["math"])} for row in points],
                                       ["kind", "layout"]).items():
        axes.scatter([row["flops"] / row["bytes"] for row in own], [row["tflops"] for row in own], s=18,
                     marker=MARKERS[kind], linewidths=1, color=HUES[kind],
                     facecolors=HUES[kind] if layout == "nhwc" or kind == "f32 (FMA units)" else "none",
                     label=f"{kind} {layout.upper()}", zorder=3)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations for each byte that must move")
    axes.set_ylabel("TFLOP/s (more is better)")
    axes.legend(fontsize=7, frameon=False, loc="lower left")
    suites = ", ".join(SUITES.get(suite, suite) for suite in in_order(row["suite"] for row in points))
    batches = " and ".join(in_order(row["batch"] for row in points))
    finish(figure, axes, folder, "roofline", f"Roofline: Kiln's convolutions ({suites}, all passes, {batches} images). Tensor "
           "cores' roofs by the data sheet", machine, stamp)


def plot_latency(machine, rows, folder, stamp=None):
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
    axes.set_xlabel("microseconds on the host (less is better)")
    finish(figure, axes, folder, "latency", "What the host pays for a small convolution", machine, stamp)


def plot_speed(machine, rows, folder, stamp=None):
    """A panel for each problem class; a bar is the geometric mean of a suite's layers, right of 1 where
    Kiln is faster and left of it where cuDNN is."""
    ratios = speeds(rows)
    panels = in_order(key[0] for key in ratios)
    suites = [suite for suite in SUITES if any(key[1] == suite for key in ratios)]
    if not panels:
        return
    figure, all_axes = pyplot.subplots(1, len(panels), figsize=(1.5 + 4.4 * len(panels), 0.8 + 0.55 * len(suites)),
                                       sharey=True, squeeze=False)
    shades = {"fwd": 1.0, "dgrad": 0.7, "wgrad": 0.4}
    height, least, most = 0.26, 1 / 4, 8  # of a bar; what is beyond is cut off, its number told
    for axes, panel in zip(all_axes[0], panels):
        for i, suite in enumerate(suites):
            for j, direction in enumerate(DIRECTIONS):
                own = ratios.get((panel, suite, direction))
                if own is None:
                    continue
                times = mean(own)
                end = min(max(times, least), most)
                axes.barh(i + (j - 1) * height, end - 1, height, left=1, alpha=shades[direction],
                          color=COLORS["kiln" if times >= 1 else "cudnn graph"])
                axes.annotate(f"{times:.2f}x", (end, i + (j - 1) * height), fontsize=7, va="center",
                              ha="left" if times >= 1 else "right", textcoords="offset points",
                              xytext=(2 if times >= 1 else -2, 0))
        axes.set_xscale("log", base=2)
        axes.set_xlim(least * 0.7, most * 1.2)
        axes.set_xticks([1 / 4, 1 / 2, 1, 2, 4, 8], ["1/4", "1/2", "equal", "2x", "4x", "8x"])
        axes.minorticks_off()
        axes.axvline(1, color="#404040", linewidth=0.8)
        axes.set_title(panel_name(panel), fontsize=10)
        axes.text(0.98, -0.1, "Kiln faster →", transform=axes.transAxes, ha="right", fontsize=8,
                  color=COLORS["kiln"])
        axes.text(0.02, -0.1, "← cuDNN faster", transform=axes.transAxes, ha="left", fontsize=8,
                  color=COLORS["cudnn graph"])
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.tick_params(axis="y", length=0, labelsize=9)
        axes.tick_params(axis="x", labelsize=8)
    first = all_axes[0][0]
    layers = {suite: max(len(own) for key, own in ratios.items() if key[1] == suite) for suite in suites}
    first.set_yticks(range(len(suites)), [f"{SUITES[suite]} ({layers[suite]})" for suite in suites])
    first.invert_yaxis()
    handles = [matplotlib.patches.Patch(color="#404040", alpha=shades[d], label=title)
               for d, title in DIRECTIONS.items()]
    figure.legend(handles=handles, loc="lower center", ncols=3, fontsize=8, frameon=False, bbox_to_anchor=(0.5, -0.05))
    figure.suptitle("How many times as fast as cuDNN Kiln is: 2x needs half the time. Geometric mean over the layers of a group "
                    f"(their number)\n{caption(machine)}", fontsize=9, y=0.99)
    save(figure, folder / "speed.svg", stamp)


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
