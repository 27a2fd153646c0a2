#!/usr/bin/env python3
"""Whether each file includes what it uses: what a compiler does not see where several files are one.

    includes.py FILE...    prints what is missing, and fails if anything is

A name of the standard library needs its header, and a name that the project's headers declare needs
one of those that declare it: in the file, or in a header of the project that it includes. A
using-declaration needs a use in its own file.
"""

import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.ci"))
from sources import ROOT, TOKEN, code_of, headers, source  # noqa: E402

# Names that one header alone declares. Left out are those that nearly every header brings with it
# (std::size_t, std::move, std::begin) and those of several headers.
STANDARD = {
    "algorithm": "all_of any_of clamp copy_n count_if equal fill_n find_if for_each is_sorted lower_bound "
                 "max_element min_element minmax next_permutation none_of nth_element reverse rotate "
                 "shuffle sort stable_sort transform unique",
    "array": "array",
    "atomic": "atomic atomic_flag",
    "bit": "bit_cast bit_floor bit_width countr_zero has_single_bit rotl",
    "charconv": "from_chars from_chars_result to_chars",
    "chrono": "chrono",
    "cmath": "ceil copysign cosh erfc exp expm1 fabs floor fma fmax fmin ilogb isfinite isinf isnan ldexp "
             "llround log log10 log1p log2 nearbyint nextafter pow round signbit sqrt tanh",
    "condition_variable": "condition_variable",
    "csignal": "signal sig_atomic_t",
    "cstdio": "FILE fclose fflush fprintf fputs printf puts snprintf tmpfile",
    "cstdlib": "_Exit abort atexit atoi atol exit free getenv malloc quick_exit strtoull",
    "cstring": "memcmp memcpy memset strcmp strerror strlen strstr",
    "ctime": "strftime time tm",
    "deque": "deque",
    "filesystem": "filesystem",
    "fstream": "fstream ifstream ofstream",
    "functional": "function greater less",
    "future": "async future promise shared_future future_status launch",
    "iostream": "cerr cout",
    "limits": "numeric_limits",
    "list": "list",
    "locale": "locale numpunct",
    "map": "map multimap",
    "memory": "make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag scoped_lock timed_mutex",
    "numbers": "numbers",
    "numeric": "accumulate gcd iota lcm",
    "optional": "optional nullopt",
    "random": "mt19937 mt19937_64 normal_distribution random_device uniform_int_distribution",
    "regex": "regex regex_error regex_replace regex_search smatch sregex_iterator",
    "set": "set multiset",
    "shared_mutex": "shared_lock shared_mutex",
    "span": "span as_bytes as_writable_bytes",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "invalid_argument out_of_range runtime_error",
    "string": "stod stoi to_string",
    "system_error": "error_code generic_category system_category system_error",
    "thread": "jthread thread this_thread",
    "tuple": "tie tuple",
    "unordered_map": "unordered_map",
    "variant": "get_if holds_alternative variant visit",
    "vector": "vector",
}
HEADER_OF = {name: header for header, names in STANDARD.items() for name in names.split()}
OWN_NAMESPACES = set()
# What is declared through another header as well.
ALSO = {"iostream": {"ostream"}, "string": {"sstream"}, "system_error": {"filesystem"}}


def project_headers():
    for folder in ("src", "cache", "include", "tests"):
        for place, _, names in os.walk(os.path.join(ROOT, folder)):
            yield from (os.path.join(place, name) for name in names if name.endswith((".hpp", ".h")))


def area(file):
    """The folder that says whose a file is: src/cli, tests/api."""
    return tuple(os.path.relpath(file, ROOT).split(os.sep)[:2])


# Parts beside the library's core: their names mean nothing to a file that includes nothing of theirs.
LEAVES = {("src", name) for name in ("api", "cli", "cudnn", "python", "torch")}


def used_names(file):
    """Names that a file uses and that a header of the project may have to declare: types and functions."""
    mine = source(file)
    names = {word for word in mine.words if word in mine.calls or word[0].isupper()}
    names -= {"read", "write"}  # of the system
    return (names | {name for qualifier, name in mine.qualified if qualifier in OWN_NAMESPACES}) - mine.declared


def missing(file, declared_in):
    own, others = headers(file)
    # Test programs are compiled with the standard library's headers before them, and are not linted.
    standard = () if area(file)[0] == "tests" else sorted(source(file).qualified)
    for qualifier, name in standard:
        header = HEADER_OF.get(name) if qualifier in ("std", "ranges") else None
        if header and not ({header} | ALSO.get(header, set())) & others:
            yield f"std::{name} without <{header}>"
    known = set().union(*(source(header).words | source(header).declared for header in own))
    areas = {area(seen) for seen in own | {file}}
    for name in sorted(used_names(file) - known):
        candidates = {header for header in declared_in.get(name, ())
                      if area(header) in areas or area(header) not in LEAVES and area(header)[0] != "tests"}
        if candidates and not declared_locally(name, file):
            yield f"{name} without " + " or ".join(
                sorted(os.path.relpath(header, ROOT) for header in candidates))


def tokens_of(file):
    with open(file, encoding="utf-8") as opened:
        return TOKEN.findall(re.sub(r"^[ \t]*#[ \t]*include[^\n]*", "", code_of(opened.read()), flags=re.M))


def unused(file):
    if area(file)[0] == "tests":
        return
    tokens = tokens_of(file)
    for (name, _), kind in source(file).private.items():
        if kind.startswith("using ") and tokens.count(name) <= kind.split().count(name):
            yield f"{kind} is not used"


def main(files):
    declared_in = collections.defaultdict(set)
    for header in project_headers():
        OWN_NAMESPACES.update(scope[-1] for scope in source(header).namespaces if scope)
        for name in source(header).declared:
            declared_in[name].add(header)
    OWN_NAMESPACES.difference_update({"std", "c10", "at", "torch"})
    faults = [f"{file}: {fault}" for file in files for path in [os.path.abspath(file)]
              for fault in [*missing(path, declared_in), *unused(path)]]
    for fault in faults:
        print(fault)
    return bool(faults)


def declared_locally(name, file):
    """Whether the file declares the name in a function: `Type name`, `auto& name`, `[first, name]`."""
    tokens = tokens_of(file)
    for at, word in enumerate(tokens):
        if word == name and at:
            before = tokens[at - 1]
            if tokens[at - 3:at] == [".", ".", "."] or before in (
                    "&", "*", ">", "auto", "[", ",", "struct", "class", "enum", "typename", "concept", ")") or (
                    re.match(r"\w", before) and before not in ("return", "else", "case", "throw", "new", "const")):
                return True
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
