#!/usr/bin/env python3
"""Tables of a folder's CSV files: README.md, a table for each file;
layers.md and layers_16_bits.md, each layer of the files that face cuDNN's graph interface; memory.md, what memory bounds.
figures.py writes all of them.

    tests/bench/tables.py tests/bench/h200 tests/bench/h100
"""

import argparse
import pathlib

from results import (DIRECTIONS, SUITES, caption, chip_and_days, grouped, in_order, mean, pairs, panel_name,
                     peer, peers, read, shape, speeds)

HEAD = """# Figures: {name}

Written by [figures.py](../figures.py) from the CSV files of this folder: one table is one file of one chip, and of
one run unless it says so. The CSV files have more: extremes, kernels, workspaces, errors, and the line that runs each problem
again. How they were measured, and what to know before comparing them: [../README.md](../README.md).
"""
CELLS = {
    "rates": "TFLOP/s; more is better. `-`: {cudnn} has no algorithm.",
    "memory": "Bytes that must move over the median time, as a share of the device's own copy; more is better.",
    "latency": "Time on the host; less is better.",
    "steps": "Milliseconds of a step, in parentheses the least and the most, and how many times as fast as PyTorch; above 1 Kiln "
             "is faster. In a CUDA graph nothing waits for the host.",
    "fused": "Milliseconds of a step, in parentheses the least and the most; of steps as called also the GiB that they hold at "
             "most beyond parameters and images. In a CUDA graph nothing waits for the host.",
    "speed": "How many times as fast as {cudnn} Kiln is: forward / data gradient / filter gradient, each the geometric mean "
             "over the layers; above 1 Kiln is faster. Each layer: [{page}]({page}#{anchor}).",
}
WHAT = {
    "memory": "pooling, activations, softmax, transforms, reductions",
    "latency": "what a plan and a call cost the host",
    "steps": "training steps of networks, in CUDA graphs and as called",
    "fused": "training steps of networks with batch normalization: convolutions alone, fused blocks, torch.compile",
    "speed": "layers of networks",
}


def markdown(columns, lines):
    return "\n".join("| " + " | ".join(cells) + " |"
                     for cells in [columns, ["---"] * len(columns), *lines])


