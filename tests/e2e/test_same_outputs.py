# SPDX-License-Identifier: Apache-2.0
"""tools/same_outputs sees each change but those that its lists name, and tools/same_recordings makes recordings. Most builds are scripts that say what
a test wants."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools/same_outputs"
SAYS = {"report.json": '{"window": {"steps": 4, "events": 10}, "caveats": ["a text"], "run_id": "x"}', "diagnose.json": '{"verdict": {"sentence": "one"}}',
        "compare.json": "{}", "ledger.csv": "what,sentence\ndropped,some\ndamaged,more\n", "export": "the same"}
PROGRAM = """#!/bin/sh
here=$(dirname "$0")
case "$1 $2" in
'query --tables') echo 'ledger  what is missing?' ;;
'query --csv') cat "$here/ledger.csv" ;;
'report --json') cat "$here/report.json" ;;
'report --csv') cp "$here/ledger.csv" "$4" ;;
'diagnose --json') cat "$here/diagnose.json" ;;
'compare --json') cat "$here/compare.json" ;;
'export -f') cp "$here/export" "$5" ;;
esac
"""


def build(folder, **says):
    (folder / "src").mkdir(parents=True)
    for name, text in {**SAYS, **{name.replace("_", "."): text for name, text in says.items()}}.items():
        (folder / "src" / name).write_text(text)
    program = folder / "src/stepscope"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return folder


def compared(tmp_path, **says):
    old, new = build(tmp_path / "old"), build(tmp_path / "new", **says)
    return subprocess.run([sys.executable, TOOL, old, new, "--only", "with_stack/train.json"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("says", ({}, {"report_json": SAYS["report.json"].replace("a text", "another")}, {"diagnose_json": '{"verdict": {"sentence": "two"}}'},
                                  {"ledger_csv": SAYS["ledger.csv"].replace("some", "any")}), ids=("nothing", "caveat", "sentence", "ledger"))
def test_texts_may_differ(tmp_path, says):
    done = compared(tmp_path, **says)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.endswith(" 0 differences\n"), done.stdout


@pytest.mark.parametrize("says, told", (
    ({"report_json": SAYS["report.json"].replace("10", "11")}, "'number 10' became 'number 11'"),
    ({"report_json": SAYS["report.json"].replace("10", "10.0")}, "'number 10' became 'number 10.0'"),
    ({"report_json": SAYS["report.json"].replace('"x"', '"y"')}, "'text x' became 'text y'"),
    ({"report_json": SAYS["report.json"].replace('"steps": 4, "events": 10', '"events": 10, "steps": 4')}, "report"),
    ({"report_json": SAYS["report.json"].replace(', "run_id": "x"', "")}, "3 entries became 2"),
    ({"report_json": "nonsense"}, "no JSON"),
    ({"ledger_csv": "what,sentence\ndamaged,more\ndropped,some\n"}, "'dropped' became 'damaged'"),
    ({"ledger_csv": "what,text\ndropped,some\ndamaged,more\n"}, "'sentence' became 'text'"),
    ({"export": "the some"}, "byte 5 of 8 and 8")), ids=("number", "form", "word", "order of keys", "key", "broken", "order of rows", "column", "export"))
def test_all_else_may_not(tmp_path, says, told):
    done = compared(tmp_path, **says)
    assert done.returncode == 1 and told in done.stdout and not done.stderr, done.stdout + done.stderr


def test_a_folder_without_a_program_is_told(tmp_path):
    done = subprocess.run([sys.executable, TOOL, tmp_path, tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and f"no program in '{tmp_path}': give a build folder" in done.stderr


# ---- recordings of this build --------------------------------------------------------------------------------------------------

def bytes_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_recordings_can_be_read_and_stay_as_they_are(tmp_path):
    done = subprocess.run([TOOL.with_name("same_recordings"), tmp_path / "made", "--build", os.environ["BUILD"], "--only", "c-memory", "c-rank-killed"],
                          capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "\n2 recordings, " in done.stdout
    made = bytes_of(tmp_path / "made")
    assert {path.parent.name for path in made} == {"c-memory", "c-rank-killed"} and all(path.suffix in (".ssr", ".json") for path in made)
    told = subprocess.run([os.environ["STEPSCOPE"], "report", "--json", tmp_path / "made/c-rank-killed"], capture_output=True, text=True, check=True)
    assert '"what": "rescued"' in told.stdout and bytes_of(tmp_path / "made") == made
    again = subprocess.run([TOOL.with_name("same_recordings"), tmp_path / "made", "--build", os.environ["BUILD"], "--only", "c-memory"],
                           capture_output=True, text=True, check=False)
    assert again.returncode == 1 and "made/c-memory' exists: remove it, or give another folder" in again.stderr
