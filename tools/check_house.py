#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the structure of the source as CONTRIBUTING requires it: sizes of folders and files, headers that compile
alone and together, the place of declarations, names of structs and static functions, mutable globals, and structs
with many bools.

    tools/check_house.py            prints one line per problem
    tools/check_house.py --numbers  prints the number of problems of each check
"""
import argparse
import ast
import collections
import concurrent.futures
import functools
import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES_OF_A_FOLDER = 45
LINES_OF_A_FILE = 700
LINES_OF_A_TEST = 1000
LINES_OF_AN_INTERNAL_HEADER = 200
FILES_OF_A_STATIC_NAME = 2
BOOLS_OF_A_STRUCT = 5

# Longer than LINES_OF_A_FILE, until the one definition of the step replaces them.
LONG_FILES = {"src/importers/recording/recording_stream.c", "src/importers/recording/recording_torch.c",
              "src/compare/comparison_verdict.c"}  # the last: until decision and wording are separate files
# Headers that declare functions of several files, until the same change.
LONG_HEADERS = {"recording_torch_scan.h", "recording_torch.h"}
# A build uses one file of each set.
ALTERNATIVES = [{"inflate_isal.c", "inflate_zlib.c"}, {"compress_gzip_isal.c", "compress_gzip_zlib.c"}, {"archive_reader_libarchive.c", "archive_reader_none.c"}]
# The only header of each folder that may declare functions of several of its files.
INTERNAL_HEADERS = {
    "src/agents/python": "native.h",
    "src/agents/torch": "agent.h",
    "src/analysis": "analysis.h",
    "src/base": "storage_file.h",
    "src/commands": "command.h",
    "src/compare": "comparison_build.h",
    "src/host": "source.h",
    "src/importers": "importer.h",
    "src/importers/kineto": "kineto_import.h",
    "src/importers/nsys": "nsys.h",
    "src/importers/smi": "nvidia_smi.h",
    "src/importers/snapshot": "snapshot.h",
    "src/importers/stacks": "speedscope.h",
    "src/output/compare": "compare_outputs.h",
    "src/output/export": "export_common.h",
    "src/output/validate": "validate_chrome.h",
    "src/steps": "infer_steps_parts.h",
    "src/query": "modules.h",
    "src/recorder": "emit.h",
    "src/run": "run_state.h",
    "src/store": "history.h",
}
# Files whose functions others find by name, so no header of src/ declares them.
WITHOUT_HEADER = {"src/recorder/api.c", "src/agents/torch/observer.c", "src/agents/python/module.c", "src/commands/main.c"}
INCLUDES = ("-Isrc", "-Iinclude", "-include", "src/base/banned.h")

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
FUNCTION = re.compile(r"^((?:[A-Za-z_][\w \*]*?)?[ \*](\w+))\((?:[^;{}]|\n)*?\)(?:\s*__attribute__\(\(.*?\)\))?\n\{", re.M)
DECLARATION = re.compile(r"^(?!static\b|#|typedef\b)[A-Za-z_][\w \*]*?[ \*](\w+)\(", re.M)
TAG = re.compile(r"\b(?:struct|union|enum) (\w+)\s*\{")
STRUCT = re.compile(r"\bstruct (\w+)\s*\{")
BOOLS = re.compile(r"\bbool\s+([^;()]+);")


def text_of(path):
    """Returns the text without comments; the number of lines is unchanged."""
    return COMMENT.sub(lambda match: "\n" * match.group(0).count("\n"), path.read_text(encoding="utf-8"))


def own_members(text, start):
    """Returns the members of the struct whose body starts there, without those of structs inside it."""
    depth, own = 1, []
    for character in text[start:]:
        depth += (character == "{") - (character == "}")
        if not depth:
            break
        if depth == 1 and character != "}":
            own.append(character)
    return "".join(own)


def written(path):
    """Returns the writable variables of an object file, including static ones in functions."""
    lines = subprocess.run(["objdump", "-t", path], capture_output=True, text=True, check=True).stdout.splitlines()
    symbols = [re.match(r"[0-9a-f]+ .{6}O (\S+)\s+[0-9a-f]+ (?:\.hidden )?(\w+)", line) for line in lines]
    return {match.group(2) for match in symbols if match and not re.match(r"\.rodata|\.data\.rel\.ro|\*UND", match.group(1))}


def imported_by(path, folder):
    """Returns the modules of the same package that a module imports anywhere, also within functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == folder.name:
            found |= {alias.name for alias in node.names if (folder / f"{alias.name}.py").exists()}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{folder.name}."):
            found.add(node.module.split(".")[1])
    return found


