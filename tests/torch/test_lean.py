# SPDX-License-Identifier: Apache-2.0
"""What PyTorch does in a shorter way while we are there (torch.lean): the records are those of its own way, event by event."""
import json
import os
import subprocess
import tempfile
from collections import Counter
from functools import lru_cache
from pathlib import Path

import pytest

from torch_tools import HERE, PACKAGE, STEPSCOPE, environment, every_python, export, pythons, table, version, warm

ALL = "tls,engine,object"
# "2.13" -> the parts that it has with us, of the wheels that they are on by default for.
DEFAULTS = {line.split()[0].rpartition(".")[0]: line.split()[1]
            for line in (Path(__file__).parents[2] / "tools/torch-versions.txt").read_text().splitlines() if not line.startswith("#")}
SEEDS = tuple(range(50))
TOGGLES = int(os.environ.get("TOGGLES", 50))  # the suite `slow` makes more


def parts_of(python):
    """What is on by default with its PyTorch; None: nothing."""
    return DEFAULTS.get(".".join(version(python).split(".")[:2])) if python and os.uname().machine == "x86_64" else None


lean_pythons = pytest.mark.parametrize("python", [param for param in pythons() if not param.values[0] or parts_of(param.values[0])])


def is_same_each_time(event):
    """Not what depends on the time that things take."""
    ours = ("garbage collection ", "stepscope::", "ProfilerStep#")
    return event.get("ph") == "X" and event.get("cat") != "Trace" and not event["name"].startswith(ours)


FORWARD = "Fwd thread id"
KEYS = ("Sequence number", FORWARD, "Input Dims", "Input type", "Input Strides", "Concrete Inputs")


def slices(events):
    """Of each thread, in order of their begin: name, depth and what is known of it, without times."""
    threads, forwards = {}, {event["args"][FORWARD] for event in events if FORWARD in event.get("args", {})}
    numbers = {number: at for at, number in enumerate(sorted(forwards))}  # one or two threads of gloo's have some in between
    for event in filter(is_same_each_time, events):
        if FORWARD in event.get("args", {}):
            event["args"][FORWARD] = numbers[event["args"][FORWARD]]
        threads.setdefault(event["tid"], []).append(event)
    return [part for thread in threads.values() for part in parts(told(thread))]


def parts(thread):
    """Two threads of gloo share its work, each time otherwise."""
    if not any(event[0].startswith("gloo:") for event in thread):
        return [thread]
    begins = [at for at, event in enumerate(thread) if event[2] == 1]
    return [thread[begin:end] for begin, end in zip(begins, [*begins[1:], len(thread)])]


def told(events):
    found, ends = [], []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while ends and ends[-1] <= event["ts"]:
            ends.pop()
        ends.append(event["ts"] + event["dur"])
        details = [event.get("args", {}).get(key) for key in KEYS]
        found.append((event["name"], event.get("cat"), len(ends), str(details)))
    return tuple(found)


def fact_of(folder):
    """Of its export."""
    return json.loads((folder / "ours.json").read_text())["metadata"]["torch.lean"]


def recorded(folder, python, lean, *arguments, options=()):
    folder.mkdir()
    done = warm(folder, python, HERE / "lean_programs.py", *arguments, env={"STEPSCOPE_LEAN": lean}, options=options)
    assert done.returncode == 0, done.stderr
    return done.stdout, Counter(slices(export(folder))), fact_of(folder)


def check_equal(way, normal, lean):
    for missing, extra in zip(sorted(normal - lean), sorted(lean - normal)):
        at = next((i for i, (a, b) in enumerate(zip(missing, extra)) if a != b), min(len(missing), len(extra)))
        pytest.fail(f"{way}: {missing[at - 2:at + 3]} became {extra[at - 2:at + 3]}")
    assert lean == normal


def check_same(tmp_path, python, ways, *arguments, options=()):
    printed, normal, fact = recorded(tmp_path / "normal", python, "none", *arguments, options=options)
    assert fact == "none"
    for way in ways:
        told_too, lean, fact = recorded(tmp_path / way.replace(",", "_"), python, way, *arguments, options=options)
        assert fact == way
        assert told_too == printed  # losses and gradients
        check_equal(way, normal, lean)


