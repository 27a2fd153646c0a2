#!/usr/bin/env python3
"""Counts how many small faults in kernels and in host code a tier of the tests catches.

Each mutation changes one operator or number in one line, in a worktree of the current commit below
build/mutation. The tree is built, but for a kernel, which is read from the worktree
(KILN_KERNEL_SOURCE_DIR), and the CPU tests of the tier run until the first one fails:
  caught    a test failed
  build     the compiler refused it, which counts as neither
  survived  every test passed: the fault is not tested for, or the change makes no difference
A seed chooses lines by their text: it chooses the same ones as long as they stay, whatever changes
beside them. passed_over.txt names lines whose fault no test can see, each with the reason.

    python3 tests/mutation/mutate.py                       # 40 mutations, the quick tier
    python3 tests/mutation/mutate.py --tier wide --only 3,17
    python3 tests/mutation/mutate.py --near                # the tests of each fault's kernels alone
    python3 tests/mutation/mutate.py --list                # what would be changed; runs nothing

The first one takes as long as the tier's tests; others, what their fault reaches: compiled kernels
and results are remembered. Results are added to build/mutation/results.jsonl; those
that are there already for the same mutation, tier and commit are not run again.
"""

import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "mutation"
TREE = FOLDER / "tree"
BUILD = FOLDER / "build"
LONGEST = 2 * 3600  # seconds that the tests of one mutation may take

# Half of the mutations are made in each group.
GROUPS = {
    "kernel": ["kernel_sources"],
    "host": ["src/engines", "src/plan", "src/codegen", "src/device/host", "src/problem"],
}
# In header files: initial values of members, which whoever makes the object sets.
MEMBER = re.compile(r"^\s*[\w:<>]+ \w+ = [\w.]+(, \w+ = [\w.]+)*;")
ESTIMATES = "src/engines/cost/"  # of times, which choose between kernels that are all right
# Pattern and replacement; the first match in a line that begins at or after a random column.
CHANGES = [
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" == ", " != "),
    (r" != ", " == "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r" \* ", " + "),
    (r" / ", " * "),
    (r" % ", " / "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r" & ", " | "),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"(?<![\w.])1(?![\w.])", "2"),
    (r"(?<![\w.])0(?![\w.])", "1"),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
]


def run(command, **more):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)


def code_lines(path):
    """Numbers of the lines that hold code which can be changed: no comment, text or declaration."""
    in_function = False
    for number, line in enumerate(path.read_text().splitlines()):
        if line.startswith("}"):
            in_function = False
        bare = line.split("//")[0]
        if path.suffix == ".hpp" and MEMBER.match(bare):
            continue
        if in_function and bare.strip() and not re.search(r'"|#|static_assert|template|>\(', bare):
            yield number
        if re.match(r"^\S.*[{(,]$", line) or line.startswith("  ") and line.endswith(") {"):
            in_function = True


def passed_over():
    """(file, line's text) of each line that is left out, from passed_over.txt."""
    text = (ROOT / "tests" / "mutation" / "passed_over.txt").read_text()
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    left_out = set()
    for name, line in zip(lines[::3], lines[1::3]):
        if line.strip() not in (own.strip() for own in (ROOT / name).read_text().splitlines()):
            sys.exit(f"passed_over.txt names a line that is not in {name}: {line}")
        left_out.add((name, line.strip()))
    return left_out


def choose_mutations(count, seed):
    left_out = passed_over()
    chosen = []
    for group, folders in GROUPS.items():
        files = sorted(
            path
            for folder in folders
            for path in (ROOT / folder).rglob("*")
            if path.suffix in (".cuh", ".cu", ".cpp", ".hpp") and ESTIMATES not in str(path)
        )
        places = []
        for path in files:
            lines = path.read_text().splitlines()
            seen = {}  # how often a text came before
            for number in code_lines(path):
                text = lines[number].strip()
                seen[text] = seen.get(text, 0) + 1
                name = str(path.relative_to(ROOT))
                if (name, text) not in left_out:
                    place = f"{seed} {name} {seen[text]} {text}"
                    order = hashlib.sha256(place.encode()).hexdigest()
                    places.append((order, path, number, lines[number]))
        taken = 0
        for order, path, number, before in sorted(places):
            if taken == (count + (group == "kernel")) // 2:
                break
            random_ = random.Random(order)
            bare = before.split("//")[0]
            possible = [
                (match, text) for pattern, text in CHANGES for match in re.finditer(pattern, bare)
            ]
            if not possible:
                continue
            match, text = random_.choice(possible)
            chosen.append({
                "group": group,
                "file": str(path.relative_to(ROOT)),
                "line": number + 1,
                "before": before,
                "after": before[: match.start()] + text + before[match.end() :],
            })
            taken += 1
    return [{"number": number, **each} for number, each in enumerate(chosen, 1)]


def kernels_with(name):
    """Stems of the kernels, .cu files, that include a file of kernel_sources/, or are it."""
    root = ROOT / "kernel_sources"
    texts = {str(path.relative_to(root)): path.read_text() for path in root.rglob("*.cu*")}
    found, new = set(), {name.removeprefix("kernel_sources/")}
    while new:
        found |= new
        quoted = [f'"{one.replace(part, "target/", 1)}"' for one in new for part in ("cuda/", "host/", "")
                  if one.startswith(part)]
        new = {one for one, text in texts.items() if any(q in text for q in quoted)} - found
    return {pathlib.Path(one).stem for one in found if one.endswith(".cu")}


