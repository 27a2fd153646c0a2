#!/usr/bin/env python3
"""Times two versions of Kiln beside each other.

    tests/bench/before_after.py HEAD -- --suite paper --dir fwd --layers L2
    tests/bench/before_after.py build/src/kiln -- --batch mine.txt

BEFORE and AFTER (default: build/src/kiln) are the program `kiln`, or a git revision, which is built
below build/before/ first. BEFORE runs without KILN_KERNEL_SOURCE_DIR, AFTER with it if it is set: so
the second line above times edited kernels beside those that the program was built with. Both run
`kiln bench` with the options after --, by turns. Prints for each case the median time of both and
the change, marked * where it is larger than either version's own spread over the turns. Needs a GPU,
or --device host among the options, which shows that it works and says nothing of speed.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from results import CASE, read

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = """set -e
source .ci/setup.sh
configure "$build" -DKILN_BUILD_TESTS=OFF -DKILN_BUILD_SAMPLES=OFF
compile "$build" kiln_cli"""


def program(name):
    """The file of the program that `name` stands for."""
    path = pathlib.Path(name)
    if path.is_file():
        return path.resolve()
    found = subprocess.run(["git", "-C", ROOT, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"],
                           capture_output=True, text=True)
    if found.returncode != 0:
        sys.exit(f"{name} is neither a file nor a git revision; expected a program `kiln`, or HEAD")
    folder = ROOT / "build" / "before" / found.stdout.strip()[:12]
    if not (folder / "CMakeLists.txt").exists():
        folder.mkdir(parents=True, exist_ok=True)
        archive = subprocess.run(["git", "-C", ROOT, "archive", found.stdout.strip()],
                                 check=True, capture_output=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    if subprocess.run(["bash", "-c", BUILD], cwd=folder).returncode != 0:
        sys.exit(f"{name} does not build in {folder}")
    return folder / "build" / "src" / "kiln"


def measure(kiln, options, environment, check):
    """Kiln's rows of one run, by case; what it prints is shown where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "rows.csv"
        run = subprocess.run([kiln, "bench", "--csv", file, "--time-limit", "0", *options,
                              *([] if check else ["--no-check"])],
                             capture_output=True, text=True, env=environment)
        if run.returncode != 0 or not file.exists():
            sys.exit(f"{kiln} bench failed:\n{run.stdout}{run.stderr}")
        machine, rows = read([file])
    own = [row for row in rows if row["contestant"] == "kiln" and row["suite"] != "ceilings"]
    return machine, {tuple(row[name] for name in CASE): row for row in own}


def main():
    own = sys.argv[1:]
    options = own[own.index("--") + 1 :] if "--" in own else []
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after", nargs="?", default=str(ROOT / "build" / "src" / "kiln"))
    parser.add_argument("--turns", type=int, default=3, help="runs of each version (3)")
    arguments = parser.parse_args(own[: own.index("--")] if "--" in own else own)
    if arguments.turns < 1:
        parser.error(f"--turns is {arguments.turns}; expected at least 1")

    programs = [program(arguments.before), program(arguments.after)]
    without = {name: value for name, value in os.environ.items() if name != "KILN_KERNEL_SOURCE_DIR"}
    environments = [without, dict(os.environ)]
    times, kernels = [{}, {}], [{}, {}]
    for turn in range(arguments.turns):
        # Neither version always follows the other.
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            machine, rows = measure(programs[which], options, environments[which], check=turn == 0)
            for case, row in rows.items():
                times[which].setdefault(case, []).append(row["median_us"])
                kernels[which][case] = row["kernel"]

    print(f"{machine['device']}, {machine['date']}, {arguments.turns} turns; times in us, change of the median")
    print("\n| case | before | after | change |\n|---|---|---|---|")
    changes = []
    for case, before in times[0].items():
        after = times[1].get(case)
        if after is None:
            continue
        old, new = statistics.median(before), statistics.median(after)
        change = new / old - 1
        spread = max((max(own) - min(own)) / statistics.median(own) for own in (before, after))
        changes.append(new / old)
        print(f"| {' '.join(part for part in case[1:] if part)} | {old:.4g} | {new:.4g} | "
              f"{change:+.1%}{' *' if arguments.turns > 1 and abs(change) > spread else ''} |")
        if kernels[0][case] != kernels[1][case]:
            print(f"|  | {kernels[0][case]} | {kernels[1][case]} | |")
    if not changes:
        sys.exit("the two versions have no case in common")
    print(f"\nGeometric mean of after over before: {statistics.geometric_mean(changes):.3f}")


if __name__ == "__main__":
    main()
