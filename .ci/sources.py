#!/usr/bin/env python3
"""What source files declare and include, read from their text: for the scripts that compile and lint
several of them as one, because most of what a file takes is the headers that the next one includes too.

    sources.py groups --size N [--state FILE] FILE...   groups that fit together, one a line
    sources.py inputs FILE...                           what each is made of: it, a tab, its files
    sources.py commands BUILD                           adds the files of groups to its compile commands
    sources.py units --size N LINT FILE...              groups for clang-tidy, one a line: a file that has
                                                        them one after the other, and their names

Files fit together where a name that one of them keeps to itself (in an unnamed namespace, static, an
alias, a macro) occurs in no other. With --state the groups of the last time are kept as far as they
still fit, so that an edit changes the groups of the edited file alone.
"""

import argparse
import functools
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Where `#include "a/b.hpp"` is looked for, beside the folder of the file itself.
INCLUDE_FOLDERS = [os.path.join(ROOT, folder)
                   for folder in ("src", "include", "kernel_sources", "", "src/cudnn/include")]
TESTS = os.path.join(ROOT, "tests")

LITERAL_OR_COMMENT = re.compile(
    r'R"(?P<end>\w*)\(.*?\)(?P=end)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/'
    r"|\b\d(?:'?[\w.])*", re.S)
TOKEN = re.compile(r'[A-Za-z_]\w*|::|->|""|\S')
WORD = re.compile(r"[A-Za-z_]\w*$")
KEYWORDS = {"", "alignas", "class", "const", "decltype", "if", "operator", "static_assert", "struct"}


def code_of(text):
    """The text without comments and with nothing in its literals."""
    return LITERAL_OR_COMMENT.sub(
        lambda found: {'"': '""', "R": '""', "/": " "}.get(found.group()[0], "0"), text)


def skip_brackets(tokens, at, opening, closing):
    """The place behind the bracket that closes the one at `at`."""
    depth = 0
    while at < len(tokens):
        depth += (tokens[at] == opening) - (tokens[at] == closing)
        at += 1
        if depth == 0:
            break
    return at


def without_prefix(statement):
    """A statement without its template parameters and attributes."""
    at = 0
    while at < len(statement) and statement[at] in ("template", "["):
        at = skip_brackets(statement, at + (statement[at] == "template"),
                           *(("<", ">") if statement[at] == "template" else ("[", "]")))
    return statement[at:]


def declared_name(statement):
    """The name that a statement of a namespace declares, or None."""
    words = without_prefix(statement)
    if not words or words[0] == "friend":
        return None
    if words[0] in ("struct", "class", "union", "enum"):
        names = [word for word in words[1:] if WORD.match(word) and word not in ("class", "struct")]
        return names[0] if names else None
    if words[0] in ("using", "namespace"):
        if "=" in words:
            return words[1]
        return None if "namespace" in words else words[-1]
    depth, last = 0, None
    for word in words:
        if word == "<":
            depth += 1
        elif word == ">":
            depth = max(0, depth - 1)
        elif depth == 0 and word in ("(", "[", "=", "{}"):
            break
        elif depth == 0 and WORD.match(word):
            last = word
    return last


def is_function(statement):
    """Whether a statement that declares a name declares a function of it."""
    words = without_prefix(statement)
    before_value = words[:words.index("=")] if "=" in words else words  # or before a default argument
    return "(" in before_value[1:] and words[0] not in ("struct", "class", "union", "enum", "using")


# Boost's macros that open a namespace.
SUITES = ("BOOST_AUTO_TEST_SUITE", "BOOST_FIXTURE_TEST_SUITE")


def declarations(tokens):
    """(statement, the namespaces around it) for each declaration of a namespace: "" if it is unnamed."""
    scopes, statement, at, parentheses = [], [], 0, 0
    while at < len(tokens):
        token = tokens[at]
        if token in SUITES or token == "BOOST_AUTO_TEST_SUITE_END":
            if token in SUITES:
                scopes.append([tokens[at + 2]])
            elif scopes:
                scopes.pop()
            statement, at = [], skip_brackets(tokens, at + 1, "(", ")")
            continue
        if token == "{" and parentheses == 0:
            if "namespace" in statement or statement == ["extern", '""']:
                names = statement[statement.index("namespace") + 1:] if "namespace" in statement else None
                scopes.append([] if names is None else [name for name in names if name != "::"] or [""])
                statement, at = [], at + 1
                continue
            statement.append("{}")
            at = skip_brackets(tokens, at, "{", "}")
            ended = at < len(tokens) and tokens[at] == ";"
            if is_function(statement) or ended:
                yield statement, tuple(name for scope in scopes for name in scope)
                statement, at = [], at + ended
            continue
        if token == "}" and parentheses == 0:
            if scopes:
                scopes.pop()
            statement = []
        elif token == ";" and parentheses == 0:
            if statement:
                yield statement, tuple(name for scope in scopes for name in scope)
            statement = []
        else:
            parentheses += (token in "([") - (token in ")]")
            statement.append(token)
        at += 1


