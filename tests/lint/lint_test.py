#!/usr/bin/env python3
"""lint_test.py CLANG-TIDY BUILD WORK: whether lint finds what it is there for.

Each check of .clang-tidy finds its line of violations.cpp, alone and as one of several files that are
read as one. A file without one of the includes that it needs, or with a using-declaration that it does
not use, is told by includes.py.
"""

import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, ".ci"))
import sources  # noqa: E402

tool, build, work = sys.argv[1:]
faults = []


def expect(what, found, wanted):
    if found != wanted:
        faults.append(f"{what}: missing {sorted(wanted - found)}, beyond it {sorted(found - wanted)}")


def told(file):
    """The checks that clang-tidy names in its report of a file."""
    ran = subprocess.run([tool, "--quiet", "-p", work, f"--config-file={ROOT}/.clang-tidy",
                          "--extra-arg=-fdelayed-template-parsing", file],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    return set(re.findall(r"error: .*\[([\w.-]+?),-warnings-as-errors\]$", ran.stdout, re.M))


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def includes_without(words, text):
    """What includes.py says of a file with this text, less the words."""
    assert words in text, words
    path = f"{work}/includes.cpp"
    write(path, text.replace(words, "", 1))
    told_of = subprocess.run([sys.executable, f"{ROOT}/tests/lint/includes.py", path], text=True,
                             stdout=subprocess.PIPE, check=False).stdout
    return set(told_of.replace(f"{path}: ", "").splitlines())


# In a folder of the name that HeaderFilterRegex wants.
for name in ("violations.cpp", "violations.hpp"):
    write(f"{work}/src/{name}", read(f"{ROOT}/tests/lint/{name}"))
files = [f"{ROOT}/src/core/magic.cpp", f"{work}/src/violations.cpp", f"{ROOT}/src/core/quantity.cpp"]
command = next(entry for entry in json.loads(read(f"{build}/compile_commands.json"))
               if "src/core/" in entry["command"] or "/kiln_core.dir/" in entry["command"])
options = re.sub(r" -o \S+ -c \S+", "", command["command"]) + f" -I{work}/src"
write(f"{work}/compile_commands.json", json.dumps(
    [{**command, "file": file, "command": f"{options} -o x.o -c {file}"} for file in files]))
units = [line.split() for line in sources.units(work, len(files), files)]
expect("files of one unit", {len(unit) - 1 for unit in units}, {len(files)})
checks = set(re.findall(r"^  ([a-z][\w.-]*),?$", read(f"{ROOT}/.clang-tidy"), re.M))
expect("the file alone", told(files[1]), checks)
expect("several as one", told(f"{ROOT}/{units[0][0]}"), checks)

text = """#include "core/magic.hpp"

#include <algorithm>
#include <string>

using std::string;

int largest(kiln::MagicDivisor) { return std::clamp(1, 2, 3) + static_cast<int>(string().size()); }
"""
expect("nothing to tell", includes_without("// x", text + "// x"), set())
expect("a header of the library", includes_without("#include <algorithm>\n", text),
       {"std::clamp without <algorithm>"})
expect("a header of the project", includes_without('#include "core/magic.hpp"\n', text),
       {"MagicDivisor without src/core/magic.hpp"})
expect("a name without use", includes_without("string().size()", text), {"using std :: string is not used"})

# Two files that each have a name of their own, and one that uses it for something else.
for name, body in (("one", "namespace kiln { namespace { int mine = 1; } int a() { return mine; } }"),
                   ("two", "namespace kiln { namespace { int mine = 2; } int b() { return mine; } }"),
                   ("three", "namespace kiln { int c(int mine) { return mine; } }"),
                   ("four", "namespace other { namespace { int mine = 4; } int d() { return mine; } }")):
    write(f"{work}/groups/{name}.cpp", body)
folder = [f"{work}/groups/{name}.cpp" for name in ("one", "two", "three", "four")]
grouped = [{os.path.basename(file)[:-4] for file in group} for group in sources.groups(folder, 8)]
expect("groups", {" ".join(sorted(group)) for group in grouped}, {"four one", "three", "two"})

print("\n".join(faults))
sys.exit(bool(faults))