@functools.lru_cache
def python_includes():
    folder = sysconfig.get_paths()["include"]
    return [f"-I{folder}"] if os.path.exists(f"{folder}/Python.h") else []


class House:
    def __init__(self, root):
        self.root = root.resolve()
        self.sources = sorted((self.root / "src").rglob("*.c"))
        self.headers = sorted([*(self.root / "src").rglob("*.h"), *(self.root / "include").rglob("*.h")])
        self.texts = {path: text_of(path) for path in self.sources + self.headers}

    def name(self, path):
        return str(path.relative_to(self.root))

    def functions(self, is_static):
        """Yields (path, name) of each function defined in a .c file."""
        for path in self.sources:
            for match in FUNCTION.finditer(self.texts[path]):
                words = match.group(1).split()
                if ("static" in words) == is_static and not match.group(2).startswith("_"):
                    yield path, match.group(2)

    # ---- sizes ----

    def folders(self):
        counts = collections.Counter(path.parent for path in self.sources)
        for folder, count in sorted(counts.items()):
            if count > FILES_OF_A_FOLDER:
                yield f"{self.name(folder)}: {count} .c files, more than {FILES_OF_A_FOLDER}: divide it"

    def lengths(self):
        tests = [path for path in (self.root / "tests").rglob("*") if path.suffix in (".c", ".h", ".py") and "data" not in path.parts]
        for paths, limit in ((self.sources, LINES_OF_A_FILE), (sorted(tests), LINES_OF_A_TEST)):
            for path in paths:
                lines = path.read_text(encoding="utf-8").count("\n")
                if lines > limit and self.name(path) not in LONG_FILES:
                    yield f"{self.name(path)}: {lines} lines, more than {limit}: split it by what its parts know"

    # ---- headers ----

    def compiles(self, text):
        """Returns the first error of the compiler, or None if the text compiles."""
        with tempfile.NamedTemporaryFile("w", suffix=".c") as file:
            file.write(text)
            file.flush()
            done = subprocess.run(["cc", "-fsyntax-only", "-std=gnu11", "-D_GNU_SOURCE", *INCLUDES, *python_includes(), file.name], cwd=self.root,
                                  capture_output=True, text=True, check=False)
        return None if done.returncode == 0 else next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)

    def include_of(self, path):
        folder = "src" if path.is_relative_to(self.root / "src") else "include"
        return f'#include "{path.relative_to(self.root / folder)}"\n'

    def standalone(self):
        includes = [self.include_of(path) for path in self.headers]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for path, problem in zip(self.headers, pool.map(self.compiles, includes)):
                if problem:
                    yield f"{self.name(path)}: does not compile alone: {problem}"
        for order, text in (("together", includes), ("together, in reverse order", includes[::-1])):
            problem = self.compiles("".join(text))
            if problem:
                yield f"headers do not compile {order}: {problem}"

    def declarations(self):
        declared = collections.defaultdict(list)
        for path in self.headers:
            for name in DECLARATION.findall(self.texts[path]):
                declared[name].append(path)
        for path, name in self.functions(is_static=False):
            own, internal = path.with_suffix(".h"), path.parent / INTERNAL_HEADERS.get(self.name(path.parent), "-")
            headers = [header for header in declared.get(name, []) if header.name not in LONG_HEADERS]
            if not declared.get(name) and self.name(path) not in WITHOUT_HEADER and name != "main":
                yield f"{self.name(path)}: {name}() is declared in no header"
            elif headers and headers[0].is_relative_to(self.root / "src") and not any(
                    header in (own, internal) or (header.parent == path.parent and path.stem.startswith(header.stem)) for header in headers):
                yield f"{self.name(path)}: {name}() is declared in {self.name(headers[0])}, not in {own.name}"
        for folder, header in INTERNAL_HEADERS.items():
            path = self.root / folder / header
            lines = path.read_text(encoding="utf-8").count("\n") if path.exists() else 0
            if lines > LINES_OF_AN_INTERNAL_HEADER:
                yield f"{folder}/{header}: {lines} lines, more than {LINES_OF_AN_INTERNAL_HEADER}, in an internal header"

    # ---- state ----

    def globals(self):
        """Checks the objects of build-test, in which each writable variable has a section."""
        allowed = collections.Counter()
        listed = self.root / "tools/globals.list"
        for line in listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []:
            if line and not line.startswith("#"):
                name, count = line.split()[:2]
                allowed[name] = int(count)
        commands = self.root / "build-test/compile_commands.json"
        if not commands.exists():
            print("check_house: globals skipped: build-test/compile_commands.json is missing (tools/build build-test)", file=sys.stderr)
            return
        found = collections.defaultdict(set)
        for entry in json.loads(commands.read_text(encoding="utf-8")):
            source, output = (Path(entry["directory"], entry[key]).resolve() for key in ("file", "output"))
            if source.is_relative_to(self.root / "src") and output.exists():
                found[str(source.relative_to(self.root))] |= written(output)
        for name, variables in sorted(found.items()):
            if len(variables) > allowed[name]:
                yield f"{name}: {len(variables)} mutable globals, more than {allowed[name]} (tools/globals.list): {', '.join(sorted(variables))}"

    def bools(self):
        """Checks the number of bools in each struct: they exclude no combination, an enum or a smaller struct does."""
        listed, found = {}, {}
        listing = self.root / "tools/bools.list"
        for line in listing.read_text(encoding="utf-8").splitlines() if listing.exists() else []:
            if line and not line.startswith("#"):
                tag, count, *reason = line.split(maxsplit=2)
                listed[tag] = int(count)
                if not reason:
                    yield f"tools/bools.list: {tag} has no reason"
        for path, text in self.texts.items():
            for match in STRUCT.finditer(text):
                count = sum(len(names.split(",")) for names in BOOLS.findall(own_members(text, match.end())))
                allowed = listed.get(match.group(1), BOOLS_OF_A_STRUCT)
                found[match.group(1)] = count
                if count > allowed:
                    yield f"{self.name(path)}: struct {match.group(1)} has {count} bools, more than {allowed}: group them, or use an enum (tools/bools.list)"
        for tag, count in listed.items():
            if found.get(tag, 0) < count:
                yield f"tools/bools.list: struct {tag} has {found.get(tag, 0)} bools, not {count}: lower the number"

    # ---- Python ----

    def python_cycles(self):
        folder = self.root / "python/stepscope"
        imports = {path.stem: imported_by(path, folder) for path in sorted(folder.glob("*.py")) if path.stem != "__init__"}
        found = set()

        def follow(module, way):
            for other in sorted(imports.get(module, ())):
                if other in way:
                    circle = way[way.index(other):]
                    first = circle.index(min(circle))
                    found.add(" -> ".join([*circle[first:], *circle[:first], circle[first]]))
                else:
                    follow(other, [*way, other])

        for module in imports:
            follow(module, [module])
        for circle in sorted(found):
            yield f"python/stepscope: modules import each other: {circle}"

    # ---- names ----

    def tags(self):
        places = collections.defaultdict(set)
        for path, text in self.texts.items():
            for tag in TAG.findall(text):
                places[tag].add(path)
        for tag, paths in sorted(places.items()):
            if len(paths) > 1 and not any({path.name for path in paths} <= names for names in ALTERNATIVES):
                yield f"struct {tag} is in {', '.join(sorted(map(self.name, paths)))}: a tag names one struct"

    def static_names(self):
        places = collections.defaultdict(set)
        for path, name in self.functions(is_static=True):
            places[name].add(path)
        for name, paths in sorted(places.items()):
            if len(paths) > FILES_OF_A_STATIC_NAME:
                yield f"{name}() is a static function of {len(paths)} files: {', '.join(sorted(map(self.name, paths))[:4])}, ..."


CHECKS = ("folders", "lengths", "standalone", "declarations", "globals", "bools", "python_cycles", "tags", "static_names")


def main():
    parser = argparse.ArgumentParser(prog="tools/check_house.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=CHECKS, action="append")
    parser.add_argument("--numbers", action="store_true")
    chosen = parser.parse_args()
    house = House(chosen.root)
    found = {check: list(getattr(house, check)()) for check in chosen.only or CHECKS}
    for check, problems in found.items():
        print(f"{len(problems):6} {check}" if chosen.numbers else "\n".join(problems), end="\n" if problems or chosen.numbers else "")
    return 1 if any(found.values()) and not chosen.numbers else 0


if __name__ == "__main__":
    sys.exit(main())
