# SPDX-License-Identifier: Apache-2.0
"""tools/same_outputs sees each change but those that its lists name, and tools/same_recordings makes recordings. Most builds are scripts that say what
a test wants."""
import json
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


def test_what_the_list_of_renamed_words_adds_may_be_new(tmp_path):
    done = compared(tmp_path, ledger_csv="what,code,sentence\ndropped,dropped,some\ndamaged,several writers,more\n")
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


# ---- what two builds record ---------------------------------------------------------------------------------------------------

def table(rows, units=(), missing=()):
    """A document of `report --json` or `query --json`; `missing` has the reasons of cells, such as "rows[0].where"."""
    columns = [{"name": name, "unit": dict(units).get(name)} for name in rows[0]] if rows else []
    return {"columns": columns, "rows": rows, "not_measured": dict(missing)}


NAMES = "load", "mul"


def recorded(pid=11, **changes):
    """The tables of a recording with one process."""
    process = f"pid {pid}"
    tables = {
        "processes": table([{"pid": pid, "parent_pid": pid - 7}]),
        "tracks": table([{"track": 0, "process": process, "tid": pid}]),
        "spans": table([{"track": 0, "span": n, "name": name, "thread": f"main (tid {pid})", "start_ns": pid * n} for n, name in enumerate(NAMES)]),
        "steps": table([{"step": 1, "duration_ns": pid}], {"duration_ns": "ns"}),
        "ops": table([{"name": "load", "self_ratio": 1 / pid}, {"name": "mul", "self_ratio": 0.5}][:: -1 if pid % 2 else 1]),
        "marks": table([{"name": "first"}, {"name": "second"}]),
        "facts": table([{"key": key, "value": value} for key, value in
                        (("budget", "none"), ("cost.event_ns", str(pid)), (f"child.{pid}.wall_ns", str(pid)))]),
        "host_waits": table([{"cause": "data", "where": f"at {pid}"}]),
        **changes}
    return {**tables, "info": {"files": table([{"file": f"vm.{pid}.5.0.ssr", "pid": pid, "bytes": 100 + pid}])}}


RECORDER = """#!/bin/sh
here=$(dirname "$0")
table=${4##* }
case "$1 $2" in
'query --tables') cd "$here/recorded" && for name in *; do case $name in info*) ;; *) echo "${name%.json}" ;; esac; done ;;
'report --tables') echo steps && echo host_waits ;;
'run -o')
	mkdir "$3" && : >"$3/vm.$(cat "$here/pid").5.0.ssr"
	cp "$here"/recorded/* "$3"
	[ ! -e "$here/first" ] || { cp "$here"/first/* "$3" && rm -r "$here/first"; } ;;
'report --json') [ $# = 3 ] || cat "$3/$5.json" ;;
'query --json' | 'info --json') cat "$3/${table:-info}.json" ;;
esac
"""


def recorder(folder, tables, pid, first=None):
    (folder / "src").mkdir(parents=True)
    for name, documents in {"recorded": tables, **({"first": first} if first else {})}.items():
        (folder / "src" / name).mkdir()
        for what, document in documents.items():
            (folder / "src" / name / f"{what}.json").write_text(json.dumps(document))
    (folder / "src/pid").write_text(str(pid))
    program = folder / "src/stepscope"
    program.write_text(RECORDER)
    program.chmod(0o755)
    return folder