def near(mutation):
    """A regular expression of the tests whose files name a kernel with the fault, or whose name
    begins with that of its folder; of host code also the unit tests. All of ops where none does."""
    path = pathlib.Path(mutation["file"])
    names = kernels_with(mutation["file"]) if mutation["group"] == "kernel" else {path.stem}
    suites = {
        test.stem.removesuffix("_test")
        for test in (ROOT / "tests" / "ops").rglob("*_test.cpp")
        if test.parent.name != "onednn"  # the reference's
        if any("_" in name and name in test.read_text() for name in names)  # others are words
        or test.stem.startswith(path.parent.name) or path.parent.name == test.parent.name
    }
    ops = f"ops\\.({'|'.join(sorted(suites)) if suites else '.*'})"
    return f"^({ops}{'' if mutation['group'] == 'kernel' else '|unit'})$"


def state_of_results():
    """As tests/run.sh has it: results of another state are not to be remembered."""
    return run(["bash", "-c", "source .ci/setup.sh; state_of_results \"$1\"", "-", BUILD], cwd=TREE,
               check=True).stdout.strip()


def prepare(commit, targets):
    if not TREE.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        run(["git", "-C", ROOT, "worktree", "prune"])
        run(["git", "-C", ROOT, "worktree", "add", "--detach", TREE, commit], check=True)
    run(["git", "-C", TREE, "checkout", "--quiet", "--force", commit], check=True)
    done = run(["bash", "-c", "source .ci/setup.sh; configure \"$1\" -DKILN_BUILD_TESTS=ON "
                "-DKILN_BUILD_SAMPLES=OFF && compile \"$@\"", "-", BUILD, *targets], cwd=TREE)
    if done.returncode != 0:
        sys.exit("the unchanged tree does not build:\n" + done.stdout[-4000:])


def try_mutation(mutation, tier, tests, targets):
    path = TREE / mutation["file"]
    original = path.read_text()
    lines = original.splitlines(keepends=True)
    lines[mutation["line"] - 1] = mutation["after"] + "\n"
    path.write_text("".join(lines))
    started = time.monotonic()
    try:
        if mutation["group"] == "host":
            built = run(["cmake", "--build", BUILD, "--target", *targets])
            if built.returncode != 0:
                return {"outcome": "build", "seconds": round(time.monotonic() - started)}
        environment = dict(os.environ, KILN_TEST_TIER=tier,
                           KILN_KERNEL_SOURCE_DIR=str(TREE / "kernel_sources"),
                           KILN_CACHE_DIR=str(FOLDER / "kernel-cache"),
                           KILN_TEST_MEMORY=str(FOLDER / "test-memory" / state_of_results()))
        if tier == "full":
            environment["KILN_TEST_FULL"] = "1"
        skipped = "^wide$" if tier == "quick" else "^quick$"
        command = ["ctest", "--test-dir", BUILD, "-L", "^cpu$", "-LE", skipped, "--stop-on-failure",
                   "-j", str(os.cpu_count())]
        try:
            tested = run(command + (["-R", tests] if tests else []), env=environment,
                         timeout=LONGEST)
        except subprocess.TimeoutExpired:
            return {"outcome": "caught", "by": ["a hang"], "seconds": LONGEST}
        failed = re.findall(r"Test +#\d+: (\S+) \.*\*\*\*", tested.stdout)
        return {
            "outcome": "caught" if tested.returncode != 0 else "survived",
            "by": failed,
            "seconds": round(time.monotonic() - started),
        }
    finally:
        path.write_text(original)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tier", choices=["quick", "wide", "full"], default="quick")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=2014)
    parser.add_argument("--only", help="numbers of mutations, separated by commas")
    parser.add_argument("--tests", help="a regular expression of CTest names: run these alone")
    parser.add_argument("--near", action="store_true",
                        help="run the tests of the fault's own kernels alone, minutes each")
    parser.add_argument("--list", action="store_true")
    arguments = parser.parse_args()

    mutations = choose_mutations(arguments.count, arguments.seed)
    if arguments.only:
        wanted = {int(number) for number in arguments.only.split(",")}
        mutations = [each for each in mutations if each["number"] in wanted]
    if arguments.list:
        for each in mutations:
            print(f"{each['number']:3} {each['file']}:{each['line']}"
                  f"{'  ' + near(each) if arguments.near else ''}\n"
                  f"    {each['before'].strip()}\n    {each['after'].strip()}")
        return
    if run(["git", "-C", ROOT, "status", "--porcelain", "src", "kernel_sources"]).stdout:
        sys.exit("src/ or kernel_sources/ has changes that are not committed")
    commit = run(["git", "-C", ROOT, "rev-parse", "HEAD"]).stdout.strip()
    results = FOLDER / "results.jsonl"
    known = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    targets = ["all"] if arguments.tier == "quick" else ["all", "wide_tests"]
    prepare(commit, targets)
    counts = {}
    for each in mutations:
        tests = near(each) if arguments.near else arguments.tests
        same = {**each, "tier": arguments.tier, "tests": tests, "commit": commit}
        result = next((old for old in known if same.items() <= old.items()), None)
        if result is None:
            result = {**same, **try_mutation(each, arguments.tier, tests, targets)}
            with results.open("a") as file:
                file.write(json.dumps(result) + "\n")
        counts[each["group"], result["outcome"]] = counts.get((each["group"], result["outcome"]), 0) + 1
        print(f"{each['number']:3} {result['outcome']:8} {result['seconds']:5} s  "
              f"{each['file']}:{each['line']}: {each['after'].strip()}  "
              f"{' '.join(result.get('by', []))}", flush=True)
    for group in GROUPS:
        caught, survived, build = (counts.get((group, o), 0) for o in ("caught", "survived", "build"))
        print(f"{group}: {caught} of {caught + survived} caught in the {arguments.tier} tier; "
              f"{build} did not build")


if __name__ == "__main__":
    main()
