"""Files that `kiln bench --csv FILE` wrote, or that have its columns."""

import csv
import itertools
import re
import sys

NUMBERS = ["median_us", "min_us", "max_us", "tflops", "gbps", "flops", "bytes", "workspace_bytes"]
CASE = ["suite", "layer", "batch", "direction", "type", "layout", "math"]


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


def caption(machine):
    """The chip, the date (the first and the last one of a file that was put together), and whom Kiln
    was measured against."""
    days = sorted(set(re.findall(r"\d{4}-\d{2}-\d{2}", machine.get("date", "")))) or ["?"]
    parts = [machine.get("device", "?"), " to ".join(dict.fromkeys([days[0], days[-1]]))]
    for name, title in (("cudnn", "cuDNN"), ("cublas", "cuBLAS")):
        version = machine.get(name, "none:")
        if not version.startswith("none:"):
            interface = re.search(r"\((legacy|graph) ", version)
            parts.append(f"{title} {version.split(' ')[0]}"
                         + (f" ({interface[1]} interface)" if interface else ""))
    return ", ".join(parts)


def in_order(values):
    return list(dict.fromkeys(values))


def grouped(rows, names):
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def speeds(rows):
    """How many times as fast as cuDNN's graph interface Kiln is in each layer, by problem class
    (type, math, layout), suite and direction."""
    ratios = {}
    for pair in grouped(rows, ["suite", "layer", "problem"]).values():
        times = {row["contestant"]: row["median_us"] for row in pair}
        if "kiln" in times and "cudnn graph" in times:
            row = pair[0]
            key = ((row["type"], row["math"], row["layout"]), row["suite"], row["direction"])
            ratios.setdefault(key, []).append(times["cudnn graph"] / times["kiln"])
    return ratios
