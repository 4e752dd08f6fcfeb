#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that documents and program agree. Each command has a page and golden tests, each option is in its page, each
format is in its pages, each input format has a fuzz target, and named files exist. tools/table_pages --check checks the
pages of tables, tools/doc_outputs --check the outputs in documents."""
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


def entries(folder, kind):
    """Yields the path, identifier and fields of each entry of a kind.

    An entry is, for example, `const struct exporter export_chrome = {.name = "chrome", ...}`.
    """
    for path in sorted((ROOT / folder).rglob("*.c")):
        for identifier, fields in re.findall(rf"^const struct {kind} (\w+) = {{(.*?)^}};", text(path), flags=re.M | re.S):
            yield str(path.relative_to(ROOT)), identifier, dict(re.findall(r'\.(\w+) = "?((?:[^"\\,]|\\.)*)', fields))


def check_exporters():
    """Checks that each format is in the page of export, and its suffix also in the page of convert."""
    for page, fields in (("export", ("name", "suffix")), ("convert", ("suffix",))):
        for _, _, exporter in entries("src/output/export", "exporter"):
            for field in fields:
                if f"`{exporter[field]}`" not in text(ROOT / f"docs/commands/{page}.md"):
                    yield f"docs/commands/{page}.md: says nothing of the {field} `{exporter[field]}`"


def check_importers():
    """Checks that each input format is in its pages and has a fuzz target, a corpus, and words for errors."""
    pages = text(ROOT / "docs/traces.md") + text(ROOT / "docs/commands/convert.md") + text(ROOT / "docs/commands/run.md")
    for path, identifier, importer in entries("src/importers", "importer"):
        name = identifier.removeprefix("importer_")
        if importer["name"].lower() not in pages.lower():
            yield f"docs/traces.md: says nothing of the format {importer['name']}"
        if not any((ROOT / f"tests/fuzz/corpus/{name}").glob("*")):
            yield f"tests/fuzz/corpus/{name}/: no files for the importer's fuzz target"
        if "kind" not in importer and "looked_for" not in importer:
            yield f"src/importers/: {identifier} has neither .kind nor .looked_for: errors do not name its files"
        if "reasons" not in importer and "recording/" not in path:
            yield f"{path}: {identifier} has no .reasons: its reports would advise options of our recorder"


def prose(path):
    """Returns a document without its blocks of code, which may show real output."""
    return re.sub(r"^```.*?^```", "", text(path), flags=re.M | re.S)


def check_line_numbers(path):
    for reference in LINE_NUMBER.findall(prose(path)):
        yield f"{path.relative_to(ROOT)}: '{reference}': name the function, not the line"


def check_files_named(path):
    """Checks that files and folders in backticks exist, relative to the root, src/ or include/.

    A bare file name may be anywhere in src/ or include/.
    """
    for name in re.findall(r"`([\w./-]+)`", prose(path)):
        is_path = name.endswith("/") or re.search(r"\.(c|h|py|md|sql|sh|build|txt)$", name)
        folders = (ROOT / "src", ROOT / "include")
        found = any((base / name).exists() for base in (ROOT, *folders))
        found = found or "/" not in name and any(match for base in folders for match in base.rglob(name))
        if is_path and not found:
            yield f"{path.name}: `{name}` does not exist"


def check_functions_named(path):
    """Checks that functions in backticks, such as `report_table()`, are in src/ or include/."""
    source = "\n".join(text(file) for folder in ("src", "include") for file in sorted((ROOT / folder).rglob("*.[ch]")))
    for name in re.findall(r"`(\w+)\(\)`", prose(path)):
        if not re.search(rf"\b{name}\(", source):
            yield f"{path.name}: `{name}()` is not in src/ or include/"


def main():
    documents = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").rglob("*.md"))
    problems = [line for path in sorted((ROOT / "src/commands").glob("cmd_*.c")) for line in check_command(path)]
    problems += [line for path in documents for line in check_line_numbers(path)]
    problems += [*check_exporters(), *check_importers()]
    problems += [*check_files_named(ROOT / "ARCHITECTURE.md"), *check_functions_named(ROOT / "ARCHITECTURE.md")]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