class Source:
    """A file: its includes, its words, what it declares, and what of that it keeps to itself."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            raw = file.read()
        text = code_of(raw)
        self.folder = os.path.dirname(path)
        # From the raw text, because the name is written as a literal.
        self.includes = re.findall(r'^[ \t]*#[ \t]*include[ \t]*["<]([^">\n]+)[">]', raw, re.M)
        macros = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", text, re.M)
        # A macro before an include is for the headers, which the next file wants without it.
        self.single = bool(re.search(r"^[ \t]*#[ \t]*define.*^[ \t]*#[ \t]*include", text, re.M | re.S))
        tokens = TOKEN.findall(text)
        self.calls, self.words, self.qualified = set(), set(), set()
        for at, word in enumerate(tokens):
            before = tokens[at - 1] if at else ""
            if not WORD.match(word) or before in (".", "->"):
                continue
            if before == "::":
                self.qualified.add((tokens[at - 2], word))
                continue
            self.words.add(word)
            if tokens[at + 1:at + 2] == ["("]:
                self.calls.add(word)
        self.declared, self.namespaces, self.directives = set(macros), set(), set()
        self.private = {(name, ()): "#define" for name in macros}  # (name, namespaces): what it is
        # A suite is a namespace, whose name may be that of what another file tests.
        for name in re.findall(r"^(?:%s)\((\w+)" % "|".join(SUITES), text, re.M):
            self.declared.add(name)
            self.private[name, ()] = "value"
        for statement, scope in declarations(TOKEN.findall(re.sub(
                r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.M))):
            name, named = declared_name(statement), tuple(part for part in scope if part)
            if statement[:2] == ["using", "namespace"]:
                self.directives.add((named, " ".join(statement)))
            self.namespaces.update(named[:depth] for depth in range(len(named) + 1))
            if not name or name in KEYWORDS:
                continue
            self.declared.add(name)
            if statement[0] in ("using", "namespace") and "=" not in statement:
                self.private[name, named] = " ".join(statement)
            elif "" in scope or statement[0] in ("static", "using", "namespace"):
                self.private[name, named] = "function" if is_function(statement) else "value"


@functools.lru_cache(maxsize=None)
def source(path):
    return Source(path)


def own_includes(path):
    """The project's files that a file includes, and the headers of others."""
    own, others = [], []
    of_tests = [TESTS] if path.startswith(TESTS + os.sep) else []
    for name in source(path).includes:
        for folder in [source(path).folder] + of_tests + INCLUDE_FOLDERS:
            found = os.path.normpath(os.path.join(folder, name))
            if os.path.isfile(found):
                own.append(found)
                break
        else:
            others.append(name)
    return own, others


@functools.lru_cache(maxsize=None)
def headers(path):
    """The project's headers that a file includes, at any depth, and the headers of others."""
    own, others, waiting = set(), set(), [path]
    while waiting:
        mine, foreign = own_includes(waiting.pop())
        others.update(foreign)
        waiting += [header for header in mine if header not in own]
        own.update(mine)
    return frozenset(own), frozenset(others)


def disturbs(one, other):
    """Whether a name that `one` keeps to itself may mean another thing in `other`."""
    mine, its = source(one), source(other)
    names = {name for name, _ in its.private}
    if any(scope in its.namespaces and (scope, text) not in its.directives for scope, text in mine.directives):
        return True
    for (name, scope), kind in mine.private.items():
        if kind == "#define":
            if name in its.words or name in names:
                return True
        elif scope not in its.namespaces:
            continue  # not seen from there
        elif kind.startswith("using"):
            if its.private.get((name, scope), kind) != kind:
                return True
        elif name in (its.calls if kind == "function" else its.words) or (name, scope) in its.private:
            return True
        elif scope and (scope[-1], name) in its.qualified:
            return True
        elif any(scope in header.namespaces and (
                name in header.declared or name in (header.calls if kind == "function" else header.words))
                 for header in map(source, headers(other)[0] - headers(one)[0])):
            return True
    return False


def fit(one, other):
    """Whether two files can stand in one translation unit, in either order."""
    return not (source(one).single or source(other).single or disturbs(one, other) or disturbs(other, one))


