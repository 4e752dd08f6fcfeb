#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the folder rule of ARCHITECTURE.md: which folders of src/ each folder may include."""
import re
import sys
from pathlib import Path

SRC = Path(__file__).resolve().parent.parent / "src"

# In each line a folder may include every folder to its right. All may include base.
CHAINS = [
    ["viewer", "output", "compare", "diagnosis", "query", "analysis", "table"],
    ["terminal", "output"],
    ["analysis", "replay", "model", "pytorch"],
    ["store", "compare"],
    ["importers", "format"],
    ["importers", "steps", "model"],
    ["output", "format"],
    ["recorder", "format"],
    ["agents", "pyframes"],
    ["agents", "pytorch"],
    ["sampler", "pyframes"],
    ["load", "analysis"],
    ["load", "compare"],
    ["load", "importers"],
    ["run", "load"],
    ["run", "host"],
]
# Single headers of another folder that a folder may include. host writes its own recording, so it opens a session, too.
# load and run are parts of commands, so they print.
SINGLE_HEADERS = {
    "agents": ["recorder/emit.h"],
    "sampler": ["recorder/emit.h"],
    "host": ["recorder/emit.h", "recorder/session.h", "recorder/session_facts.h"],
    "load": ["commands/command.h", "commands/say.h", "commands/progress.h"],
    "run": ["commands/command.h", "commands/say.h", "recorder/options.h"],
}
FOLDERS = {folder for chain in CHAINS for folder in chain} | set(SINGLE_HEADERS) | {"base", "commands"}


def reachable(folder):
    found = {folder, "base"}
    while True:
        more = {right for chain in CHAINS for left in found & set(chain) for right in chain[chain.index(left):]}
        if more <= found:
            return found
        found |= more


def problem(folder, header):
    """Returns why a file of the folder may not include the header in quotes, or None if it may."""
    target = header.split("/")[0]
    if target == "stepscope":
        return None  # the public headers
    if "/" not in header or ".." in header:
        return 'must be written "folder/file.h"'
    if not (SRC / header).exists():
        return "is not in src/"
    if folder == "commands" or target in reachable(folder) or header in SINGLE_HEADERS.get(folder, []):
        return None
    return f"{folder}/ may not include {target}/"


def main():
    problems = []
    for path in sorted(SRC.rglob("*")):
        parts = path.relative_to(SRC).parts
        if path.is_dir() and (parts[-1] in ("util", "utils") or len(parts) == 1 and parts[0] not in FOLDERS):
            problems.append(f"{path.relative_to(SRC.parent)}: no such folder in ARCHITECTURE.md")
        if path.suffix not in (".c", ".h"):
            continue
        folder = parts[0] if len(parts) > 1 else "commands"  # main.c only finds the command
        for header in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(encoding="utf-8"), re.M):
            why = problem(folder, header)
            if why:
                problems.append(f'{path.relative_to(SRC.parent)}: #include "{header}": {why}')
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
