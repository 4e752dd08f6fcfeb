# SPDX-License-Identifier: Apache-2.0
"""Hard cases of spans and steps in traces, each with its row of the catalogue: without a duration, crossing, overlapping by
rounding, or there twice."""
import gzip
import json
import os
import subprocess
from random import Random

import pytest
from hard_tools import STEP, TESTS, fixture_trace, kernel, launch, span, step


def test_T02_a_kernel_before_its_launch(trace):
    trace.write([span("a", 0, 90), launch(50, 3), kernel("k", 20, 5, correlation=3)])
    assert [row["kernel"] for row in trace.table("kernels")] == ["k"]
    assert [(row["early_count"], row["delay_mean_ns"]) for row in trace.table("launches")] == [(1, None)]
    assert any("start before their launches" in text for text in trace.ledger())


def test_R01_copies_of_one_name(trace):
    """The order in a file decides neither which comes first nor where they go."""
    copies = [span("Copy", 10 * i, 5, category, 0, 7, device=0, stream=7, bytes=8, **kind) for i, (category, kind) in enumerate(
        (("gpu_memset", {}), ("gpu_memcpy", {"kind": "DeviceToDevice"}), ("gpu_memcpy", {"kind": "HostToDevice"}),
         ("gpu_memset", {})))]
    copies += [span("One", 100, 5, "gpu_memcpy", 0, 7, device=0, stream=7, kind="DeviceToHost")]
    tables = [trace.write(events).table("copies") for events in (copies, copies[::-1])]
    assert tables[0] == tables[1]
    assert [(row["copy"], row["direction"], row["calls"]) for row in tables[0]] == [
        ("Copy", "fill", 2), ("Copy", None, 2), ("One", "device to host", 1)]


def test_T06_a_kernel_that_covers_all_others(trace):
    events = [kernel("late", 0, 1600000)] + [kernel("k", 10 * i, 5) for i in range(100)]
    trace.write([span("a", 0, 1600000), *events])
    busy, = trace.table("device_busy")
    assert busy["busy_ns"] == busy["kernel_ns"] == busy["extent_ns"] == 1600000000 and busy["sum_ns"] == 1600500000
    assert {row["kernel"]: row["mean_ns"] for row in trace.table("kernels")} == {"late": 1600000000, "k": 5000}
    line, = [row for row in trace.table("ledger") if "their ends may be wrong" in row["sentence"]]
    assert line["where"] == "late" and line["count"] == 1
    trace.write([span("a", 0, 1600000), kernel("late", 0, 499)] + [kernel("k", 10 * i, 5) for i in range(40)])
    assert not [text for text in trace.ledger() if "their ends may be wrong" in text]


def test_T10_many_kernels_without_duration(trace):
    trace.write([span("a", 0, 10)] + [kernel("k", 5, 0) for _ in range(1000)])
    row, = trace.table("kernels")
    assert (row["calls"], row["total_ns"], row["mean_ns"], row["ratio"]) == (1000, 0, 0, None)


def test_T10_work_without_duration_is_the_first_and_the_last(trace):
    wait = [span("aten::item", 290, 120), launch(300, 1, "cudaMemcpyAsync"), launch(306, 2, "cudaStreamSynchronize")]
    wait[-1]["dur"] = 99
    copy = span("Memcpy DtoH", 310, 90, "gpu_memcpy", 0, 7, device=0, stream=7, correlation=1, bytes=8)
    trace.write([*wait, copy, launch(450, 3)] + [kernel("k", start, 0) for start in (100, 200, 700, 900)] + [kernel("k", 500, 100, correlation=3)])
    busy, = trace.table("device_busy")
    assert (busy["extent_ns"], busy["busy_ns"], busy["idle_ns"]) == (800000, 190000, 610000)
    assert sum(value for key, value in busy.items() if key.startswith("idle_")) == 2 * busy["idle_ns"]
    assert sorted(gap["gap_ns"] for gap in trace.table("device_gaps")) == [100000, 210000, 300000]
    assert [row["idle_after_ratio"] for row in trace.table("copy_waits")] == [100 / 800]


