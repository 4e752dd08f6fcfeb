# SPDX-License-Identifier: Apache-2.0
"""What PyTorch does in a shorter way while we are there (torch.lean): the records are those of its own way, event by event."""
import json
from collections import Counter

import pytest

from torch_tools import HERE, every_python, export, is_before, pythons, table, warm

PARTS = ("tls", "engine", "object")
ALL = ",".join(PARTS)
newer_pythons = pytest.mark.parametrize("python", [param for param in pythons() if not param.values[0] or not is_before(param.values[0], 2, 9)])
SEEDS = tuple(range(50))


def is_same_each_time(event):
    """Not what depends on the time that things take."""
    ours = ("garbage collection ", "stepscope::", "ProfilerStep#")
    return event.get("ph") == "X" and event.get("cat") != "Trace" and not event["name"].startswith(ours)


KEYS = ("Sequence number", "Fwd thread id", "Input Dims", "Input type", "Input Strides", "Concrete Inputs")


def slices(events):
    """Of each thread, in order of their begin: name, depth and what is known of it, without times."""
    threads = {}
    for event in filter(is_same_each_time, events):
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


def recorded(folder, python, lean, *arguments, options=()):
    folder.mkdir()
    done = warm(folder, python, HERE / "lean_programs.py", *arguments, env={"STEPSCOPE_LEAN": lean}, options=options)
    assert done.returncode == 0, done.stderr
    events = export(folder)
    fact = json.loads((folder / "ours.json").read_text())["metadata"]["torch.lean"]
    return done.stdout, Counter(slices(events)), fact


def check_same(tmp_path, python, ways, *arguments, options=()):
    printed, normal, fact = recorded(tmp_path / "normal", python, "none", *arguments, options=options)
    assert fact == "none"
    for way in ways:
        told_too, lean, fact = recorded(tmp_path / way.replace(",", "_"), python, way, *arguments, options=options)
        assert fact == way
        assert told_too == printed  # losses and gradients
        for missing, extra in zip(sorted(normal - lean), sorted(lean - normal)):
            at = next((i for i, (a, b) in enumerate(zip(missing, extra)) if a != b), min(len(missing), len(extra)))
            pytest.fail(f"{way}: {missing[at - 2:at + 3]} became {extra[at - 2:at + 3]}")
        assert lean == normal


@newer_pythons
def test_each_part_and_all_make_the_same_records(tmp_path, python):
    check_same(tmp_path, python, (*PARTS, ALL), "known")


@newer_pythons
def test_records_with_inputs_are_the_same(tmp_path, python):
    check_same(tmp_path, python, (ALL,), "known", options=("--with", "shapes"))


@newer_pythons
def test_random_programs_make_the_same_records(tmp_path, python):
    check_same(tmp_path, python, (ALL,), *SEEDS)


@newer_pythons
@pytest.mark.parametrize("lean", ("none", ALL))
def test_callbacks_come_and_go_beside_everything(tmp_path, python, lean):
    done = warm(tmp_path, python, HERE / "lean_stress.py", 1, 400, env={"STEPSCOPE_LEAN": lean})
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
    rows = [row for row in table(tmp_path, "ops") if row["calls"]]
    assert sum(row["calls"] for row in rows) > 10000
    assert not [row["name"] for row in rows if row["incomplete_calls"]]


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
