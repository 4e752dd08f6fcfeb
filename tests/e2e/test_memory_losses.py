# SPDX-License-Identifier: Apache-2.0
"""Recordings in which allocations or frees are missing: an allocation whose free is missing must not count as alive."""
import json
import subprocess

import pytest
from run_tools import ACTOR, STEPSCOPE, run, run_directory

MIB = 1 << 20
LEVELS = ("at_peak_bytes", "peak_bytes", "live_bytes", "allocated_bytes", "allocations")
REMOVED = "frees were removed ("  # what is left of it is a part, of which there are rows
GROWTH = ("growth_bytes_per_step", "growth_low_bytes_per_step", "growth_high_bytes_per_step", "trend")


def record(directory, *memory, options=()):
    """The run directory of a program that allocates as `memory` says."""
    directory.mkdir(exist_ok=True)
    done = run(directory, ACTOR, "memory", *memory, options=("--with", "memory", *options))
    assert done.returncode == 0, done.stderr
    return run_directory(directory)


def call(*words):
    done = subprocess.run([STEPSCOPE, *map(str, words)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


def table(recording, name):
    return json.loads(call("report", recording, "--table", name, "--json"))


def rows(recording, name):
    return table(recording, name)["rows"]


def one_row(recording):
    """Of the table `memory`: that of all categories, which is the first one, and the reasons of what it does not have."""
    found = table(recording, "memory")
    assert found["rows"][0]["category"] == "all", found["rows"]
    return found["rows"][0], {name.removeprefix("rows[0]."): why for name, why in found["not_measured"].items()}


def check_of(recording, rule):
    return next(check for check in json.loads(call("diagnose", recording, "--json"))["checks"] if check["rule"] == rule)


def is_dropped(recording):
    return any(entry["what"] == "dropped" and entry["where"] in ("alloc", "free") for entry in rows(recording, "ledger"))


def check_unknown(recording, why, columns=LEVELS + GROWTH):
    row, reasons = one_row(recording)
    for column in columns:
        assert row[column] is None and why in reasons[column], (column, row, reasons)
    for name in ("memory_peak", "memory_largest", "memory_modules", "memory_lines"):
        found = table(recording, name)
        assert found["rows"] == [] or (why == REMOVED and why in found["note"]), name
    assert why in " ".join(call("report", recording).split())


@pytest.fixture(name="dropped", scope="module")
def made_dropped(tmp_path_factory):
    """Nothing lives longer than an instant; 64 KiB hold 1,600 allocations and frees, so the first ten steps are whole."""
    recording = record(tmp_path_factory.mktemp("dropped"), 10, 100, 0, -1, "memory", 20, 50000, 0, -1, options=("--pool", "64K"))
    assert is_dropped(recording), call("report", recording, "--table", "ledger")
    return recording


def test_with_room_for_all_it_is_known(tmp_path):
    recording = record(tmp_path / "flat", 20, 2000, 0, -1, options=("--pool", "64M"))
    assert not is_dropped(recording)
    row, _ = one_row(recording)
    assert (row["peak_bytes"], row["live_bytes"], row["growth_bytes_per_step"]) == (8 * MIB, 0, 0), row
    assert row["allocated_bytes"] == 40000 * 8 * MIB and row["trend"] == "does not grow", row
    assert check_of(recording, "SS501")["result"] == "nothing"
    recording = record(tmp_path / "leak", 20, 2000, 1, -1, options=("--pool", "64M"))
    row, _ = one_row(recording)
    assert row["growth_bytes_per_step"] == pytest.approx(8 * MIB) and row["live_bytes"] == 160 * MIB, row
    assert check_of(recording, "SS501")["result"] == "found"


def test_dropped_frees_are_no_memory_that_is_alive(dropped):
    check_unknown(dropped, "dropped")
    assert rows(dropped, "memory_growth") == []
    check = check_of(dropped, "SS501")
    assert check["result"] == "cannot tell" and "dropped" in check["reason"], check
    assert {row["self_memory_bytes"] for row in rows(dropped, "ops")} == {None}
    assert "MiB" not in call("report", dropped, "--style", "torch")
    assert call("query", dropped, "SELECT count(*) FROM memory_events WHERE NOT is_free AND lifetime_ns < 0").split()[-1] == "0"


def test_steps_before_the_first_drop_are_known(dropped):
    """Until then no free is missing, so no step can have more than one allocation."""
    steps = rows(dropped, "memory_steps")
    assert [(row["peak_bytes"], row["end_bytes"]) for row in steps[:10]] == 10 * [(8 * MIB, 0)], steps
    assert len(steps) > 25 and {row["peak_bytes"] for row in steps[12:]} == {row["end_bytes"] for row in steps[12:]} == {None}, steps
    row = json.loads(call("report", dropped, "--steps", "0-9", "--table", "memory", "--json"))["rows"][0]
    assert (row["peak_bytes"], row["live_bytes"], row["trend"]) == (8 * MIB, 0, "does not grow"), row


def test_no_other_form_knows_more(dropped, tmp_path):
    for name in ("run.ssr", "run.json"):
        call("export", dropped, "-o", tmp_path / name)
        check_unknown(tmp_path / name, "dropped")
    call("export", dropped, "-o", tmp_path / "memory.json", "--format", "memory-timeline")
    _, sizes = json.loads((tmp_path / "memory.json").read_text())
    assert all(sum(row) in (0, 8 * MIB) for row in sizes)
    for event in json.loads((tmp_path / "run.json").read_text())["traceEvents"]:
        if event["name"] == "[memory]":
            assert event["args"].get("Total Allocated", 0) in (0, 8 * MIB), event


def test_no_history_and_no_comparison_knows_more(dropped, tmp_path):
    whole = record(tmp_path / "whole", 20, 2000, 1, -1, options=("--pool", "64M"))
    call("history", "add", dropped, "--history", tmp_path / "runs.db", "--name", "dropped")
    numbers = json.loads(call("history", "list", "--history", tmp_path / "runs.db", "--json"))
    assert [row["host_memory_peak_bytes"] for row in numbers["rows"]] == [None], numbers
    done = subprocess.run([STEPSCOPE, "compare", whole, dropped, "--table", "memory"], capture_output=True, text=True, timeout=60)
    assert "its peak is unknown" in " ".join(done.stdout.split()), done


def test_no_limit_is_kept_by_a_peak_that_is_not_known(tmp_path):
    """Nor does the memory of the process stand for that of its device."""
    whole = record(tmp_path / "whole", 20, 2000, 1, 0, options=("--pool", "64M"))
    lost = record(tmp_path / "lost", 20, 50000, 1, 0, options=("--pool", "64K"))
    assert is_dropped(lost)
    for new, result in ((whole, "kept"), (lost, "not measured")):
        done = subprocess.run([STEPSCOPE, "compare", whole, new, "--tier", "default", "--table", "limits", "--json"],
                              capture_output=True, text=True, timeout=60)
        found = [(row["metric"], row["result"]) for row in json.loads(done.stdout)["rows"] if row["check"].startswith("peak_memory")]
        assert found == 2 * [("device_memory", result)], done


def test_what_rotation_left_is_a_part(tmp_path):
    """What grows in the steps that are left is seen; how much there is in all is not."""
    recording = record(tmp_path, 200, 10000, 1, -1, options=("--pool", "64M", "--keep-size", "256K", "--segment-size", "64K"))
    assert any(entry["what"] == "removed" for entry in rows(recording, "ledger"))
    check_unknown(recording, REMOVED, LEVELS)
    row, reasons = one_row(recording)
    assert reasons["peak_bytes"].startswith("at least "), reasons
    assert row["growth_bytes_per_step"] == pytest.approx(8 * MIB), row
    assert all(row["peak_bytes"] is None for row in rows(recording, "memory_steps"))
    assert check_of(recording, "SS501")["result"] == "found"


def test_a_damaged_block_may_have_had_frees(tmp_path):
    recording = record(tmp_path, 20, 20000, 0, -1, options=("--pool", "64M"))
    file = max(recording.glob("*.ssr"), key=lambda path: path.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xff
    file.write_bytes(data)
    assert any(entry["what"] == "damaged" for entry in rows(recording, "ledger"))
    check_unknown(recording, "damaged")
    assert check_of(recording, "SS501")["result"] == "cannot tell"