def groups(files, size, before=(), apart=()):
    """The files in groups of at most `size`; what `before` had together stays together if it fits.

    Those of `apart` are left alone.
    """
    made, left = [[path] for path in sorted(files) if path in apart], sorted(set(files) - set(apart))
    alone = made[:]
    for old in before:
        kept = []
        for path in old:
            if path in left and all(fit(path, other) for other in kept):
                kept.append(path)
                left.remove(path)
        if kept:
            made.append(kept)
    for path in sorted(left, key=lambda path: (-len(source(path).private), path)):
        room = [group for group in made if len(group) < size and group not in alone and
                all(fit(path, other) for other in group)]
        if room:
            mine = headers(path)[0] | headers(path)[1]
            shared = [len(mine & (headers(group[0])[0] | headers(group[0])[1])) for group in room]
            room[shared.index(max(shared))].append(path)
        else:
            made.append([path])
    return made


def with_members(commands):
    """The compile commands, with those of the files that CMake's grouped files include."""
    added = []
    for command in commands:
        if "/Unity/unity_" not in command["file"]:
            continue
        with open(command["file"], encoding="utf-8") as file:
            members = re.findall(r'^#include "([^"]+)"', file.read(), re.M)
        for member in members:
            added.append({**command, "file": member,
                          "command": command["command"].replace(command["file"], member)})
    known = {command["file"] for command in commands}
    return commands + [command for command in added if command["file"] not in known]


def units(folder, size, files):
    """Writes files that hold the text of others, for clang-tidy, and their commands into the folder's.

    The text itself, because some checks look at no file that is included. The commands are without gcc's
    precompiled headers, which clang cannot read, and without a warning of gcc's own.
    """
    database = os.path.join(folder, "compile_commands.json")
    alike = {}  # files by the options that they are compiled with
    commands = {}
    for command in read_commands(database):
        command["command"] = re.sub(r" -Winvalid-pch -include \S+| -Wno-stringop-overread", "", command["command"])
        commands[command["file"]] = command
    for file in map(os.path.abspath, files):
        options = re.sub(r" -o \S+ -c \S+", "", commands[file]["command"]) if file in commands else file
        alike.setdefault(options, []).append(file)
    lines = []
    for options, members in alike.items():
        for group in groups(members, size):
            unit = group[0]
            if len(group) > 1:
                unit = os.path.join(folder, f"unit_{len(lines)}.cpp")
                with open(unit, "w", encoding="utf-8") as file:
                    for member in group:
                        with open(member, encoding="utf-8") as text:
                            file.write(text.read() + "\n")
                commands[unit] = {**commands[group[0]], "file": unit, "command": f"{options} -c {unit}"}
            lines.append((sum(os.path.getsize(member) for member in group), unit, group))
    with open(database, "w", encoding="utf-8") as file:
        json.dump(list(commands.values()), file, indent=1)
    for _, unit, group in sorted(lines, reverse=True):  # the longest first
        yield " ".join(os.path.relpath(path, ROOT) for path in [unit, *group])


def lines_of(path):
    """The words of each line of a file, if there is one."""
    if not path or not os.path.isfile(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [line.split() for line in file]


def read_commands(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    actions = parser.add_subparsers(dest="action", required=True)
    for name in ("groups", "inputs", "commands", "units"):
        action = actions.add_parser(name)
        if name in ("groups", "units"):
            action.add_argument("--size", type=int, required=True)
        if name == "groups":
            action.add_argument("--state", help="where the groups are kept")
            action.add_argument("--apart", help="a list of files to leave alone")
        if name in ("commands", "units"):
            action.add_argument("folder")
        if name != "commands":
            action.add_argument("files", nargs="+")
    given = parser.parse_args()
    if given.action == "groups":
        files = [os.path.abspath(file) for file in given.files]
        apart = [file for line in lines_of(given.apart) for file in line]
        lines = [" ".join(group) for group in groups(files, given.size, lines_of(given.state), apart)]
        if given.state:
            with open(given.state, "w", encoding="utf-8") as file:
                file.writelines(line + "\n" for line in lines)
    elif given.action == "inputs":
        lines = [file + "\t" + " ".join(sorted(os.path.relpath(part, ROOT) for part in headers(path)[0] | {path}))
                 for file in given.files for path in [os.path.abspath(file)]]
    elif given.action == "commands":
        path = os.path.join(given.folder, "compile_commands.json")
        commands = with_members(read_commands(path))
        with open(path, "w", encoding="utf-8") as file:
            json.dump(commands, file, indent=1)
        lines = []
    else:
        lines = units(os.path.abspath(given.folder), given.size, given.files)
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