@every_python
def test_what_is_on_by_default_is_proven(tmp_path, python):
    assert warm(tmp_path, python, "-c", "import torch; torch.ones(1)").returncode == 0
    export(tmp_path)
    number = ".".join(version(python).split(".")[:2])
    assert fact_of(tmp_path) == (parts_of(python) or f"none: PyTorch {number} for {os.uname().machine} was not tried")


@lean_pythons
def test_each_part_and_all_make_the_same_records(tmp_path, python):
    parts = parts_of(python)
    check_same(tmp_path, python, dict.fromkeys([*parts.split(","), parts]), "known")


@lean_pythons
def test_parts_that_are_asked_for_and_cannot_be_are_left(tmp_path, python):
    missing = [part for part in ALL.split(",") if part not in parts_of(python).split(",")]
    if not missing:
        pytest.skip("all can be")
    printed, normal, _ = recorded(tmp_path / "normal", python, "none", "step", "nested")
    told_too, asked, fact = recorded(tmp_path / "asked", python, ALL, "step", "nested")
    assert fact.split("; ") == [parts_of(python), *(f"no {part}: its records keep their contents in an unknown way" for part in missing)]
    assert (told_too, asked) == (printed, normal)


@lean_pythons
def test_losses_and_gradients_are_those_without_us(tmp_path, python):
    """To the bit, after each of the programs."""
    program = HERE / "lean_programs.py", "known"
    printed = {"bare": warm(tmp_path, python, *program, is_observed=False).stdout}
    for way, lean, options in (("none", "none", ()), ("tls", "tls", ()), ("all", ALL, ()), ("simple", ALL, ("--type", "simple"))):
        folder = tmp_path / way
        folder.mkdir()
        printed[way] = warm(folder, python, *program, env={"STEPSCOPE_LEAN": lean}, options=options).stdout
    assert len(printed["bare"].splitlines()) > 20
    assert [way for way, text in printed.items() if text != printed["bare"]] == []


@lean_pythons
def test_records_with_inputs_are_the_same(tmp_path, python):
    check_same(tmp_path, python, (parts_of(python),), "known", options=("--with", "shapes"))


@lean_pythons
def test_random_programs_make_the_same_records(tmp_path, python):
    check_same(tmp_path, python, (parts_of(python),), *SEEDS)


SET, GET, TABLE = "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE", "_ZN2at24get_record_function_tls_Ev", "_ZTVN2at14RecordFunctionE"
ASK, ASK_ALL = "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE", "_ZN2at16getStepCallbacksENS_11RecordScopeE"
CONSTRUCT, SCOPE = "_ZN2at14RecordFunctionC1EONS_13StepCallbacksE", "_ZN2at14RecordFunctionC1ENS_11RecordScopeE"
END, DESTROY = "_ZN2at14RecordFunction3endEv", "_ZN2at14RecordFunctionD1Ev"
EVALUATE = ("_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueue"
            "EE")
BEGIN, FUNCTIONS = "its records start in an unknown way, or another observer is active", "this PyTorch does not have all of its functions"
NO_ENGINE = {"engine": "not all calls of the engine go through writable slots"}
NO_OBJECT = {"object": f"{FUNCTIONS}, or does not call all of them through writable slots"}
# What doctored.py does to libtorch_cpu -> the parts that are left, and why.
DOCTORED = {
    "nothing": {},
    f"no_slot={SET}": {"tls": "libtorch_cpu calls it without slots"},
    f"no_slot={EVALUATE}": NO_ENGINE,
    f"no_slot={SCOPE}": NO_ENGINE,
    f"no_slot={CONSTRUCT}": NO_OBJECT,
    f"no_slot={END}": NO_OBJECT,
    f"no_slot={DESTROY}": NO_ENGINE | NO_OBJECT,
    f"no_function={GET}": {"tls": FUNCTIONS},
    f"no_function={ASK}": {"engine": FUNCTIONS, "object": FUNCTIONS},
    f"no_function={END}": NO_OBJECT,
    f"moved={TABLE}=8": {"engine": BEGIN, "object": BEGIN},
    f"other={ASK}={ASK_ALL}": {"engine": BEGIN, "object": BEGIN},
    f"other={GET}=_ZN2at13globalContextEv": {"tls": "the observers of a thread are kept in an unknown way"},
    f"read_only={SET}=told": {"tls": "the slots are read-only"},
    f"read_only={SET}=untold": {"tls": "the slots are read-only"},
    f"read_only={DESTROY}=told": NO_ENGINE | NO_OBJECT,
}


