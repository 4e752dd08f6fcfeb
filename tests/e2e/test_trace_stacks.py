# SPDX-License-Identifier: Apache-2.0
"""Traces of torch.profiler with stacks: calls of Python cross the ranges that `with` makes, yet a thread is one track, no time counts twice,
and steps and phases are those of the same trace without calls."""
import csv
import gzip
import json
import os
import subprocess
from pathlib import Path

import pytest

STEPSCOPE = os.environ["STEPSCOPE"]
DATA = Path(__file__).resolve().parent.parent / "data"
MADE = DATA / "with_stack"
PHASES = ["data_ns", "forward_ns", "backward_ns", "optimizer_ns"]


def document_of(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def events_of(document):
    return document if isinstance(document, list) else document.get("traceEvents", [])


def has_calls(path):
    return any(event.get("cat") == "python_function" for event in events_of(document_of(path)))


CORPUS = [p for p in sorted((DATA / "traces").rglob("*")) if p.suffix in (".json", ".gz") and has_calls(p)]


def table(path, name, *options):
    command = [STEPSCOPE, "report", str(path), "--table", name, "--csv", *options]
    return list(csv.DictReader(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()))


def threads_of(path):
    return [row for row in table(path, "threads") if row["kind"] == "thread"]


def without(path, out, is_left_out):
    document = document_of(path)
    document["traceEvents"] = [event for event in document["traceEvents"] if not is_left_out(event)]
    out.write_text(json.dumps(document))
    return out


def is_call(event):
    return event.get("cat") == "python_function"


def test_there_are_traces_with_calls():
    assert len(CORPUS) >= 3


@pytest.mark.parametrize("path", [MADE / "train.json.gz", *CORPUS], ids=lambda path: path.name)
def test_a_thread_is_one_track_whose_time_counts_once(path):
    threads = threads_of(path)
    assert len({row["thread"] for row in threads}) == len(threads)
    for thread in threads:
        own = [row for row in table(path, "ops", "--by", "thread") if row["thread"] == thread["thread"]]
        wall_ns = int(thread["last_ns"]) - int(thread["first_ns"])
        assert sum(int(row["self_ns"]) for row in own) <= wall_ns


def test_phases_are_what_the_program_measured():
    stamps = [tuple(map(int, line.split())) for line in (MADE / "stamps.txt").read_text().splitlines()]
    steps = table(MADE / "train.json.gz", "steps")
    assert len(steps) == len(stamps) == 4
    for step, (step_ns, wait_ns) in zip(steps, stamps):
        assert wait_ns - 500_000 < int(step["data_ns"]) <= wait_ns  # the stamps have what is around the iterator, too
        assert step_ns < int(step["duration_ns"]) < step_ns + 500_000
    sleep = next(row for row in table(MADE / "train.json.gz", "ops") if "function sleep" in row["name"])
    assert int(sleep["self_ns"]) == int(sleep["total_ns"]) >= 8 * 5_000_000


@pytest.mark.parametrize("has_steps", [True, False])
def test_phases_are_those_of_the_trace_without_calls(has_steps, tmp_path):
    def is_step(event):
        return not has_steps and event.get("name", "").startswith("ProfilerStep")

    calls = without(MADE / "train.json.gz", tmp_path / "calls.json", is_step)
    plain = without(MADE / "train.json.gz", tmp_path / "plain.json", lambda event: is_step(event) or is_call(event))
    ours, theirs = table(calls, "steps"), table(plain, "steps")
    assert len(ours) == len(theirs) == 4
    for step, other in zip(ours, theirs):
        for phase in ("data_ns", "optimizer_ns"):
            assert int(step[phase]) == int(other[phase]) > 0
        # one begins with the call of the network, not with its first operator; the other with that which makes the first gradient, and ends with the engine's
        for phase in ("forward_ns", "backward_ns"):
            assert 0 < int(other[phase]) < int(step[phase]) < int(other[phase]) + 500_000


def span(name, start, end, category, **args):
    return {"ph": "X", "name": name, "cat": category, "pid": 1, "tid": 1, "ts": start, "dur": end - start, "args": args}


def test_a_call_that_has_the_end_of_one_phase_and_all_of_the_next(tmp_path):
    """The loss is computed in the function that calls backward(): the forward is in two pieces, none of which has the backward."""
    events = []
    for step in range(3):
        at = 1000 * step
        events += [
            span(f"ProfilerStep#{step}", at, at + 900, "user_annotation"),
            span("a.py(1): call", at + 100, at + 220, "python_function"),
            span("aten::mm", at + 120, at + 200, "cpu_op", **{"Sequence number": 1, "Fwd thread id": 0}),
            span("a.py(2): loss_and_backward", at + 300, at + 700, "python_function"),
            span("aten::nll_loss", at + 320, at + 380, "cpu_op", **{"Sequence number": 2, "Fwd thread id": 0}),
            span("aten::ones_like", at + 385, at + 390, "cpu_op", **{"Sequence number": 3, "Fwd thread id": 0}),
            span("autograd::engine::evaluate_function: MmBackward0", at + 400, at + 600, "cpu_op"),
            span("Optimizer.step#SGD.step", at + 750, at + 850, "user_annotation"),
        ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    assert len(threads_of(path)) == 1
    for step in table(path, "steps"):
        # from the call of the network to its last operator, with what is between
        assert [int(step[phase]) for phase in PHASES] == [0, 280_000, 215_000, 100_000]
    total_ns = {row["name"]: row["total_ns"] for row in table(path, "ops")}
    assert total_ns["a.py(2): loss_and_backward"] == str(3 * 400_000)


def lines_of(path):
    done = subprocess.run([STEPSCOPE, "report", str(path), "--table", "lines", "--json"], check=True, capture_output=True, text=True)
    document = json.loads(done.stdout)
    return document, document["rows"]


def test_a_line_of_a_trace_is_where_its_function_begins(tmp_path):
    """Kineto says of a call which line its `def` is on: that line's text would be that of one that issued nothing. The same when it was converted."""
    program = tmp_path / "train.py"
    program.write_text("def train_step(x):\n    return x @ x\n")
    os.utime(program, (0, 0))
    events = [span("ProfilerStep#0", 0, 900, "user_annotation"), span(f"{program}(1): train_step", 100, 400, "python_function"),
              span("aten::mm", 120, 200, "cpu_op")]
    (tmp_path / "trace.json").write_text(json.dumps({"baseTimeNanoseconds": 10**18, "traceEvents": events}))
    for name in ("converted.ssr", "converted.json"):
        subprocess.run([STEPSCOPE, "convert", tmp_path / "trace.json", tmp_path / name], check=True, capture_output=True)
    for name in ("trace.json", "converted.ssr", "converted.json"):
        document, (row,) = lines_of(tmp_path / name)
        assert row["function"] == "train_step" and row["line"].endswith("train.py:1") and row["source"] is None
        assert "do not record the calling line" in json.dumps(document)


def test_lines_of_our_own_recordings_are_those_that_called_also_in_their_traces(tmp_path):
    subprocess.run([Path(os.environ["BUILD"]) / "tests/unit/lines_sample", tmp_path / "run"], check=True, capture_output=True)
    subprocess.run([STEPSCOPE, "export", tmp_path / "run", "-o", tmp_path / "run.json"], check=True, capture_output=True)
    for name in ("run", "run.json"):
        document, rows = lines_of(tmp_path / name)
        assert rows and "which line called" not in json.dumps(document)
