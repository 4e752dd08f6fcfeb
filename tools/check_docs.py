#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that documents and program agree: a page and golden tests per command, every option in its page, files exist."""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OPTION = re.compile(r'\bOPTION_(?!GROUP|END)[A-Z]+\(\s*"([^"]+)"')
LINE_NUMBER = re.compile(r"[\w/.-]+\.(?:c|h|py|sh|sql|build):\d+")


def text(path):
    return path.read_text(encoding="utf-8") if path.exists() else ""


def check_command(path):
    name = path.stem.removeprefix("cmd_").replace("_", "-")
    page = ROOT / "docs" / "commands" / f"{name}.md"
    if not page.exists():
        yield f"docs/commands/{name}.md: missing, the page of {path.name}"
    if not any((ROOT / "tests" / "golden" / name).glob("*/cmd")):
        yield f"tests/golden/{name}/: no <case>/cmd, a test of {path.name}"
    for option in sorted(set(OPTION.findall(text(path)))):
        if page.exists() and not re.search(rf"--(\[no-\])?{re.escape(option)}(?![\w-])", text(page)):
            yield f"docs/commands/{name}.md: says nothing of --{option}"


def prose(path):
    """A document without its blocks of code, which may show real output."""
    return re.sub(r"^```.*?^```", "", text(path), flags=re.M | re.S)


def check_line_numbers(path):
    for reference in LINE_NUMBER.findall(prose(path)):
        yield f"{path.relative_to(ROOT)}: '{reference}': name the function, not the line"


def check_files_named(path):
    """Files and folders in backticks exist: from the root, src/ or include/; a bare file name anywhere in the latter two."""
    for name in re.findall(r"`([\w./-]+)`", prose(path)):
        is_path = name.endswith("/") or re.search(r"\.(c|h|py|md|sql|sh|build|txt)$", name)
        folders = (ROOT / "src", ROOT / "include")
        found = any((base / name).exists() for base in (ROOT, *folders))
        found = found or "/" not in name and any(match for base in folders for match in base.rglob(name))
        if is_path and not found:
            yield f"{path.name}: `{name}` does not exist"


def main():
    documents = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
    problems = [line for path in sorted((ROOT / "src/commands").glob("cmd_*.c")) for line in check_command(path)]
    problems += [line for path in documents for line in check_line_numbers(path)]
    problems += check_files_named(ROOT / "ARCHITECTURE.md")
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