def rate(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def rates(rows, machine):
    rows = [row for row in rows if row["operation"] == "conv" and row["clock"] == "device"]
    cases = grouped(rows, ["layer", "batch", "direction"])
    columns = [(batch, direction) for batch in in_order(row["batch"] for row in rows)
               for direction in DIRECTIONS
               if any(key[1:] == (batch, direction) for key in cases)]
    lines = []
    for layer in in_order(row["layer"] for row in rows):
        of_layer = next(row for row in rows if row["layer"] == layer)
        cells = [f"{layer.split(':')[-1]}: {shape(of_layer)}"]
        for batch, direction in columns:
            own = {row["contestant"]: row["tflops"]
                   for row in cases.get((layer, batch, direction), [])}
            others = [rate(own[name]) if name in own else "-"
                      for name in ("cudnn legacy zero", "cudnn legacy any")]
            cells.append(f"{rate(own['kiln'])} [{', '.join(others)}]" if "kiln" in own else "")
        lines.append(cells)
    corner = f"layer (cells: Kiln [{peer(machine, 'cudnn')} without workspace, with any])"
    return markdown([corner] + [f"{direction}, N = {batch}" for batch, direction in columns], lines)


def memory(rows, machine):
    rows = [row for row in rows if row["suite"] == "memory"]
    columns = in_order((row["type"], row["layout"]) for row in rows)
    cases = grouped(rows, ["layer", "type", "layout"])
    batches = {row["layer"]: row["batch"] for row in rows}
    lines = []
    for layer, batch in batches.items():
        cells = [f"{layer}, N = {batch}"]
        for column in columns:
            own = {row["contestant"]: row["gbps"] for row in cases.get((layer, *column), [])}
            share = {name: f"{own[name] / own['copy']:.0%}" for name in own if own.get("copy")}
            granted = f", with workspace {share['kiln workspace']}" if "kiln workspace" in share else ""
            cells.append(f"{share['kiln']}{granted} [{share.get('cudnn legacy', '-')}]" if "kiln" in share else "")
        lines.append(cells)
    return markdown([f"operation (cells: Kiln [{peer(machine, 'cudnn')}])"] + [f"{kind} {layout.upper()}" for kind, layout in columns], lines)


def latency(rows, machine):
    lines = []
    names = {"kiln": "Kiln", "cudnn legacy zero": f"{peer(machine, 'cudnn')}, without workspace",
             "cublas gemm": f"{peer(machine, 'cublas')}, the product of the lowered matrices",
             "pytorch": "PyTorch", "kiln native policy": "Kiln with the policy `native`",
             "kiln measure": "Kiln with the policy `measure`", "kiln disabled": "after `kiln.torch.disable()`"}
    for row in rows:
        if row["suite"] == "latency":
            us = row["median_us"]
            time = f"{us:.3g} us" if us < 1000 else f"{us / 1000:.3g} ms"
            if row["min_us"] < row["max_us"] < 1000:
                time += f" ({row['min_us']:.3g} to {row['max_us']:.3g})"
            lines.append([row["layer"], names.get(row["contestant"], row["contestant"]), time])
    return markdown(["what", "whose", "time"], lines)


def steps(rows, machine):
    """A line for each way to run a step: in a CUDA graph or as called, with and without torch.compile."""
    hows = {"graph": "in a CUDA graph", "step": "in a CUDA graph", "called": "as called"}
    lines = []
    for key, own in grouped(rows, ["layer", "batch", "type", "math", "layout", "direction"]).items():
        for compiled in ("", " compiled"):
            of = {row["contestant"].removesuffix(" compiled"): row for row in own
                  if row["contestant"].endswith(" compiled") == bool(compiled)}
            if not of:
                continue
            cells = []
            for name in ("pytorch", "kiln", "kiln measure"):
                if name not in of:
                    cells.append("")
                    continue
                median, least, most = (of[name][column] / 1000 for column in ("median_us", "min_us", "max_us"))
                cell = f"{median:.2f}" + (f" ({least:.2f} to {most:.2f})" if least < most else "")
                cells.append(cell if name == "pytorch" else f"{cell}: {of['pytorch']['median_us'] / 1000 / median:.2f}x")
            lines.append([*key[:2], panel_name(key[2:5]), hows[key[5]] + (", torch.compile" if compiled else ""), *cells])
    return markdown(["network", "images", "arithmetic", "step", f"PyTorch with {peer(machine, 'cudnn')}", "Kiln, `wait`",
                     "Kiln, `measure`"], lines)


def fused(rows, machine):
    """A line for each network, in a CUDA graph and as called."""
    contestants = {"pytorch": f"PyTorch with {peer(machine, 'cudnn')}", "kiln": "Kiln's convolutions", "kiln fused": "fused blocks",
                   "kiln fused recompute": "fused, recompute", "pytorch compiled": "torch.compile"}
    lines = []
    for key, own in grouped(rows, ["layer", "batch", "direction"]).items():
        of, cells = {row["contestant"]: row for row in own}, []
        for name in contestants:
            row = of.get(name)
            if row is None:
                cells.append("")
                continue
            median, least, most = (row[column] / 1000 for column in ("median_us", "min_us", "max_us"))
            peak = f", {row['workspace_bytes'] / 2**30:.2f} GiB" if row["workspace_bytes"] else ""
            cells.append(f"{median:.2f} ({least:.2f} to {most:.2f}){peak}")
        lines.append([*key[:2], "in a CUDA graph" if key[2] == "graph" else "as called", *cells])
    return markdown(["network", "images", "step", *contestants.values()], lines)


def speed(rows, machine):
    ratios = speeds(rows)
    panels = in_order(key[0] for key in ratios)
    suites = in_order(key[1] for key in ratios)
    lines = []
    for suite in suites:
        layers = max(len(own) for key, own in ratios.items() if key[1] == suite)
        cells = [f"{SUITES.get(suite, suite)} ({layers})"]
        for panel in panels:
            own = [ratios.get((panel, suite, direction)) for direction in DIRECTIONS]
            cell = " / ".join(f"{mean(of_pass):.2f}" if of_pass else "-" for of_pass in own)
            counts = in_order(len(of_pass or []) for of_pass in own)
            cells.append("" if counts == [0] else cell if counts == [layers]
                         else f"{cell} (of {', '.join(str(count) for count in counts)})")
        lines.append(cells)
    return markdown([f"layers, their number (cells: times as fast as {peer(machine, 'cudnn')})"] + [panel_name(panel) for panel in panels], lines)


def by_kernel(files):
    """What each engine reaches beside cuDNN's graph interface."""
    ratios, panels = {}, []
    for rows in files:
        for kiln, cudnn in pairs(rows):
            panel = (kiln["type"], kiln["math"], kiln["layout"])
            panels = in_order([*panels, panel])
            engine = kiln["kernel"].split(" ")[0] or "not noted"
            ratios.setdefault((engine, panel), []).append(cudnn["median_us"] / kiln["median_us"])
    lines = []
    for engine in sorted({key[0] for key in ratios}):
        cells = [f"`{engine}`" if " " not in engine else engine]
        for panel in panels:
            own = ratios.get((engine, panel))
            cells.append(f"{min(own):.2f}, {mean(own):.2f}, {max(own):.2f} ({len(own)})" if own else "")
        lines.append(cells)
    return markdown(["kernel"] + [panel_name(panel) for panel in panels], lines)


def layers(rows, machine):
    """A line for each layer: times and the speed-up, or, of several problem classes, speed-ups alone."""
    cases, panels = {}, []
    for kiln, cudnn in pairs(rows):
        panel = (kiln["type"], kiln["math"], kiln["layout"])
        panels = in_order([*panels, panel])
        of_layer = cases.setdefault((kiln["suite"], kiln["layer"]), (kiln, {}))
        of_layer[1][panel, kiln["direction"]] = (kiln["median_us"], cudnn["median_us"])
    many = len(panels) > 1
    lines = []
    for (suite, layer), (row, times) in cases.items():
        cells = [f"{SUITES.get(suite, suite)}: {layer}", f"{shape(row)}, N = {row['batch']}"]
        for panel in panels:
            for direction in DIRECTIONS:
                own, other = times.get((panel, direction), (0, 0))
                cells.append("" if own == 0 else f"{other / own:.2f}" if many
                             else f"{rate(own)}, {rate(other)}: {other / own:.2f}x")
        lines.append(cells)
    columns = [f"{panel_name(panel)} {direction}" if many else DIRECTIONS[direction]
               for panel in panels for direction in DIRECTIONS]
    cells = ("times as fast as" if many else "us of Kiln, of") + f" {peer(machine, 'cudnn')}"
    return markdown([f"layer (cells: {cells})", "shape"] + columns, lines), many


def kind_of(rows):
    suites = {row["suite"] for row in rows} - {"ceilings"}
    return ("memory" if "memory" in suites else "latency" if "latency" in suites else "steps" if "steps" in suites
            else "fused" if "fused" in suites
            else "speed" if any(row["contestant"] == "cudnn graph" for row in rows) else "rates")


def what(kind, rows):
    """What a file has, in words: its suites or operations, and its problem classes."""
    suites = in_order(SUITES.get(row["suite"], row["suite"]) for row in rows if row["suite"] != "ceilings")
    if kind in ("latency", "steps", "fused"):
        return WHAT[kind]
    names = in_order(panel_name((row["type"], row["math"], row["layout"])) for row in rows
                     if row["contestant"] == "kiln" and row["type"])
    return f"{WHAT.get(kind, ', '.join(suites))}: {', '.join(names)}"


def page_of(kind, path, rows):
    """The page beside README.md that has a file's long table; "" if README.md has all there is."""
    if kind == "memory":
        return "memory.md"
    # A list of whole networks is too long for a page of layers.
    if kind != "speed" or "networks" in path.name:
        return ""
    types = {row["type"] for row in rows if row["contestant"] == "kiln"}
    return "layers_16_bits.md" if types <= {"f16", "bf16"} else "layers.md"


TITLES = {"memory.md": "What memory bounds", "layers.md": "Each layer", "layers_16_bits.md": "Each layer in 16 bits"}


class Tables:
    """A page with a table for each file, and their index."""

    def __init__(self):
        self.index, self.tables, self.against_graph = [], [], {}

    def text(self, head):
        parts = [head, markdown(["file", "what", "date", "beside"], self.index) + "\n", *self.tables]
        if self.against_graph:
            rows = [rows for files in self.against_graph.values() for rows in files]
            parts.append(f"## By kernel\n\nThe time of {' or '.join(self.against_graph)} over Kiln's, by the kernel that ran: "
                         "least, geometric mean, most (number of layers and passes). The pages of the kernels: "
                         f"[kernel_sources](../../../kernel_sources/README.md).\n\n{by_kernel(rows)}\n")
        return "\n".join(parts)


def pages(folder):
    """README.md and the pages of the long tables."""
    name, all_files, of_pages = folder.name.upper(), Tables(), {}
    for path in sorted(folder.glob("*.csv")):
        machine, rows = read([path])
        kind = kind_of(rows)
        anchor = path.name.replace(".", "").lower()
        method = f" {machine['method'][0].upper()}{machine['method'][1:]}." if "method" in machine else ""
        page = page_of(kind, path, rows)
        cells = CELLS[kind].format(anchor=anchor, page=page or path.name, cudnn=peer(machine, "cudnn"))
        if kind == "speed" and not page:
            cells = cells.replace(f"({path.name}#{anchor})", f"({path.name})")
        head = f"## {path.name}\n\n{caption(machine)}. {cells}{method}\n\n"
        all_files.index.append([f"[{path.name}](#{anchor})" if kind != "memory" else f"[{path.name}]({page}#{anchor})",
                          what(kind, rows), chip_and_days(machine)[1], peers(machine)])
        if kind == "memory":
            of_pages.setdefault(page, []).append(f"{head}{memory(rows, machine)}\n")
            continue
        table = {"rates": rates, "latency": latency, "speed": speed, "steps": steps, "fused": fused}[kind](rows, machine)
        all_files.tables.append(f"{head}{table}\n")
        if kind == "speed":
            all_files.against_graph.setdefault(peer(machine, "cudnn"), []).append(rows)
        if page:
            lines, many = layers(rows, machine)
            cudnn = peer(machine, "cudnn")
            told = (f"How many times as fast as {cudnn} Kiln is." if many
                    else f"Microseconds of Kiln and of {cudnn}, and how many times as fast Kiln is.")
            of_pages.setdefault(page, []).append(f"## {path.name}\n\n{caption(machine)}. {told}\n\n{lines}\n")
    written = {folder / "README.md": all_files.text(HEAD.format(name=name))}
    for page, own in of_pages.items():
        head = f"# {TITLES[page]}: {name}\n\nWritten by [figures.py](../figures.py), as [README.md](README.md).\n"
        written[folder / page] = "\n".join([head, *own])
    return written


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    for folder in arguments.folder:
        for path, text in pages(folder.resolve()).items():
            path.write_text(text, encoding="utf-8")
            print(path)


if __name__ == "__main__":
    main()