def doctored(folder, python, change, lean):
    """What it printed, its records, and the fact."""
    env = {"STEPSCOPE": "out=run,budget=none", "STEPSCOPE_LEAN": lean}
    program = HERE / "doctored.py", PACKAGE, change, "step", "custom", "backward_throws", "nested", "dispatch_mode"
    if change.startswith("read_only"):  # PyTorch itself binds no slot any more
        done = subprocess.run([python, *map(str, program)], cwd=folder, env=environment(LD_BIND_NOW=1, **env), capture_output=True, text=True, check=False)
    else:
        done = warm(folder, python, *program, env=env, is_observed=False)
    assert done.returncode == 0, done.stderr
    records = Counter(slices(export(folder)))
    printed = [line for line in done.stdout.splitlines() if "USDT" not in line]
    return printed, records, fact_of(folder)


@lru_cache
def normal(python, is_fresh):
    with tempfile.TemporaryDirectory() as folder:
        return doctored(Path(folder), python, "read_only" if is_fresh else "nothing", "none")[:2]


@lean_pythons
@pytest.mark.parametrize("change", DOCTORED, ids=[f"{change.split('=')[0]}-{at}" for at, change in enumerate(DOCTORED)])
def test_a_doctored_library_is_left_alone(tmp_path, python, change):
    """The part that needs what is not as known, and no other; the recording says so, and the records and results are those of the normal way."""
    if parts_of(python) != ALL:
        pytest.skip("its records are not as known to begin with")
    printed, records, fact = doctored(tmp_path, python, change, ALL)
    parts = [part for part in ALL.split(",") if part not in DOCTORED[change]]
    assert fact == "; ".join([",".join(parts) or "none", *(f"no {part}: {why}" for part, why in DOCTORED[change].items())])
    told, expected = normal(python, change.startswith("read_only"))
    assert printed == told
    check_equal(change, expected, records)


def stressed(tmp_path, python, lean, *arguments):
    """Returns what it printed."""
    done = warm(tmp_path, python, HERE / "lean_stress.py", *arguments, env={"STEPSCOPE_LEAN": lean}, timeout=300 + TOGGLES)
    *printed, problems = done.stdout.splitlines()
    assert (done.returncode, problems) == (0, ""), done.stderr
    rows = [row for row in table(tmp_path, "ops") if row["calls"]]
    assert sum(row["calls"] for row in rows) > 10000
    assert not [row["name"] for row in rows if row["incomplete_calls"]]
    assert not [row for row in table(tmp_path, "ledger") if row["what"] in ("dropped", "damaged")]
    return printed


@lean_pythons
@pytest.mark.parametrize("is_lean", (False, True), ids=("normal", "lean"))
def test_callbacks_come_and_go_beside_everything(tmp_path, python, is_lean):
    stressed(tmp_path, python, parts_of(python) if is_lean else "none", 1, 400)


@lean_pythons
@pytest.mark.parametrize("is_lean", (False, True), ids=("normal", "lean"))
def test_all_observers_come_and_go(tmp_path, python, is_lean):
    """In random order. Of the main thread we have all that it did while we were there, and so have they."""
    works = int(stressed(tmp_path, python, parts_of(python) if is_lean else "none", 7, TOGGLES, "all")[0])
    query = "SELECT count(*) AS nodes FROM spans JOIN tracks USING (track) WHERE spans.name = 'MulBackward0' AND tracks.track = 0"
    done = subprocess.run([STEPSCOPE, "query", "run", "--json", query], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] == [{"nodes": 10 * works}]


@every_python
def test_an_unknown_part_is_told_once_and_changes_nothing(tmp_path, python):
    facts = {}
    (tmp_path / "ours.py").write_text("import torch\nfor _ in range(2):\n    torch.ones(2) + 1\n")
    for word, lines in (("bogus,tls", 1), ("", 0), (None, 0)):
        done = warm(tmp_path, python, "ours.py", env={} if word is None else {"STEPSCOPE_LEAN": word})
        assert done.returncode == 0
        assert done.stderr.count(f"stepscope: STEPSCOPE_LEAN must be of {ALL} or none, got 'bogus'") == done.stderr.count("LEAN") == lines, done.stderr
        facts[word] = {row["key"]: row["value"] for row in table(tmp_path, "facts")}["torch.lean"]
    assert len(set(facts.values())) == 1, facts
