#!/usr/bin/env python3
"""Writes every table and picture of this folder, and the figures that other pages quote, from the CSV files beside them.

    tests/bench/figures.py             # after a new CSV file; pictures need matplotlib
    tests/bench/figures.py --check     # whether what is there is what would be written

--check writes nothing. Tables are compared letter by letter. A picture says by which text and from which rows it was
drawn (a hash in its metadata); where the matplotlib that drew it is installed, it is drawn and compared, too.
"""

import argparse
import contextlib
import hashlib
import io
import pathlib
import re
import sys
import tempfile

from quotes import pages_that_quote
from results import ROOT, read
from tables import pages

FOLDERS = ["h100", "h200"]
# picture: its kind, and the files whose rows it shows.
PICTURES = {
    "h200/speed.svg": ("speed", ["h200/layers_tf32_nhwc.csv", "h200/layers_f16_nhwc.csv"]),
    "h200/memory.svg": ("memory", ["h200/memory.csv"]),
}


def stamp(kind, files):
    text = hashlib.sha256()
    for path in [ROOT / "plot.py", ROOT / "results.py", *(ROOT / name for name in files)]:
        text.update(path.read_bytes())
    return f"{kind} of {', '.join(files)}: {text.hexdigest()[:16]}"


def draw(name, folder):
    """The picture's text, drawn into a folder that is left."""
    from plot import PICTURES as drawers

    kind, files = PICTURES[name]
    machine, rows = read([ROOT / path for path in files])
    with contextlib.redirect_stdout(io.StringIO()):
        drawers[kind](machine, rows, folder, stamp(kind, files))
    return (folder / pathlib.Path(name).name).read_text(encoding="utf-8")


def drawn_by(text):
    found = re.search(r"Matplotlib v([0-9.]+)", text)
    return found[1] if found else None


def matplotlib_version():
    try:
        import matplotlib
    except ImportError:
        return None
    return matplotlib.__version__


def texts():
    """{page: what it should be}."""
    of_folders = [pages(ROOT / folder) for folder in FOLDERS]
    return {path: text for own in [*of_folders, pages_that_quote()] for path, text in own.items()}


def faults():
    """What is not what the CSV files give."""
    for path, text in texts().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            yield f"{path} is not what the CSV files give"
    for name, (kind, files) in PICTURES.items():
        path = ROOT / name
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        if stamp(kind, files) not in text:
            yield f"{path} was not drawn by today's plot.py from today's {', '.join(files)}"
        elif drawn_by(text) == matplotlib_version():
            with tempfile.TemporaryDirectory() as folder:
                if draw(name, pathlib.Path(folder)) != text:
                    yield f"{path} is not what plot.py draws"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        found = list(faults())
        if found:
            sys.exit("\n".join([*found, "run tests/bench/figures.py"]))
        return
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
        print(path)
    for name in PICTURES:
        with tempfile.TemporaryDirectory() as folder:
            (ROOT / name).write_text(draw(name, pathlib.Path(folder)), encoding="utf-8")
        print(ROOT / name)


if __name__ == "__main__":
    main()
