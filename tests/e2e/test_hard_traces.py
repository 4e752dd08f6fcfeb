# SPDX-License-Identifier: Apache-2.0
"""Hard cases of traces that somebody had, each with its row of the catalogue: T times, I identity, N names. What concerns the text of the file
(J) and more of T, I, N and M is in tests/unit/test_kineto.c; size (S) and R are in test_kineto_corpus.py and metamorphic.py, D in test_rules.py
and test_diagnose.py."""
import csv
import io
import json
import os
import re
import subprocess

import pytest

STEP = 1000  # us


def span(name, start, duration, category="cpu_op", pid=1, tid=1, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": start, "dur": duration, "args": args}


def kernel(name, start, duration, stream=7, **args):
    return span(name, start, duration, "kernel", 0, stream, device=0, stream=stream, **args)


def launch(start, correlation, name="cudaLaunchKernel", category="cuda_runtime"):
    return span(name, start, 5, category, correlation=correlation)


def step(number, start, duration=STEP, **where):
    return span(f"ProfilerStep#{number}", start, duration, "user_annotation", **where)


class Trace:
    def __init__(self, folder):
        self.path = folder / "trace.json"

    def write(self, events, **keys):
        self.path.write_text(json.dumps({"traceEvents": events, **keys}))
        return self

    def run(self, *arguments):
        done = subprocess.run([os.environ["STEPSCOPE"], "report", self.path, *arguments], capture_output=True, timeout=60, check=False)
        assert done.returncode == 0 and b"defect" not in done.stderr, done.stderr
        return done.stdout.decode()

    def table(self, name):
        return json.loads(self.run("--table", name, "--json"))["rows"]

    def ledger(self):
        return [row["sentence"] for row in self.table("ledger")]


@pytest.fixture(name="trace")
def fixture_trace(tmp_path):
    return Trace(tmp_path)


# ---- times ----

def test_T02_a_kernel_before_its_launch(trace):
    trace.write([span("a", 0, 90), launch(50, 3), kernel("k", 20, 5, correlation=3)])
    assert [row["kernel"] for row in trace.table("kernels")] == ["k"]
    assert [(row["early_count"], row["delay_mean_ns"]) for row in trace.table("launches")] == [(1, None)]
    assert any("begin before their launches" in text for text in trace.ledger())


def test_T06_a_kernel_that_covers_all_others(trace):
    events = [kernel("late", 0, 1600000)] + [kernel("k", 10 * i, 5) for i in range(100)]
    trace.write([span("a", 0, 1600000), *events])
    busy, = trace.table("device_busy")
    assert busy["busy_ns"] == busy["kernel_ns"] == busy["extent_ns"] == 1600000000 and busy["sum_ns"] == 1600500000
    assert {row["kernel"]: row["mean_ns"] for row in trace.table("kernels")} == {"late": 1600000000, "k": 5000}


def test_T10_many_kernels_without_duration(trace):
    trace.write([span("a", 0, 10)] + [kernel("k", 5, 0) for _ in range(1000)])
    row, = trace.table("kernels")
    assert (row["calls"], row["total_ns"], row["mean_ns"], row["ratio"]) == (1000, 0, 0, None)


def test_T13_more_than_two_to_the_32_microseconds(trace):
    trace.write([step(1, 0, 5 * 10**9), step(2, 5 * 10**9, 26 * 86400 * 10**6)])
    assert [row["duration_ns"] for row in trace.table("steps")] == [5 * 10**12, 26 * 86400 * 10**9]


@pytest.mark.parametrize("base", [None, 0, 1712867402000000000, 3 * 2592000 * 10**9])
def test_T14_any_base_of_time(trace, base):
    trace.write([step(1, 5), span("a", 10, 20)], **({} if base is None else {"baseTimeNanoseconds": base}))
    assert [row["duration_ns"] for row in trace.table("steps")] == [STEP * 1000]
    assert [row["total_ns"] for row in trace.table("ops") if row["name"] == "a"] == [20000]


def test_T17_an_end_with_another_name(trace):
    """It ends what began last."""
    trace.write([{"ph": ph, "name": name, "pid": 1, "tid": 1, "ts": ts} for ph, name, ts in (("B", "a", 0), ("B", "b", 2), ("E", "a", 5), ("E", "b", 9))])
    assert {row["name"]: row["total_ns"] for row in trace.table("ops") if row["calls"]} == {"a": 9000, "b": 3000}


def test_T19_a_step_that_crosses_calls_of_python(trace):
    """Nothing is lost, and the steps are whole."""
    calls = [span(f"train.py({i}): f", 900 * i, 1100, "python_function", **{"Python id": i}) for i in range(4)]
    trace.write([step(i, STEP * i) for i in range(3)] + calls)
    assert [row["duration_ns"] for row in trace.table("steps")] == [STEP * 1000] * 3


def test_T20_what_lies_behind_the_last_step(trace):
    trace.write([step(1, 0), launch(10, 1), kernel("k", 20, 5, correlation=1), step(2, STEP, -1), kernel("k", 5 * STEP, 5)])
    assert [(row["step"], row["is_complete"]) for row in trace.table("steps")] == [(1, True), (2, False)]
    assert [row["mean_ns"] for row in trace.table("step_time")] == [STEP * 1000]


# ---- identity ----

def test_I04_one_pid_in_each_file(trace, tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(3):
        (folder / f"rank{rank}.json").write_text(json.dumps({"traceEvents": [step(1, 0), kernel("k", 5, 7 + rank)], "distributedInfo": {"rank": rank, "world_size": 3}}))
    trace.path = folder
    assert [(row["process"], row["step"]) for row in trace.table("steps")] == [(f"rank {rank}", 1) for rank in range(3)]
    assert [(row["device"], row["busy_ns"]) for row in trace.table("device_busy")] == [(f"rank {rank}, device 0", 7000 + 1000 * rank) for rank in range(3)]


def test_I05_a_correlation_that_comes_again(trace):
    """The call before the work launched it; 0 and what is missing belong to nobody, and it is said."""
    trace.write([span("first", 0, 20), launch(5, 9), kernel("k", 30, 4, correlation=9), span("second", 100, 20), launch(105, 9),
                 kernel("k", 130, 6, correlation=9), kernel("k", 200, 1, correlation=0), kernel("k", 210, 1), kernel("k", 220, 1, correlation=77)])
    rows = {row["name"]: row["self_device_ns"] for row in trace.table("ops")}
    assert rows["first"] == 4000 and rows["second"] == 6000 and rows["(launched by nothing in the trace)"] == 3000


def test_I06_ranks_that_are_missing_or_there_twice(trace, tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for name, info in (("rank0", {"rank": 0}), ("rank1", None), ("x", {"rank": 0}), ("y", None)):
        (folder / f"{name}.json").write_text(json.dumps({"traceEvents": [step(1, 0)], **({"distributedInfo": info} if info else {})}))
    trace.path = folder
    said = trace.ledger()
    assert any("taken from the file's name" in text for text in said) and any("of the same rank" in text for text in said)
    assert len(trace.table("steps")) == 4


def test_I07_annotations_of_a_device_are_no_kernels(trace):
    trace.write([span("a", 0, 50), kernel("k", 10, 5), span("forward", 0, 40, "gpu_user_annotation", 0, 7, device=0, stream=7),
                 span("forward", 0, 40, "gpu_user_annotation", 0, 8)])
    assert [row["kernel"] for row in trace.table("kernels")] == ["k"]


@pytest.mark.parametrize("name", ["cuLaunchKernelEx", "hipLaunchKernel", "cudaGraphLaunch", "cudaLaunchKernelExC"])
def test_I09_launches_by_any_name(trace, name):
    trace.write([span("a", 0, 20), launch(5, 9, name, "cuda_driver"), kernel("k", 30, 4, correlation=9)])
    assert {row["name"]: row["self_device_ns"] for row in trace.table("ops")}["a"] == 4000


# ---- names ----

HARD = ["a;b", "a b", "a\tb", "a\nb", 'a"b', "<b>&c", "%s", "a\\b", "a|b", "a,b", " a", "", "17", "__proto__", "=1+1", "\u202eabc", "a\u200bb", "e\u0301",
        "\u6f22\u5b57", "\U0001f525", "\x1b[31mred", "\x1b]52;c;x\x07"]


def test_N04_names_that_begin_alike_stay_apart(trace):
    names = ["k" * 63 + "a", "k" * 63 + "b", "void Kernel<int>(int)", "void Kernel2<int>(int)", "void Kernel<float>(int)"]
    trace.write([span("a", 0, 90)] + [kernel(name, 10 * i, 5) for i, name in enumerate(names)])
    assert sorted(row["kernel"] for row in trace.table("kernels")) == sorted(names)


def shown(names):
    """What viewers and terminals would show as they please, or obey, is blank where it may reach them."""
    return {re.sub("[\0-\x1f]", " ", name) for name in names}


def test_N05_any_name_survives_any_output(trace, tmp_path):
    trace.write([span(name, 10 * i, 5) for i, name in enumerate(HARD)])
    expected = sorted(name or "(no name)" for name in HARD)
    assert sorted(row["name"] for row in trace.table("ops") if row["calls"]) == expected
    rows = list(csv.DictReader(io.StringIO(trace.run("--table", "ops", "--csv"), newline=""), strict=True))
    plain = shown(expected)
    assert {row["name"] for row in rows if row["calls"]} == plain and len([row for row in rows if row["calls"]]) == len(HARD)
    for suffix, form, names in ((".json", shown, plain), (".ssr", set, set(expected))):
        out = Trace(tmp_path)
        out.path = tmp_path / f"out{suffix}"
        subprocess.run([os.environ["STEPSCOPE"], "convert", "--no-progress", trace.path, out.path], capture_output=True, timeout=60, check=True)
        assert form(row["name"] for row in out.table("ops") if row["calls"]) == names
    for suffix in (".folded", ".speedscope.json", ".pftrace"):
        subprocess.run([os.environ["STEPSCOPE"], "export", "--quiet", trace.path, "-o", tmp_path / f"out{suffix}"], timeout=60, check=True)
    lines = (tmp_path / "out.folded").read_text().splitlines()
    assert len(lines) <= len(HARD) and all(re.fullmatch(r"[^\0-\x20]* \d+", line) for line in lines)
    frames = json.loads((tmp_path / "out.speedscope.json").read_text())["shared"]["frames"]
    assert shown(expected) <= shown(frame["name"] for frame in frames)


def test_N06_nothing_reaches_the_terminal(trace):
    """No escape sequence, no text that runs backwards; columns stay in their places."""
    trace.write([span(name, 10 * i, 5) for i, name in enumerate(HARD)])
    text = trace.run("--table", "ops")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text), text
