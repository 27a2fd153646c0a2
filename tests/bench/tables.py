#!/usr/bin/env python3
"""Tables of a folder's CSV files, one for each file, into the folder's README.md.

    tests/bench/tables.py tests/bench/h200 tests/bench/h100 [--check]

--check writes nothing and fails if a README.md is not what its files give.
"""

import argparse
import pathlib
import statistics
import sys

from results import caption, grouped, in_order, read, speeds

HEAD = """# Figures: {name}

Written by `tests/bench/tables.py` from the CSV files of this folder: one table is one file. The CSV files have
more: extremes, kernels, workspaces, errors, and the line that runs each problem again. How they were measured, and
what to know before comparing them: [../README.md](../README.md).
"""
CELLS = {
    "rates": "TFLOP/s of Kiln, in brackets of cuDNN without workspace and with any. `-`: cuDNN has none.",
    "memory": "Bytes that must move over the median time, as a share of the device's own copy; in brackets cuDNN's.",
    "latency": "Median time on the host.",
    "speed": "How many times as fast as cuDNN Kiln is: forward / data gradient / filter gradient, each the geometric "
             "mean over the layers.",
}
DIRECTIONS = ["fwd", "dgrad", "wgrad"]


def markdown(columns, lines):
    return "\n".join("| " + " | ".join(cells) + " |"
                     for cells in [columns, ["---"] * len(columns), *lines])


def rate(value):
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def rates(rows):
    rows = [row for row in rows if row["operation"] == "conv" and row["clock"] == "device"]
    cases = grouped(rows, ["layer", "batch", "direction"])
    columns = [(batch, direction) for batch in in_order(row["batch"] for row in rows)
               for direction in DIRECTIONS
               if any(key[1:] == (batch, direction) for key in cases)]
    lines = []
    for layer in in_order(row["layer"] for row in rows):
        cells = [layer.split(":")[-1]]
        for batch, direction in columns:
            own = {row["contestant"]: row["tflops"]
                   for row in cases.get((layer, batch, direction), [])}
            peers = [rate(own[name]) if name in own else "-"
                     for name in ("cudnn legacy zero", "cudnn legacy any")]
            cells.append(f"{rate(own['kiln'])} [{', '.join(peers)}]" if "kiln" in own else "")
        lines.append(cells)
    return markdown(["layer"] + [f"{direction}, N = {batch}" for batch, direction in columns], lines)


def memory(rows):
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
            cells.append(f"{share['kiln']} [{share.get('cudnn legacy', '-')}]" if "kiln" in share else "")
        lines.append(cells)
    return markdown(["operation"] + [" ".join(column) for column in columns], lines)


def latency(rows):
    lines = []
    for row in rows:
        if row["suite"] == "latency":
            us = row["median_us"]
            time = f"{us:.3g} us" if us < 1000 else f"{us / 1000:.3g} ms"
            lines.append([row["layer"], row["contestant"], time])
    return markdown(["what", "whose", "time"], lines)


def speed(rows):
    ratios = speeds(rows)
    panels = in_order(key[0] for key in ratios)
    suites = in_order(key[1] for key in ratios)
    lines = []
    for suite in suites:
        layers = max(len(own) for key, own in ratios.items() if key[1] == suite)
        cells = [f"{suite} ({layers})"]
        for panel in panels:
            means = [ratios.get((panel, suite, direction)) for direction in DIRECTIONS]
            cell = " / ".join(f"{statistics.geometric_mean(own):.2f}" if own else "-" for own in means)
            counts = in_order(len(own or []) for own in means)
            cells.append("" if counts == [0] else cell if counts == [layers]
                         else f"{cell} (of {', '.join(str(count) for count in counts)})")
        lines.append(cells)
    names = [f"{'tf32' if math == 'tf32' else kind} {layout}" for kind, math, layout in panels]
    return markdown(["layers (number)"] + names, lines)


def page(folder):
    name, parts = folder.name.upper(), []
    for path in sorted(folder.glob("*.csv")):
        machine, rows = read([path])
        suites = {row["suite"] for row in rows} - {"ceilings"}
        kind = ("memory" if "memory" in suites else "latency" if "latency" in suites
                else "speed" if any(row["contestant"] == "cudnn graph" for row in rows) else "rates")
        method = f" {machine['method'][0].upper()}{machine['method'][1:]}." if "method" in machine else ""
        table = {"rates": rates, "memory": memory, "latency": latency, "speed": speed}[kind](rows)
        parts.append(f"## {path.name}\n\n{caption(machine)}. {CELLS[kind]}{method}\n\n{table}\n")
    return HEAD.format(name=name) + "\n" + "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", nargs="+", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    for folder in arguments.folder:
        readme, text = folder / "README.md", page(folder.resolve())
        if not arguments.check:
            readme.write_text(text, encoding="utf-8")
        elif not readme.exists() or readme.read_text(encoding="utf-8") != text:
            sys.exit(f"{readme} is not what {folder}'s CSV files give: run tests/bench/tables.py {folder}")


if __name__ == "__main__":
    main()