def compared_recorders(tmp_path, new, first=None, old=None):
    old, new = recorder(tmp_path / "old", old or recorded(), 11), recorder(tmp_path / "new", new, 12, first)
    return subprocess.run([sys.executable, TOOL, old, new, "--record", "--only", "c-memory"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("changes", ({}, {"host_waits": table([{"cause": "data", "where": None}], {}, {"rows[0].where": "unknown"})}),
                         ids=("times, ids and order", "a place that time decides"))
def test_times_and_ids_of_recordings_may_differ(tmp_path, changes):
    done = compared_recorders(tmp_path, recorded(12, **changes))
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "1 programs recorded, 9 outputs compared, 0 differences\n")


def two_processes(host, trainer):
    """The trainer has the spans."""
    return recorded(trainer, processes=table([{"pid": host, "parent_pid": 4, "role": "host"}, {"pid": trainer, "parent_pid": host, "role": "trainer"}]),
                    tracks=table([{"track": at, "process": f"pid {pid}", "tid": pid} for at, pid in enumerate((trainer, host))]))


def test_small_ids_follow_the_largest(tmp_path):
    largest = int(Path("/proc/sys/kernel/pid_max").read_text()) - 1
    done = compared_recorders(tmp_path, two_processes(largest, 302), old=two_processes(11, 12))
    assert done.returncode == 0, done.stdout


SPANS = recorded(12)["spans"]["rows"]


@pytest.mark.parametrize("changes, told", (
    ({"spans": table([SPANS[0], {**SPANS[1], "name": "add"}])}, "spans: [1] name: 'mul' became 'add'"),
    ({"spans": table(SPANS[:1])}, "spans: 2 entries became 1"),
    ({"spans": table([{**row, "thread": "main (tid 7)"} for row in SPANS])}, "spans: [0] thread: 'main (tid process-0)' became 'main (tid 7)'"),
    ({"spans": table([{**row, "shape": "[2]"} for row in SPANS])}, "spans: columns: 5 entries became 6"),
    ({"steps": table([{"step": 2, "duration_ns": 3}], {"duration_ns": "ns"})}, "steps: [0] step: '1' became '2'"),
    ({"steps": table([{"step": 1, "duration_ns": None}], {"duration_ns": "ns"}, {"rows[0].duration_ns": "no end"})},
     "steps: [0] duration_ns: '(time)' became 'missing: no end'"),
    ({"steps": table([{"step": 1, "duration_ns": 12}], {"duration_ns": "bytes"})}, "steps: [0] duration_ns: '(time)' became '12'"),
    ({"marks": table([{"name": "second"}, {"name": "first"}])}, "marks: [0] name: 'first' became 'second'"),
    ({"facts": table([{"key": "budget", "value": "3%"}, *recorded(12)["facts"]["rows"][1:]])}, "facts: [0] value: 'none' became '3%'"),
    ({"facts": table(recorded(12)["facts"]["rows"][:2])}, "facts: ")),
    ids=("name", "row", "thread", "column", "number", "no time", "unit", "order", "fact", "no fact"))
def test_all_else_of_recordings_may_not(tmp_path, changes, told):
    done = compared_recorders(tmp_path, recorded(12, **changes))
    assert (done.returncode, done.stderr) == (1, "") and f"c-memory: {told}" in done.stdout, done.stdout + done.stderr


def test_a_recording_that_differs_by_chance_is_made_again(tmp_path):
    done = compared_recorders(tmp_path, recorded(12), recorded(12, marks=table([{"name": "first"}])))
    assert done.returncode == 0 and done.stdout.startswith("c-memory: no difference in recording 2; before: c-memory: marks: 2 entries became 1\n"), done.stdout


def test_a_line_of_another_form_is_refused(tmp_path):
    for name in ("same_outputs", "same_recordings", "texts.list"):
        (tmp_path / "tools").mkdir(exist_ok=True)
        (tmp_path / "tools" / name).write_bytes((TOOL.parent / name).read_bytes())
        (tmp_path / "tools" / name).chmod(0o755)
    (tmp_path / "tools/times.list").write_text("time spans start_ns\ntimes spans dur_ns\n")
    build = recorder(tmp_path / "old", recorded(), 11)
    done = subprocess.run([sys.executable, tmp_path / "tools/same_outputs", build, build, "--record"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "not one of `unit UNIT`" in done.stderr and done.stderr.endswith(": times spans dur_ns\n"), done.stderr


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


def test_the_list_of_times_names_columns_that_there_are(tmp_path):
    def run(*words):
        return subprocess.run([os.environ["STEPSCOPE"], *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    trace = TOOL.parents[1] / "tests/data/with_stack/train.json.gz"
    run("report", "--csv", "-o", "tables/", trace)
    columns = {path.stem: path.read_text().splitlines()[0].split(",") for path in (tmp_path / "tables").iterdir()}
    columns["files"] = [column["name"] for column in json.loads(run("info", "--json", trace))["files"]["columns"]]
    places = [line.split("#")[0].split() for line in (TOOL.parent / "times.list").read_text().splitlines() if line.split("#")[0].strip()]
    assert len(places) == len({tuple(place) for place in places})
    for word, *place in places:
        if word != "unit" and place[0] not in columns:
            columns[place[0]] = run("query", "--csv", trace, f"SELECT * FROM {place[0]} LIMIT 0").strip().split(",")
        if word not in ("unit", "order"):
            assert set(place[1:3]) <= set(columns[place[0]]), f"{word} {' '.join(place)}"
