# SPDX-License-Identifier: Apache-2.0
"""Hard cases of sizes and files of traces: many ranks, deep stacks, large address spaces, missing memory, archives and compressed files that
are cut or damaged."""
import gzip
import json
import lzma
import os
import resource
import subprocess
import tarfile
from random import Random

import pytest
from hard_tools import STEP, fixture_trace, span, step


def test_S03_as_many_ranks_as_there_are_files(trace, tmp_path):
    """64 of them, one after the other: no more files are open, and no more is resident, than a few of them take."""
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(64):
        events = [step(i, STEP * i) for i in range(3)] + [span("a", 10 * i, 5) for i in range(300)]
        (folder / f"rank{rank}.json").write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank, "world_size": 64}}))
    done = subprocess.run([os.environ["STEPSCOPE"], "query", folder, "--csv", "--memory", "1M",
                           "SELECT (SELECT count(*) FROM ranks) AS r, (SELECT sum(calls) FROM ops WHERE name = 'a') AS a, (SELECT count(*) FROM steps) AS s"],
                          capture_output=True, timeout=60, check=True, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
    assert done.stdout.decode().splitlines()[1] == f"64,{64 * 300},{64 * 3}", done.stderr


def exported(trace, *options):
    done = subprocess.run([os.environ["STEPSCOPE"], "export", "--no-progress", "--format", "chrome", *options, trace.path, "-o", "-"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120, check=True)
    return done.stderr.decode()


def wide(trace, path, count):
    """A trace of two steps with spans whose names have a million characters each."""
    trace.path = path
    events = [step(i, STEP * i) for i in range(2)] + [span("x" * 1_000_000, STEP + 1 + i, 1) for i in range(count)]
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"[" + b",".join(json.dumps(event).encode() for event in events) + b"]")
    return trace


def test_S04_nothing_is_cut_without_a_word(trace, tmp_path):
    text = exported(wide(trace, tmp_path / "trace.json.gz", 3))
    assert "exported 5 spans" in text and "note" not in text
    text = exported(trace, "--max-mb", "2")
    assert "exported 1 span " in text and "leaves room for 1 of 2 steps: nothing is written from step 1 on" in text
    assert "exported 1 span " in exported(trace, "--steps", "0")


def test_S05_allocations_all_over_a_large_address_space(trace):
    """Their sums are right, however far apart they lie and however many are alive."""
    count, alive, size, total = 20000, 3500, 1 << 20, 0
    events = [step(0, 0, 10 * count)]
    for i in range(count):
        changes = [(size, i)] + ([(-size, i - alive)] if i >= alive else [])
        for change, number in changes:
            total += change
            events.append({"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": 1, "ts": 10 * i + (change < 0), "s": "t",
                           "args": {"Device Type": 0, "Device Id": -1, "Bytes": change, "Addr": 0x7F00_0000_0000 + number * 100_000_007,
                                    "Total Allocated": total, "Total Reserved": 0}})
    trace.write(events)
    row, = [row for row in trace.table("memory") if row["category"] == "all"]
    assert (row["peak_bytes"], row["live_bytes"], row["allocations"]) == ((alive + 1) * size, alive * size, count)
    assert "parameters, gradients and optimizer state" in trace.run("--table", "memory"), "what nobody can know is said"


@pytest.mark.parametrize("depth", [1, 127, 4096, 5000, 50000])
def test_S06_stacks_of_any_depth(trace, tmp_path, depth):
    """Beyond the maximum a stack ends in a marker; its sample counts."""
    trace.path = tmp_path / "deep.folded"
    trace.path.write_text(";".join(f"f{i}" for i in range(depth)) + " 7\n")
    functions = {row["function"]: row for row in trace.table("functions")}
    assert functions["f0"]["total_count"] == 7 and sum(row["self_count"] for row in functions.values()) == 7
    assert ("(more frames)" in functions) == (depth > 4096) == any("cut behind 4096 frames" in sentence for sentence in trace.ledger())


def test_M05_memory_that_was_asked_for_and_is_not_there(trace):
    trace.write([step(0, 0), span("aten::mm", 10, 100)], profile_memory=1)
    assert "PyTorch lost them (PyTorch issue 166121)" in trace.run("--table", "memory", "--json")
    trace.write([step(0, 0), span("aten::mm", 10, 100)], profile_memory=0)
    assert "torch.profiler writes them with profile_memory=True" in trace.run("--table", "memory", "--json")


def test_what_is_only_compressed_with_xz_is_told_from_an_archive(tmp_path):
    (tmp_path / "trace.json.xz").write_bytes(lzma.compress(b'{"traceEvents": []}'))
    done = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / "trace.json.xz"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3 and "compressed with xz must be decompressed first" in done.stderr


def test_compressed_data_that_begins_damaged_is_no_unknown_kind(tmp_path):
    packed = gzip.compress(b'{"traceEvents": [' + b'{"ph": "X", "name": "a", "ts": 1, "dur": 2}, ' * 999 + b"{}]}")
    (tmp_path / "damaged").write_bytes(packed[:12] + bytes([255] * (len(packed) - 12)))
    done = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / "damaged"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3 and "damaged" in done.stderr and "not a recording" not in done.stderr, done.stderr


@pytest.mark.parametrize("last", ["null", "5", '"a\\"]b"', "true", "[]", "[1, [2]]", "null, 1"])
def test_what_is_behind_a_list_that_ends_with_no_event_is_read(tmp_path, last):
    event = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}'
    (tmp_path / "trace.json").write_text(f'{{"traceEvents": [{event}, {last}], "distributedInfo": {{"rank": 3, "world_size": 4}}}}')
    done = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / "trace.json", "--table", "ledger", "--csv"], capture_output=True, text=True,
                          timeout=60, check=True)
    assert "places between events that are no event" in done.stdout and "torn" not in done.stdout and "cut" not in done.stdout
    assert "ranks 0 to 2 of 4" in done.stdout


@pytest.mark.parametrize("mode, part", [("w", 0.4), ("w:gz", 0.6), ("w:gz", 0.99)])
def test_what_is_whole_in_an_archive_that_is_cut_off_is_read(tmp_path, mode, part):
    chance = Random(1)
    for rank in range(4):
        events = [{"ph": "X", "cat": "cpu_op", "name": f"aten::{chance.random()}", "pid": 1, "tid": 1, "ts": 10 * i, "dur": 5} for i in range(200)]
        (tmp_path / f"rank{rank}.json").write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank, "world_size": 4}}))
    with tarfile.open(tmp_path / "whole", mode) as archive:
        for rank in range(4):
            archive.add(tmp_path / f"rank{rank}.json", f"rank{rank}.json")
    whole = (tmp_path / "whole").read_bytes()
    (tmp_path / "cut").write_bytes(whole[:int(part * len(whole))])
    done = subprocess.run([os.environ["STEPSCOPE"], "query", tmp_path / "cut", "--csv", "SELECT process, count(*) FROM spans GROUP BY 1"], capture_output=True,
                          text=True, timeout=60, check=True)
    found = done.stdout.split("\n")[1:-1]
    assert found[0] == "rank 0,200" and 1 < len(found) <= 4 and "damaged,1,all" in report_ledger(tmp_path / "cut")


def report_ledger(path):
    return subprocess.run([os.environ["STEPSCOPE"], "report", path, "--table", "ledger", "--csv"], capture_output=True, text=True, timeout=60, check=True).stdout
