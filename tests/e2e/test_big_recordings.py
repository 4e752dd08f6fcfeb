# SPDX-License-Identifier: Apache-2.0
"""Recordings with many of one thing. The kernel refuses memory that is no file (RLIMIT_DATA), so that what a table takes beyond --memory
ends the program; tables are whole all the same, and in order."""
import csv
import json
import resource
import subprocess

import pytest

from run_tools import ACTOR, STEPSCOPE, environment, run, run_directory
from test_big_traces import IS_SANITIZED

MIB = 2**20
STEPS, MARKS, SERIES, VALUES = 250_000, 600_000, 300, 20_000


def record(folder, *words):
    done = run(folder, ACTOR, *words, timeout=300)
    assert done.returncode == 0, done.stderr
    return run_directory(folder)


def report(recording, *options, data=None, stdout=subprocess.PIPE):
    """With so many MiB of memory that is no file."""
    limit = None if IS_SANITIZED or not data else (lambda: resource.setrlimit(resource.RLIMIT_DATA, (data * MIB, data * MIB)))
    return subprocess.run([STEPSCOPE, "report", str(recording), *options], stdout=stdout, stderr=subprocess.PIPE, text=True,
                          env=environment(recording.parent), preexec_fn=limit, timeout=600)


def rows(done):
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(done.stdout.splitlines()))


@pytest.fixture(scope="module")
def steps(tmp_path_factory):
    return record(tmp_path_factory.mktemp("steps"), "steps", STEPS, 0)


def test_a_table_with_a_row_per_step(steps):
    found = rows(report(steps, "--table", "steps", "--csv", "--memory", "8M", data=64))
    assert [int(row["step"]) for row in found] == list(range(STEPS))
    assert {row["process"] for row in found} == {found[0]["process"]}
    assert all(sum(int(row[f"{phase}_ns"]) for phase in ("data", "forward", "other")) == int(row["duration_ns"]) for row in found)


@pytest.mark.skipif(IS_SANITIZED, reason="a sanitizer takes memory of its own")
def test_all_of_it_in_memory_is_more_than_that(steps):
    assert report(steps, "--table", "steps", "--csv", "--memory", "1G", data=64).returncode != 0


def test_it_is_sorted_and_written_in_little_memory(steps, tmp_path):
    done = report(steps, "--table", "steps", "--sort", "duration_ns", "--json", "-o", str(tmp_path / "steps.json"), "--memory", "8M", data=64)
    assert done.returncode == 0, done.stderr
    found = [row["duration_ns"] for row in json.loads((tmp_path / "steps.json").read_text())["rows"]]
    assert len(found) == STEPS and found == sorted(found, reverse=True)


def test_text_is_aligned_over_all_rows(steps):
    done = report(steps, "--table", "steps", "--columns", "step,duration_ns", "--memory", "8M", data=64)
    lines = done.stdout.splitlines()
    assert done.returncode == 0 and len({len(line) for line in lines[2:STEPS + 2]}) == 1
    assert lines[STEPS + 1].split()[0] == str(STEPS - 1)


def test_operators_as_torch_counts_them(steps):
    done = report(steps, "--style", "torch", "--memory", "8M", data=64)
    assert done.returncode == 0, done.stderr
    assert [line.split()[-1] for line in done.stdout.splitlines() if "matmul" in line] == [str(STEPS)]
    events = report(steps, "--style", "torch", "--events", "--json", "--memory", "8M", data=64)
    assert events.returncode == 0, events.stderr
    assert sum(event["name"] == "matmul" for event in json.loads(events.stdout)["events"]) == STEPS


def test_a_file_that_cannot_be_written_stays_as_it_was(steps, tmp_path):
    """When the disk is full in the middle of a table."""
    path = tmp_path / "steps.csv"
    path.write_text("before")
    done = subprocess.run([STEPSCOPE, "report", str(steps), "--table", "steps", "--csv", "-o", str(path)], capture_output=True, text=True,
                          env=environment(tmp_path), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4 * MIB, 4 * MIB)))
    assert done.returncode == 4 and "cannot write" in done.stderr and "File too large" in done.stderr
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_a_row_per_mark(tmp_path):
    found = rows(report(record(tmp_path, "marks", MARKS), "--table", "marks", "--csv", "--memory", "8M", data=64))
    times = [int(row["time_ns"]) for row in found]
    assert len(found) == MARKS and times == sorted(times)
    assert sum(row["name"] == "odd" for row in found) == MARKS // 2


def test_many_series_of_values(tmp_path):
    """Each takes less than a MiB; together they are more than the kernel gives."""
    found = rows(report(record(tmp_path, "values", SERIES, VALUES), "--table", "counters", "--csv", "--memory", "8M", data=64))
    own = {row["name"]: row for row in found if row["name"].startswith("value ")}
    assert len(own) == SERIES
    for i in range(SERIES):
        assert own[f"value {i}"]["count"] == str(VALUES)
        assert float(own[f"value {i}"]["last"]) == SERIES * (VALUES - 1) + i