@pytest.mark.parametrize("digits", (3, 0))
def test_T05_steps_that_overlap_by_rounding(trace, digits):
    """Back to back, begin and duration rounded each by itself, to a nanosecond or a microsecond: all are complete, with their operators."""
    random, events, time = Random(5), [], 0
    for number in range(100):
        duration = 1000 + random.random()
        events += [step(number, round(time, digits), round(duration, digits)), span("aten::mm", round(time + 10, digits), 400)]
        time += duration
    trace.write(events)
    steps = trace.table("steps")
    assert len(steps) == 100 and all(row["is_complete"] for row in steps)
    mm, = [row for row in trace.table("ops") if row["name"] == "aten::mm"]
    assert mm["calls"] == 100
    late, = [row for row in trace.table("ledger") if "up to a microsecond" in row["sentence"] and row["where"] == "steps"]
    assert 0 < late["count"] < 100 and late["what"] == "other"
    trace.write([step(0, 0, 1002), step(1, 1000, 1000)])  # by more than that it is no rounding
    assert [row["is_complete"] for row in trace.table("steps")] == [False, True]


def test_an_interval_of_a_time_is_none_below_0(trace):
    trace.write([step(number, 100_000 * number, duration) for number, duration in enumerate((10, 10, 50_000))])
    row, = [row for row in trace.table("step_time") if row["process"] == "all"]
    assert row["ci95_low_ns"] == 0 < row["ci95_high_ns"] - row["mean_ns"] == row["ci95_half_ns"] > row["mean_ns"]


def test_T05_steps_of_two_threads_that_overlap_by_rounding(trace):
    trace.write([step(0, 0, 1001), step(1, 1000, 1000, tid=2), step(2, 2000, 1000)])
    assert [row["is_complete"] for row in trace.table("steps")] == [True] * 3


LEGACY = "data/traces/lightning/0_trace.json.gz"
CUPTI = "data/traces/hta/tests/data/cupti_profiler"
SPIN = "data/traces/hta/tests/data/critical_path/cuda_event_sync/event_sync_trace.json.gz"


def test_R04_marks_and_counters_that_are_in_the_file_twice(trace):
    """Two equal ones may be meant; where spans and all of them have twins, they are not."""
    spans = [span(f"op {i}", 10 * i, 5) for i in range(9)]
    marks = [{"ph": "i", "s": "t", "cat": "mark", "name": name, "pid": 1, "tid": 1, "ts": ts} for name, ts in (("a", 3), ("a", 3), ("b", 3), ("a", 50))]
    counts = [{"ph": "C", "name": "queue", "pid": 1, "tid": 1, "ts": ts, "args": {"depth": value}} for value, ts in ((1, 2), (2, 2), (1, 60))]
    once = [*spans, *marks, *counts]

    def told(events):
        trace.write(events)
        return trace.query("SELECT time_ns, name FROM marks ORDER BY 1, 2"), [(row["name"], row["count"], row["mean"]) for row in trace.table("counters")]

    assert [len(rows) for rows in told(once)] == [4, 1]
    assert told(once + once) == told(once)
    told(once + once)
    assert "events that are in the file twice were left out" in trace.ledger()
    assert len(told([*once, *once, {**marks[0], "name": "alone"}])[0]) == 9
    assert told([*once, *once, {**counts[0], "ts": 70}])[1][0][1] == 7
    assert len(told([*spans, *marks, *marks, *counts])[0]) == 8, "spans are there once: so are marks"


@pytest.mark.parametrize("path", [LEGACY, SPIN, *sorted(str(path.relative_to(TESTS)) for path in (TESTS / CUPTI).rglob("*.gz"))], ids=os.path.basename)
def test_R04_a_file_that_holds_all_its_events_twice(trace, path):
    """Also those that their writer did not number: where each has a twin, that is no chance. One that has none says that it may be."""
    document = json.loads(gzip.decompress((TESTS / path).read_bytes()))
    events = document if isinstance(document, list) else document["traceEvents"]
    sql = "SELECT kind, name, start_ns, dur_ns, count(*) FROM spans GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4"
    trace.write(events)
    once = trace.query(sql)
    trace.write(events + events)
    assert trace.query(sql) == once and "events that are in the file twice were left out" in trace.ledger()
    alone = {"ph": "X", "name": "alone", "cat": events[-1].get("cat", "cpu_op"), "pid": 1, "tid": 1, "ts": events[-1]["ts"], "dur": 1}
    trace.write([alone, *events, *events])
    assert len(trace.query("SELECT start_ns FROM spans")) > sum(int(row[4]) for row in once)


