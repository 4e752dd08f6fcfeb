#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on C functions over 100 lines. A comment `/* long: reason */` on the line before excuses one. -v prints the ten longest."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "examples", "tests", "bench")
LIMIT = 100


def functions(path):
    """Yields (lines, name, excused) of each function. clang-format puts the braces of functions in column 0."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for opening, line in enumerate(lines):
        if line != "{":
            continue
        first = opening
        while first > 0 and re.match(r"[\w\s]", lines[first - 1]) and not lines[first - 1].endswith((";", "*/")):
            first -= 1
        closing = next((n for n in range(opening, len(lines)) if lines[n].startswith("}")), len(lines) - 1)
        name = re.search(r"(\w+)\s*\(", " ".join(lines[first:opening]))
        excused = first > 0 and re.search(r"/\* long: .*\*/", lines[first - 1])
        yield closing - first + 1, name.group(1) if name else "?", bool(excused)


def main():
    found = [(length, name, excused, path.relative_to(ROOT))
             for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.[ch]")) if path.is_file()
             for length, name, excused in functions(path)]
    found.sort(key=lambda row: -row[0])
    if "-v" in sys.argv[1:]:
        for length, name, excused, path in found[:10]:
            print(f"{length:5} {path}: {name}{' (long: excused)' if excused else ''}")
    too_long = [row for row in found if row[0] > LIMIT and not row[2]]
    for length, name, _, path in too_long:
        print(f"{path}: {name} has {length} lines, more than {LIMIT}: split it, or say why before it: /* long: reason */")
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