def calls_of(random, begin, end, depth, names):
    """Begins and ends of calls that nest, of whole microseconds, of which many are equal."""
    found = []
    for _ in range(random.randint(1, 3)):
        start = random.randint(begin, end)
        begin = random.randint(start, end)
        names.append(f"call {len(names)}")
        name = names[-1]
        found += [("B", name, start), *(calls_of(random, start, begin, depth - 1, names) if depth else []), ("E", name, begin)]
    return found


@pytest.mark.parametrize("seed", range(12))
def test_T08_begins_and_ends_that_have_names_come_in_any_order(trace, seed):
    """Also those without a length, and several at one time."""
    random = Random(seed)
    calls = calls_of(random, 0, 6, 2, [])
    begin, end = ({name: ts for phase, name, ts in calls if phase == wanted} for wanted in "BE")
    truth = sorted([name, str(1000 * (begin[name] - min(begin.values()))), str(1000 * (end[name] - begin[name]))] for name in begin)
    for shuffle in (list, lambda calls: random.sample(calls, len(calls))):
        trace.write([{"ph": phase, "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts} for phase, name, ts in shuffle(calls)])
        assert sorted(trace.query("SELECT name, start_ns, dur_ns FROM spans")) == truth


def test_T17_an_end_with_another_name(trace):
    """It ends what began last."""
    trace.write([{"ph": ph, "name": name, "pid": 1, "tid": 1, "ts": ts} for ph, name, ts in (("B", "a", 0), ("B", "b", 2), ("E", "a", 5), ("E", "b", 9))])
    assert {row["name"]: row["total_ns"] for row in trace.table("ops") if row["calls"]} == {"a": 9000, "b": 3000}


def test_T19_a_step_that_crosses_calls_of_python(trace):
    """Nothing is lost, and the steps are whole."""
    calls = [span(f"train.py({i}): f", 900 * i, 1100, "python_function", **{"Python id": i}) for i in range(4)]
    trace.write([step(i, STEP * i) for i in range(3)] + calls)
    assert [row["duration_ns"] for row in trace.table("steps")] == [STEP * 1000] * 3


@pytest.mark.parametrize("base", (0, 10**15, -10**12))
def test_the_place_where_operators_cross_is_exact(tmp_path, base):
    """As it stands in the file, also where no double holds it."""
    times = [f"{base + 200}.000", f"{base + 250}.272"] if base >= 0 else [f"{base - 250}.272", f"{base - 200}.000"]
    events = ",".join(f'{{"ph":"X","cat":"cpu_op","name":"{name}","pid":1,"tid":1,"ts":{ts},"dur":100}}' for name, ts in zip("ab", times))
    (tmp_path / "trace.json").write_text(f"[{events}]")
    done = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / "trace.json", "--table", "ledger", "--json"], capture_output=True, timeout=60, check=True)
    line, = [row for row in json.loads(done.stdout)["rows"] if "end later than the one in which they begin" in row["sentence"]]
    assert line["where"] == f"b in a, ts {times[1]}"


def test_operators_of_a_thread_that_cross_are_said(trace):
    """Each keeps its duration, neither is a child of the other; where two are open, time is of the one that began last. Up to a microsecond is rounding."""
    trace.write([step(1, 0), span("round", 10, 100), span("inner", 50, 61), span("a", 200, 100), span("b", 250, 100), span("c", 260, 10), span("d", 400, 50),
                 span("e", 430, 60)])
    line, = [row for row in trace.table("ledger") if "end later than the one in which they begin" in row["sentence"]]
    assert line["count"] == 2 and line["where"] == "b in a, ts 250.000"
    rows = {row["name"]: (row["total_ns"], row["self_ns"]) for row in trace.table("ops")}
    assert rows["a"] == (100_000, 50_000) and rows["b"] == (100_000, 90_000) and rows["e"] == (60_000, 60_000)
    trace.write([step(1, 0), kernel("k", 10, 100), kernel("l", 50, 100), span("a", 200, 100)])
    assert not [text for text in trace.ledger() if "in which they begin" in text]


@pytest.mark.parametrize("end", (200, 950), ids=("crosses", "lies in it"))
def test_a_wait_that_crosses_an_operator_is_known_to_a_step(trace, end):
    """It is on a further track of the thread, and what the thread does nevertheless: the device is idle from 300 to 900 us of a step."""
    trace.write([event for start in range(0, 8 * STEP, STEP) for event in (
        step(start // STEP, start), span("aten::mm", start + 100, end - 100), launch(start + 110, start + 1), kernel("gemm", start + 130, 170, correlation=start + 1),
        span("cudaStreamSynchronize", start + 190, 710, "cuda_runtime"))])
    parts = {row["part"]: row["mean_ns"] for row in trace.table("step_breakdown")}
    assert parts["idle: synchronization"] == 600_000 and parts["compute kernels"] == 170_000 and sum(parts.values()) == STEP * 1000
    assert trace.table("step_parts")[0]["sync_ns"] == 600_000
    ops = {row["name"]: row["step_self_ns"] // 8 for row in trace.table("ops")}
    assert ops["cudaStreamSynchronize"] == 710_000
    assert ops["aten::mm"] == (end - 100 - 5 - 710 if end > 900 else 190 - 100 - 5) * 1000
    assert sum(ops.values()) == STEP * 1000


def test_a_thread_is_in_one_span_at_a_time_whatever_crosses(trace):
    """Chains of spans that cross, on several tracks of the thread, with steps they begin before and end behind: self times sum to the time in any."""
    random = Random(7)
    for _ in range(20):
        spans = sorted({(random.randrange(0, 3 * STEP, 10), random.randrange(10, 400, 10)) for _ in range(60)})
        trace.write([step(i, STEP * i) for i in range(3)] + [span(f"op{i}", start, duration) for i, (start, duration) in enumerate(spans)])
        rows = trace.table("ops")
        in_any = max([3 * STEP] + [start + duration for start, duration in spans])
        assert sum(row["self_ns"] for row in rows) == sum(row["step_self_ns"] for row in rows) == 1000 * in_any
        assert abs(sum(row["step_self_ratio"] for row in rows) - 1) < 1e-9
        self_ns = [0] * len(spans)
        for time in range(0, in_any, 10):  # the last to begin; of those that begin at once the shortest
            is_open = [(start, -duration, i) for i, (start, duration) in enumerate(spans) if start <= time < start + duration]
            if is_open and max(is_open)[0] >= min(time // STEP, 2) * STEP:
                self_ns[max(is_open)[2]] += 10_000
        assert {row["name"]: row["self_ns"] for row in rows if row["kind"] == "op"} == {f"op{i}": ns for i, ns in enumerate(self_ns)}


def test_T20_what_lies_behind_the_last_step(trace):
    trace.write([step(1, 0), launch(10, 1), kernel("k", 20, 5, correlation=1), step(2, STEP, -1), kernel("k", 5 * STEP, 5)])
    assert [(row["step"], row["is_complete"]) for row in trace.table("steps")] == [(1, True), (2, False)]
    assert [row["mean_ns"] for row in trace.table("step_time")] == [STEP * 1000]


@pytest.mark.parametrize("more", [{}, {"ts": 2, "dur": 990}, {"ts": 3, "dur": STEP - 1}, {"ts": 2, "dur": 995, "tid": 2}, {"ts": 2, "dur": 990, "cat": "Operator"}])
def test_a_step_that_is_told_twice_is_one(trace, more):
    """By two threads, or as two kinds of events, some microseconds apart. What is told twice is still there, and it is said."""
    steps = [step(number, STEP * number) for number in range(3)]
    trace.write(steps + [{**event, **more, "ts": event["ts"] + more.get("ts", 0)} for event in steps] + [span("a", 10, 20)])
    assert [(row["step"], row["duration_ns"], row["is_complete"]) for row in trace.table("steps")] == [(number, STEP * 1000, True) for number in range(3)]
    line, = [row for row in trace.table("ledger") if row["where"] == "steps"]
    assert line["sentence"] == "steps that are there twice are one" and line["count"] == 3


def test_numbers_that_come_again_are_other_steps(trace):
    trace.write([step(number, STEP * number + begin) for begin in (0, 5 * STEP) for number in range(3)])
    assert [row["step"] for row in trace.table("steps") if row["is_complete"]] == [0, 1, 2, 0, 1, 2]
    line, = [row for row in trace.table("ledger") if row["where"] == "steps"]
    assert line["count"] == 3 and "have the number of an earlier one" in line["sentence"]
