# SPDX-License-Identifier: Apache-2.0
"""Hard cases of traces that somebody had, each with its row of the catalogue: T times, I identity, N names. What concerns the text of the file
(J) and more of T, I, N and M is in tests/unit/importers/test_kineto_*.c; where the others are says ELSEWHERE."""
import csv
import gzip
import io
import json
import lzma
import os
import re
import resource
import subprocess
import tarfile
from pathlib import Path
from random import Random

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


TESTS = Path(__file__).resolve().parent.parent

# Where rows of the catalogue are shown that are not in this file, nor in test_kineto_*.c by their names: files, and tests of them.
ELSEWHERE = {
    "T12 T10 T13 clocks": "unit/output/test_validate.c",
    "I08 no steps are marked": "e2e/test_kineto_corpus.py: test_steps_that_are_not_marked",
    "I11 50,000 threads": "e2e/test_kineto_corpus.py: test_50000_threads; e2e/test_big_traces.py: test_fifty_thousand_threads",
    "J17 a value of 300 MB": "e2e/test_kineto_corpus.py: test_a_value_of_300_mb; e2e/test_big_traces.py: test_a_text_of_300_megabytes",
    "N01 long names": "e2e/test_kineto_corpus.py: test_a_name_of_a_megabyte; e2e/test_big_traces.py: test_names_of_kernels_of_a_mebibyte",
    "N02 mangled names": "unit/base/test_demangle.c: test_the_name_of_a_kernel_made_of_templates",
    "N03 hostile mangled names": "unit/base/test_demangle.c: test_hostile_names",
    "N09 secrets": "e2e/test_run_directory.py: test_N09_nothing_that_we_write_holds_a_secret test_secrets_are_not_written_down "
                   "test_secret_variables_are_not_written_down",
    "S01 gigabytes": "e2e/test_big_traces.py: test_little_memory_changes_no_answer test_the_kernel_holds_it_to_its_memory; ../bench/import_big",
    "S02 long lines and files": "e2e/test_big_traces.py: test_a_text_of_300_megabytes; ../bench/import_big",
    "S04 what viewers open": "unit/output/test_export_chrome.c: S04_more_than_viewers_open_is_said limit_of_bytes_leaves_out_whole_steps_from_the_end",
    "S07 disks": "e2e/test_run_failures.py: test_S07_directories_of_any_name test_S07_a_folder_for_temporary_files_where_nothing_runs "
                 "test_read_only_directory test_full_disk_from_the_start test_disk_that_fills_up test_directory_removed_meanwhile; "
                 "recorder/test_places.c",
    "S08 thousands of sessions": "recorder/test_startstop.c: ten_thousand_cycles_hold_nothing",
    "S09 64 threads": "recorder/test_threads.c: sixty_four_threads_that_never_pause_are_counted; recorder/test_budget.c: "
                      "training_threads_do_not_allocate_lock_or_fault",
    "M01 odd memory events": "e2e/test_snapshot.py: test_m01_double_frees_reuse_and_odd_sizes",
    "M02 pickles": "e2e/test_snapshot.py: test_m02_every_protocol_gives_the_same test_m02_nothing_hostile_is_run "
                   "test_m02_a_cut_file_keeps_what_was_complete; unit/base/test_pickle_read.c",
    "M03 a ring that wrapped": "e2e/test_snapshot.py: test_m03_levels_begin_with_what_the_ring_has_lost",
    "M04 segments": "e2e/test_snapshot.py: test_m04_segments_add_up",
    "R01 R02 R03 R04 R05 R06 R07 R08 R09 R10 of any trace": "e2e/test_metamorphic.py: test_whole_traces test_changed_traces",
    "R06 busy at most wall": "e2e/test_hard_traces.py: test_T06_a_kernel_that_covers_all_others",
    "R11 R12 our own format": "e2e/test_convert.py; fuzz/meson.build",
    "D01 a rank that computes longer": "torch/test_collectives.py: test_collectives_and_the_slow_rank; e2e/test_diagnose.py: test_a_fault_is_found_by_its_rule",
    "D02 D03 D10 loaders, checkpoints": "e2e/test_diagnose.py: test_a_fault_is_found_by_its_rule",
    "D04 healthy": "e2e/test_rules.py: test_D04_nothing_is_invented_of_a_healthy_run",
    "D05 values, copies, kernels": "e2e/test_rules.py: test_D05_values_copies_and_small_kernels_are_each_told test_D05_pinned_buffers_that_are_made_in_steps",
    "D06 busy and empty": "e2e/test_rules.py: test_D06_a_device_that_is_busy_and_mostly_empty test_D06_nvidia_smi_calls_it_busy",
    "D07 memory": "e2e/test_rules.py: test_D07_no_memory_problem_without_evidence; e2e/test_diagnose.py: test_a_fault_is_found_by_its_rule",
    "D08 a killed rank": "e2e/test_diagnose.py: test_D08_a_killed_rank_is_named_with_its_last_step_and_operation",
    "D09 two faults": "e2e/test_diagnose.py: test_D09_two_faults_are_both_found_the_larger_first",
    "D11 half the batch": "e2e/test_compare.py: test_d11_half_the_batch_is_compared_by_the_token",
}
ROWS = {"J": 24, "T": 20, "I": 11, "N": 9, "S": 9, "M": 5, "R": 12, "D": 11}


def test_every_row_has_its_test():
    """By its name in this file or in test_kineto_*.c, or in the table above, whose tests exist."""
    shown = " ".join(ELSEWHERE) + "".join(file.read_text() for file in (TESTS / "unit/importers").glob("test_kineto_*.c")) + "".join(name[5:] + " " for name in globals() if name.startswith("test_"))
    missing = [row for row in (f"{letter}{i:02}" for letter, count in ROWS.items() for i in range(1, count + 1))
               if not re.search(rf"(?<![A-Za-z0-9]){row}(?![0-9])", shown)]
    assert not missing
    for places in ELSEWHERE.values():
        for place in places.split("; "):
            file, _, names = place.partition(": ")
            text = (TESTS / file).read_text()
            for name in names.split():
                assert re.search(rf"(?:^def {name}\(|^static void {name}\(void)", text, re.M), (file, name)


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

    def query(self, sql):
        done = subprocess.run([os.environ["STEPSCOPE"], "query", self.path, "--csv", sql], capture_output=True, timeout=60, check=True)
        return list(csv.reader(io.StringIO(done.stdout.decode())))[1:]

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


def test_T12_a_clock_that_steps_back(trace):
    """By 500 us within step 1: what follows is in the order of its times, and no duration is below 0."""
    events = []
    for number in range(4):
        back = 500 if number >= 2 else 0
        events += [step(number, number * STEP - back), span("aten::mm", number * STEP + 10 - back, 400)]
    trace.write(events)
    assert [row["duration_ns"] for row in trace.table("steps")] == [1_000_000, 500_000, 1_000_000, 1_000_000]
    assert [row["is_complete"] for row in trace.table("steps")] == [True, False, True, True]
    row, = [row for row in trace.table("ops") if row["name"] == "aten::mm"]
    assert (row["calls"], row["max_ns"]) == (3, 400_000)  # that of the incomplete step does not count
    assert any("steps in which the next one begins end there" in sentence for sentence in trace.ledger())


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


def clock_sentences(trace):
    return [text for text in trace.ledger() if "before its launch" in text or "before their launches" in text]


def an_hour(drift, waits, seed=16):
    """Of a step a minute: a launch that its kernel follows within 10 to 30 us, and, with `waits`, a wait for the device."""
    random, events, minute = Random(seed), [], 60_000_000
    for number in range(60):
        start = number * minute
        begin = start + 110 + random.uniform(10, 30)
        events += [step(number, start, minute - 10), launch(start + 110, number + 1),
                   kernel("gemm", round(begin * (1 - drift), 3), 1000, correlation=number + 1)]
        if waits:
            wait = launch(start + 200, 1000 + number, "cudaDeviceSynchronize")
            events.append({**wait, "dur": round(begin + 1000 + 5 - (start + 200), 3)})
    return events


@pytest.mark.parametrize("waits", (False, True))
def test_T16_a_device_clock_that_drifts_for_an_hour(trace, waits):
    """50 ppm: 177 ms at the end. It is put right, and what that was is said."""
    trace.write(an_hour(50e-6, waits))
    sentence, = clock_sentences(trace)
    found = re.fullmatch(r"work seems to begin before its launch, as the clocks drift by ([\d.]+) ppm: .* and 17\d\.\d ms in the end; (.*)", sentence)
    assert abs(float(found[1]) - 50) < 0.01 and ("at most" in found[2]) == waits
    row, = [row for row in trace.table("launches") if row["call"] == "cudaLaunchKernel"]
    assert (row["work_count"], row["early_count"]) == (60, 0) and row["delay_max_ns"] < 30_000
    parts = {row["part"]: row["total_ns"] for row in trace.table("step_breakdown")}
    assert min(parts.values()) >= 0 and abs(parts["compute kernels"] - 60_000_000) < 10_000


def test_T16_clocks_that_agree_are_left_alone(trace):
    trace.write(an_hour(0, True))
    starts = trace.table("kernels")
    assert not clock_sentences(trace) and starts[0]["total_ns"] == 60_000_000
    row, = [row for row in trace.table("launches") if row["call"] == "cudaLaunchKernel"]
    assert 10_000 <= row["delay_mean_ns"] <= 30_000


def test_T16_waits_that_end_too_early_forbid_it(trace):
    """Work that is early by 3 ms, but that is waited for where it stands: no clock is wrong by so much, so nothing is moved."""
    events = an_hour(0, True)
    early = [{**event, "ts": event["ts"] - 3000} if event.get("cat") == "kernel" and event["ts"] % 120_000_000 < 60_000_000 else event
             for event in events]
    trace.write(early)
    sentence, = clock_sentences(trace)
    assert "the clocks of device and host disagree" in sentence
    assert sum(row["early_count"] for row in trace.table("launches")) == 30


def real_trace(change):
    """4,350 kernels and 1,600 copies of one device, with the times of the device changed."""
    whole = json.loads(gzip.decompress((TESTS / "data/hta_ns_resolution/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz").read_bytes()))
    for event in whole["traceEvents"]:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"):
            event["ts"] = round(float(event["ts"]) + change, 3)
    return whole["traceEvents"]


def test_T16_a_device_clock_that_is_3_ms_behind(trace):
    trace.write(real_trace(0))
    before = {row["call"]: row for row in trace.table("launches")}
    assert not clock_sentences(trace)
    trace.write(real_trace(-3000))
    after = {row["call"]: row for row in trace.table("launches")}
    sentence, = clock_sentences(trace)
    assert sentence.startswith("work seems to begin before its launch: the device's times are put 2.994 ms later, the least")
    for call, row in after.items():
        assert row["early_count"] == 0 and -10_000 < row["delay_p50_ns"] - before[call]["delay_p50_ns"] <= 0


def test_T13_more_than_two_to_the_32_microseconds(trace):
    trace.write([step(1, 0, 5 * 10**9), step(2, 5 * 10**9, 26 * 86400 * 10**6)])
    assert [row["duration_ns"] for row in trace.table("steps")] == [5 * 10**12, 26 * 86400 * 10**9]


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


def test_I03_what_a_host_did_on_the_row_of_a_device(trace):
    """A process 0, or a thread of which Kineto knows nothing (0, 0), and device 0: both keep their times, and neither is in the other."""
    python = span("train.py(5): f", 1, 8, "python_function", 0, 0)
    trace.write([span("a", 0, 10, pid=0, tid=0), python, kernel("k", 2, 3, stream=0), step(1, 0), launch(1, 7),
                 {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}}])
    assert {row["name"]: row["self_ns"] for row in trace.table("ops") if row["name"] in ("a", "train.py(5): f")} == {"a": 2000, "train.py(5): f": 8000}
    assert [(row["kernel"], row["total_ns"]) for row in trace.table("kernels")] == [("k", 3000)]
    assert sorted((row["kind"], row["spans"]) for row in trace.table("threads")) == [("device", 1), ("thread", 2), ("thread", 2)]
    assert len(trace.table("processes")) == 1
    trace.write([python, step(1, 0), {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}}])
    assert sorted((row["kind"], row["spans"]) for row in trace.table("threads")) == [("thread", 1), ("thread", 1)]
    trace.write([span("nn.Module: L_0", 0, 10, "python_function", 0, 0), span("a", 1, 8, pid=0, tid=0), kernel("k", 2, 3, stream=0)])
    assert sorted((row["kind"], row["spans"]) for row in trace.table("threads")) == [("device", 1), ("thread", 2)]


@pytest.mark.parametrize("base", [None, 0, 1712867402000000000, 3 * 2592000 * 10**9])
def test_T14_any_base_of_time(trace, base):
    trace.write([step(1, 5), span("a", 10, 20)], **({} if base is None else {"baseTimeNanoseconds": base}))
    assert [row["duration_ns"] for row in trace.table("steps")] == [STEP * 1000]
    assert [row["total_ns"] for row in trace.table("ops") if row["name"] == "a"] == [20000]


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


def without_kineto(nodes):
    """Four updates by hand, as a PyTorch without Kineto writes them: whole microseconds, no categories, no sequence numbers."""
    def row(start, duration, name):
        return {"name": name, "ph": "X", "ts": start, "dur": duration, "tid": 1, "pid": "CPU functions", "args": {}}
    engine, accumulate = "autograd::engine::evaluate_function: ", "torch::autograd::AccumulateGrad"
    for begin in range(1000, 5000, 1000):
        yield from (row(begin, 50, "aten::linear"), row(begin + 1, 5, "aten::t"), row(begin + 10, 30, "aten::addmm"), row(begin + 60, 20, "aten::mean"),
                    row(begin + 90, 2, "aten::ones_like"))
        for i, node in enumerate(nodes):
            yield from (row(begin + 100 + 30 * i, 20, engine + node), row(begin + 101 + 30 * i, 15, node),
                        row(begin + 120 + 30 * i, 0, "aten::as_strided"))  # the node's own: it ends when that does
        yield from (row(begin + 190, 10, engine + accumulate), row(begin + 191, 8, accumulate), row(begin + 400, 10, "aten::mul"), row(begin + 420, 10, "aten::sub_"))


def test_forwards_are_told_by_the_names_of_nodes_where_there_are_no_sequence_numbers(trace):
    trace.write(list(without_kineto(["MeanBackward0", "AddmmBackward0", "TBackward0"])))
    assert [row["duration_ns"] for row in trace.table("steps")] == [430_000, *[1_000_000] * 3]
    assert trace.query("SELECT name, count(*), sum(dur_ns) FROM spans WHERE kind = 'phase' GROUP BY name ORDER BY name") == [
        ["backward", "4", "440000"], ["forward", "4", "320000"], ["optimizer", "4", "40000"]]
    said, = [text for text in trace.ledger() if "sequence numbers" in text]
    assert "12 of 12 have the name of an operator before them" in said and "uncertain" not in said


def test_a_node_rounded_behind_the_engines_span_around_it_is_that_one(trace):
    """A node of less than a microsecond begins where the engine's span ends; taken for another node it would take the name of the first layer's
    operator, and what it calls would be taken for a forward in the middle of the backward."""
    def row(start, duration, name):
        return {"name": name, "ph": "X", "ts": start, "dur": duration, "tid": 1, "pid": "CPU functions", "args": {}}
    rows, engine, accumulate = [], "autograd::engine::evaluate_function: ", "torch::autograd::AccumulateGrad"
    for begin in range(1000, 4000, 1000):
        for i, name in enumerate(["t", "addmm", "relu", "t", "addmm", "mean", "ones_like"]):
            rows.append(row(begin + 10 * i, 5, f"aten::{name}"))
        for i, node in enumerate(["MeanBackward0", "AddmmBackward0", "TBackward0", accumulate, "ReluBackward0", "AddmmBackward0", "TBackward0", accumulate]):
            start = begin + 100 + 10 * i
            rows += [row(start, 1, engine + node), row(start + 1, 0, node), row(start + 1, 0, "aten::t")]
    trace.write(rows)
    assert trace.query("SELECT kind, name, count(*) FROM spans WHERE kind IN ('step', 'phase') GROUP BY kind, name ORDER BY name") == [
        ["phase", "backward", "3"], ["phase", "forward", "3"], ["step", "step", "3"]]
    said, = [text for text in trace.ledger() if "sequence numbers" in text]
    assert "18 of 18 have the name of an operator before them" in said


def test_names_of_nodes_that_no_operator_has_leave_phases_uncertain(trace):
    trace.write(list(without_kineto(["MineBackward", "YoursBackward", "TBackward0"])))
    said, = [text for text in trace.ledger() if "sequence numbers" in text]
    assert "4 of 12" in said and "less than half, so steps and phases are uncertain" in said


def merged(is_alike, devices):
    """Three ranks in one file, each with a process and a device of its own: the kernels of rank 2 take twice as long. is_alike: launches of each have
    the same numbers."""
    for rank in range(3):
        pid, device = 1000 + rank, rank % devices
        for number in range(4):
            begin, correlation = STEP * number, 1 + number + (0 if is_alike else 10 * rank)
            yield step(number, begin, pid=pid)
            yield span("aten::mm", begin + 10, 50, pid=pid)
            yield span("cudaLaunchKernel", begin + 20, 5, "cuda_runtime", pid=pid, correlation=correlation)
            yield span("gemm", begin + 30, 200 * (1 + rank // 2), "kernel", device, 7, device=device, stream=7, correlation=correlation)


@pytest.mark.parametrize("is_alike", [False, True])
def test_I04_devices_of_several_processes_in_one_file_are_theirs(trace, is_alike):
    trace.write(list(merged(is_alike, 3)))
    found = trace.query("SELECT process, sum(dur_ns) FROM spans WHERE kind = 'kernel' GROUP BY process ORDER BY process")
    assert found == [["pid 1000", "800000"], ["pid 1001", "800000"], ["pid 1002", "1600000"]]
    assert any("in the order of their numbers" in text for text in trace.ledger()) == is_alike


def test_I04_devices_with_the_label_of_their_process(trace):
    """As SGLang makes one file of all ranks': every process and device 0 is called after its rank."""
    rows = list(merged(True, 1))
    for i, row in enumerate(rows):
        row["pid"] = f"[TP{2 - i // 16:02}] {row['pid']}"
    trace.write(rows)
    found = trace.query("SELECT process, sum(dur_ns) FROM spans WHERE kind = 'kernel' GROUP BY process ORDER BY process")
    assert found == [["[TP00] 1002", "1600000"], ["[TP01] 1001", "800000"], ["[TP02] 1000", "800000"]]
    assert not any("number their launches alike" in text for text in trace.ledger())


def test_I04_a_device_whose_process_nothing_tells(trace):
    trace.write(list(merged(True, 1)))
    assert [text for text in trace.ledger() if "all of it was taken for that of one process" in text]


GRADIENTS = 3


def by_hand(update, backwards=1):
    """Four steps of a loop without an optimizer, as Kineto writes them: batches, each with a forward, of which one operator is in place, and a backward;
    then the update: names, when they begin, and their sizes. Gradients of a second backward are added to those that are there."""
    for number in range(4 * backwards):
        begin, first = STEP * number, 10 * number
        yield span("aten::randn", begin, 20, **{"Sequence number": first, "Fwd thread id": 0})
        for i, name in enumerate(["linear", "relu_", "mse_loss"]):
            yield span(f"aten::{name}", begin + 50 + 50 * i, 40, **{"Sequence number": first + i, "Fwd thread id": 0})
        yield span("aten::ones_like", begin + 200, 5)
        for i in range(3):
            yield span("autograd::engine::evaluate_function: XBackward0", begin + 210 + 40 * i, 30, **{"Sequence number": first + 2 - i, "Fwd thread id": 1})
        for i in range(GRADIENTS):
            yield span("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", begin + 330 + 30 * i, 28)
            yield span("torch::autograd::AccumulateGrad", begin + 332 + 30 * i, 24)
            yield span("aten::add_" if number % backwards else "aten::detach", begin + 334 + 30 * i, 20)
        if number % backwards == backwards - 1:
            for name, start, dims in update:
                yield span(f"aten::{name}", begin + start, 10, **{"Input Dims": dims} if dims else {})


EACH = [(name, start + 40 * i, None) for i in range(GRADIENTS) for name, start in (("mul", 500), ("sub_", 515), ("zero_", 530))]
LISTS = [("_foreach_mul", 500, None), ("_foreach_sub_", 515, [[[4], [], [2, 2]], [[4], [], [2, 2]], []]), ("_foreach_zero_", 530, [[[4], [], [2, 2]]])]


def second_step(trace):
    """Of the second step, from its begin on, in microseconds."""
    rows = trace.query("SELECT name, p.start_ns - s.start_ns, p.dur_ns, s.dur_ns FROM spans p JOIN (SELECT start_ns, dur_ns FROM spans "
                       "WHERE kind = 'step' ORDER BY start_ns LIMIT 1 OFFSET 1) s ON p.start_ns >= s.start_ns AND p.end_ns <= s.start_ns + s.dur_ns "
                       "WHERE p.kind = 'phase' ORDER BY p.start_ns")
    return [(name, *(int(value) // 1000 for value in values)) for name, *values in rows]


@pytest.mark.parametrize("update, begin, length", [(EACH, 515, 90), (LISTS, 515, 10), ([(*LISTS[1][:2], None)], 515, 10)])
def test_an_update_by_hand_is_the_phase_optimizer_and_ends_the_step(trace, update, begin, length):
    """One operator for each parameter, or one for all; what zeroes gradients behind it is no part of it. A list of unknown length may be all."""
    trace.write(list(by_hand(update)))
    start, end = begin + length, STEP  # of the step before, on the clock of the second one
    assert second_step(trace) == [("forward", STEP + 50 - start, 140, end), ("backward", STEP + 200 - start, 218, end), ("optimizer", STEP + begin - start, length, end)]
    assert len(trace.table("steps")) == 4


def test_an_evaluation_behind_an_update_by_hand_is_no_part_of_it(trace):
    """It writes in place, too, without a graph."""
    trace.write(list(by_hand([*EACH, ("conv2d", 700, None), ("relu_", 720, None), ("linear", 740, None), ("add_", 760, None)])))
    assert second_step(trace) == [("forward", 445, 140, STEP), ("backward", 595, 218, STEP), ("optimizer", 910, 90, STEP)]


def test_gradients_that_add_up_until_an_update_by_hand_are_one_step(trace):
    trace.write(list(by_hand(EACH, backwards=2)))
    assert [row["duration_ns"] for row in trace.table("steps")] == [(STEP + 605 - 50) * 1000, *[2 * STEP * 1000] * 3]
    assert [name for name, *_ in second_step(trace)] == ["forward", "backward", "forward", "backward", "optimizer"]


@pytest.mark.parametrize("update", [EACH[:6], [("_foreach_sub_", 515, [[[4], []], [[4], []], []])]])
def test_writes_to_fewer_tensors_than_have_gradients_are_no_update(trace, update):
    trace.write(list(by_hand(update)))
    assert second_step(trace) == [("forward", 632, 140, STEP), ("backward", 782, 218, STEP)]


def test_marked_steps_have_updates_by_hand(trace):
    trace.write([*by_hand(EACH), *(step(number, STEP * number) for number in range(4))])
    assert second_step(trace) == [("forward", 50, 140, STEP), ("backward", 200, 218, STEP), ("optimizer", 515, 90, STEP)]


def test_where_an_optimizer_is_called_nothing_else_is_the_update(trace):
    """Weights of an average, say, which are as many; nor is the second backward, whose call is missing, a step, because all its gradients are new."""
    calls = [span("Optimizer.step#SGD.step", STEP * number + 700, 50, "user_annotation") for number in (0, 2, 3)]
    trace.write([*by_hand(EACH), *calls])
    assert second_step(trace) == [(name, start + begin, length, 2 * STEP) for start in (0, STEP) for name, begin, length in
                                  (("forward", 300, 140), ("backward", 450, 218), ("optimizer", 950, 50)) if start or name != "optimizer"]


def compiled():
    """Three steps with torch.compile: the code has no number, what makes the nodes in it has."""
    regions = 2
    for number in range(3):
        begin, first = STEP * number, 10 * number
        yield step(number, begin)
        for i in range(regions):
            yield span(f"Torch-Compiled Region: {i}/0", begin + 50 + 150 * i, 140)
            yield span("CompiledFunction", begin + 60 + 150 * i, 120, **{"Sequence number": first + i, "Fwd thread id": 0})
            yield span("aten::addmm", begin + 70 + 150 * i, 100)
        yield span("aten::mse_loss", begin + 380, 20, **{"Sequence number": first + regions, "Fwd thread id": 0})
        for i in reversed(range(regions + 1)):
            node = {"Sequence number": first + i, "Fwd thread id": 1}
            yield span("autograd::engine::evaluate_function: XBackward0", begin + 550 - 50 * i, 40, **node)
            yield span("XBackward0", begin + 551 - 50 * i, 30, **node)
        yield span("Optimizer.step#SGD.step", begin + 600, 40, "user_annotation")


def test_compiled_code_is_forward_by_what_makes_nodes_in_it(trace):
    trace.write(list(compiled()))
    assert forwards(trace) == [(STEP * number + 50, 350) for number in range(3)]


def with_metrics(engine):
    """Four steps, as Kineto writes them: forward, backward on the engine's thread, optimizer, and then something of the outputs, with a graph. A number
    is that of the node that comes next. engine: what the nodes say of themselves."""
    for number in range(4):
        begin, first = STEP * number, 10 * number
        yield step(number, begin)
        for i, name in enumerate(["linear", "relu", "argmax", "mse_loss"]): # the third one makes no node that is used
            yield span(f"aten::{name}", begin + 100 * i, 80, **{"Sequence number": first + i, "Fwd thread id": 0})
        for i in (3, 1, 0):
            yield span("autograd::engine::evaluate_function: XBackward0", begin + 550 - 50 * i, 40, tid=2, **engine(first + i))
            yield span("XBackward0", begin + 551 - 50 * i, 30, tid=2, **engine(first + i))
        yield span("Optimizer.step#SGD.step", begin + 600, 40, "user_annotation")
        for i, name in enumerate(["softmax", "log", "item"]):
            yield span(f"aten::{name}", begin + 650 + 50 * i, 40, **{"Sequence number": first + 4 + i, "Fwd thread id": 0})


def forwards(trace):
    """When they begin and how long they are, in microseconds."""
    found = trace.query("SELECT start_ns / 1000, dur_ns / 1000 FROM spans WHERE kind = 'phase' AND name = 'forward' ORDER BY start_ns")
    return [tuple(map(int, row)) for row in found]


def test_what_is_computed_with_a_graph_that_no_backward_uses_is_no_forward(trace):
    """Metrics of outputs, behind the optimizer; what lies among the operators of a forward is a part of it."""
    trace.write(list(with_metrics(lambda number: {"Sequence number": number, "Fwd thread id": 1})))
    assert forwards(trace) == [(STEP * number, 380) for number in range(4)]


def test_where_nodes_do_not_say_their_numbers_all_that_makes_a_graph_is_forward(trace):
    trace.write(list(with_metrics(lambda number: {})))
    assert [start % STEP for start, _ in forwards(trace)] == [0, 650] * 4


def test_the_forward_before_the_end_of_a_file_that_is_cut_off_is_one(trace):
    """Its backward was in what is missing; in a file that is whole it has none."""
    events = list(with_metrics(lambda number: {"Sequence number": number, "Fwd thread id": 1}))
    events = [event for event in events if event["tid"] == 1 or event["ts"] < 3 * STEP]
    trace.write(events)
    assert [start for start, _ in forwards(trace)] == [STEP * number for number in range(3)]
    trace.path.write_text(trace.path.read_text().rstrip(" \n]}"))
    assert 3 * STEP in [start for start, _ in forwards(trace)]


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


# ---- identity ----

def test_I04_one_pid_in_each_file(trace, tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(3):
        (folder / f"rank{rank}.json").write_text(json.dumps({"traceEvents": [step(1, 0), kernel("k", 5, 7 + rank)], "distributedInfo": {"rank": rank, "world_size": 3}}))
    trace.path = folder
    assert [(row["process"], row["step"]) for row in trace.table("steps")] == [(f"rank {rank}", 1) for rank in range(3)]
    assert [(row["device"], row["busy_ns"]) for row in trace.table("device_busy")] == [(f"rank {rank}, device 0", 7000 + 1000 * rank) for rank in range(3)]


def test_I04_no_file_says_its_pid(trace, tmp_path):
    """None was started by another, also where their times, of a trace without a start of its own, do not overlap."""
    trace.path = tmp_path / "set"
    trace.path.mkdir()
    for number, start in enumerate((50 * STEP, 0)):
        events = [step(number, start, pid="CPU functions"), span("aten::mm", start + 10, 400, pid="CPU functions")]
        (trace.path / f"{number}.json").write_text(json.dumps(events))
    assert [row["steps"] for row in trace.table("ranks")] == [1, 1]


def test_I05_a_correlation_that_comes_again(trace):
    """The call before the work launched it; 0 and what is missing belong to nobody, and it is said."""
    trace.write([span("first", 0, 20), launch(5, 9), kernel("k", 30, 4, correlation=9), span("second", 100, 20), launch(105, 9),
                 kernel("k", 130, 6, correlation=9), kernel("k", 200, 1, correlation=0), kernel("k", 210, 1), kernel("k", 220, 1, correlation=77)])
    rows = {row["name"]: row["self_device_ns"] for row in trace.table("ops")}
    assert rows["first"] == 4000 and rows["second"] == 6000 and rows["(launched by nothing in the trace)"] == 3000


@pytest.mark.parametrize("category", ["ac2g", "async_cpu_to_gpu", "async", "async_gpu"])
def test_I05_launches_that_only_flows_tell(trace, category):
    """As where it has correlations; numbers of flows may come again."""
    events, flows = [], []
    for i in range(8):
        correlation = {"correlation": i + 1}
        call, work = 1000 * i + 10, 1000 * i + 40
        events += [step(i, 1000 * i), span("aten::mm", 1000 * i + 5, 20), launch(call, i + 1), kernel("gemm", work, 400, **correlation)]
        flows += [{"ph": phase, "cat": category, "name": category, "id": i % 4, "bp": "e", **where}
                  for phase, where in (("s", {"pid": 1, "tid": 1, "ts": call}), ("f", {"pid": 0, "tid": 7, "ts": work}))]
    tables = [(trace.write(told).run("--table", "launches", "--json"), trace.run("--table", "ops", "--json"), trace.table("kernels"),
               trace.table("queue_depth"), trace.ledger()) for told in (events, without_correlations(events) + flows)]
    assert tables[0] == tables[1]
    assert [row["operation"] for row in tables[1][2]] == ["aten::mm"] and not tables[1][4]


def test_I05_flows_of_two_ranks_have_one_number(trace):
    events = []
    for rank, pid in enumerate((1, 2)):
        events += [{"ph": "M", "name": "process_name", "ts": 0, "pid": -pid, "args": {"name": "device", "stepscope owner": pid}},
                   span(f"op{rank}", 10 * rank, 50, pid=pid), span("cudaLaunchKernel", 10 * rank + 5, 2, "cuda_runtime", pid=pid),
                   span(f"work{rank}", 30 + 20 * rank, 10, "kernel", -pid, 7, device=0, stream=7),
                   {"ph": "s", "cat": "ac2g", "id": 1, "pid": pid, "tid": 1, "ts": 10 * rank + 5},
                   {"ph": "f", "cat": "ac2g", "id": 1, "pid": -pid, "tid": 7, "ts": 30 + 20 * rank}]
    assert {(row["kernel"], row["operation"]) for row in trace.write(events).table("kernels")} == {("work0", "op0"), ("work1", "op1")}


def without_correlations(events):
    return [{**event, "args": {key: value for key, value in event["args"].items() if key != "correlation"}} for event in events]


def test_I06_ranks_that_are_missing_or_there_twice(trace, tmp_path):
    folder = tmp_path / "ranks"
    folder.mkdir()
    for start, (name, info) in enumerate((("rank0", {"rank": 0}), ("rank1", None), ("x", {"rank": 0}), ("y", None))):
        (folder / f"{name}.json").write_text(json.dumps({"traceEvents": [step(1, start)], **({"distributedInfo": info} if info else {})}))
    trace.path = folder
    said = trace.ledger()
    assert any("taken from the file's name" in text for text in said) and any("of the same rank" in text for text in said)
    assert len(trace.table("steps")) == 4


def trainings(folder, late, *communication):
    """Two processes, of files that say no rank, the second one later and with steps of twice the length."""
    for pid, start, length in ((11, 0, STEP), (12, late, 2 * STEP)):
        events = []
        for number in range(4):
            begin = start + length * number
            events += [step(number, begin, length - 10, pid=pid), span("aten::mm", begin + 10, length - 30, pid=pid),
                       *({**row, "ts": row["ts"] + begin, "pid": row["pid"] and pid} for row in communication)]
        (folder / f"vm_{pid}.{pid}.pt.trace.json").write_text(json.dumps({"traceEvents": events, "baseTimeNanoseconds": 10**18}))


@pytest.mark.parametrize("late, options", [(20 * STEP, []), (STEP // 2, []), (7 * STEP // 2, ["--steps", "0-0"])])
def test_I06_trainings_one_after_the_other_are_no_ranks(trace, tmp_path, late, options):
    """Those whose steps overlap, whichever are looked at, are compared."""
    trainings(tmp_path, late, span("stepscope::communication", 10, 500, "user_annotation"))
    trace.path, is_apart = tmp_path, late > 4 * STEP
    ranks = json.loads(trace.run(*options, "--table", "ranks", "--json"))["rows"]
    assert [row["is_slowest"] for row in ranks] == ([None, None] if is_apart else [False, True]) and all(row["mean_ns"] for row in ranks)
    phases = " ".join(trace.run(*options, "--table", "rank_phases").split())
    assert ("no ranks of one job: they are not compared" in phases) == is_apart == ("pid 12" not in phases)
    assert ("not all at the same time, are one job here" in " ".join(trace.run(*options).split())) == is_apart
    done = subprocess.run([os.environ["STEPSCOPE"], "diagnose", tmp_path, *options, "--json"], capture_output=True, timeout=60, check=True)
    assert ("SS602" in [finding["rule"] for finding in json.loads(done.stdout)["findings"]]) != is_apart


@pytest.mark.parametrize("late", [20 * STEP, STEP // 2])
def test_I06_collectives_of_trainings_one_after_the_other_are_not_matched(trace, tmp_path, late):
    trainings(tmp_path, late, kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", 400, 300))
    trace.path = tmp_path
    assert len(trace.table("rank_collectives")) == (0 if late > 4 * STEP else 2)


def test_I07_annotations_of_a_device_are_no_kernels(trace):
    trace.write([span("a", 0, 50), kernel("k", 10, 5), span("forward", 0, 40, "gpu_user_annotation", 0, 7, device=0, stream=7),
                 span("forward", 0, 40, "gpu_user_annotation", 0, 8)])
    assert [row["kernel"] for row in trace.table("kernels")] == ["k"]


def test_I02_threads_and_processes_that_are_texts(trace):
    """As Kineto calls streams, and as PyTorch before it called everything; digits as a text are the number."""
    trace.write([span("a", 0, 10, pid="CPU functions", tid="stream 7"), span("b", 1, 5, pid="CPU functions", tid="stream 8"),
                 span("c", 0, 10, pid=1, tid="140589156634432"), span("d", 2, 3, pid=1, tid=140589156634432)])
    assert {row["name"]: row["self_ns"] for row in trace.table("ops") if row["calls"]} == {"a": 10000, "b": 5000, "c": 7000, "d": 3000}
    trace.write([span("a", 0, 10, pid="CPU functions", tid="stream 7"), step(1, 0, pid="Spans", tid="Traces")])
    assert [row["duration_ns"] for row in trace.table("steps")] == [STEP * 1000]


ODD_IDS = ["MainThread", "", "stream 7", "1.5", -1, -(2 ** 62), 0, 1e3, 1.5, 2 ** 63, 10 ** 30, True, None, {}]


@pytest.mark.parametrize("tid", ODD_IDS, ids=repr)
@pytest.mark.parametrize("pid", [10, "python", -1, 2 ** 63], ids=repr)
def test_I02_what_lies_on_a_row_says_that_it_is_a_thread(trace, pid, tid):
    """Whatever ids it has, every table is that of the same thread with the number 1, as are steps and launches."""
    where = {"pid": pid, "tid": tid}
    events = [step(1, 0, **where), span("a", 0, 100, **where), span("f", 10, 30, "python_function", **where),
              span("cudaLaunchKernel", 50, 5, "cuda_runtime", correlation=9, **where), kernel("k", 60, 20, correlation=9)]
    tables = "ops", "kernels", "steps", "launches"
    trace.write([dict(event, pid=1, tid=1) if event["cat"] != "kernel" else event for event in events])
    expected = [trace.table(name) for name in tables]
    trace.write(events)
    assert [[{**row, "process": None, "thread": None} for row in trace.table(name)] for name in tables] == [
        [{**row, "process": None, "thread": None} for row in rows] for rows in expected]
    assert trace.ledger() == []
    assert [row["kind"] for row in trace.table("threads")] == ["thread", "device"]


@pytest.mark.parametrize("category", ["user_annotation", "python_function", "cuda_runtime", "my own", None])
def test_I02_each_kind_of_work_of_a_host_makes_a_thread(trace, category):
    event = span("a", 0, 10, category, pid="python", tid="MainThread")
    trace.write([event if category else {key: value for key, value in event.items() if key != "cat"}])
    assert [(row["process"], row["thread"], row["kind"]) for row in trace.table("threads")] == [("python", "MainThread", "thread")]
    assert [row["name"] for row in trace.table("ops") if row["calls"]] == ["a"]


def test_I02_processes_that_are_texts_are_not_merged(trace):
    trace.write([span("a", 0, 10, pid=pid, tid="main") for pid in ("one", "two", 0)])
    assert sorted((row["process"], row["thread"]) for row in trace.table("threads")) == [
        ("(not known)", "main"), ("one", "main"), ("two", "main")]


def test_I02_what_is_of_no_thread_is_said(trace):
    """Rows that no table of operators counts: with their number and the first one's place. Kineto's own work is not among them."""
    legacy = {"ph": "X", "name": "k", "pid": "CUDA functions", "tid": 0, "ts": 5, "dur": 2}
    own = [span("PyTorch Profiler (0)", 0, 10, "Trace", pid=pid, tid="PyTorch Profiler") for pid in ("Spans", "Traces")]
    own.append(span("Buffer Flush", 0, 10, "overhead", pid=-1, tid=0))
    trace.write([span("a", 0, 10), *own])
    assert trace.ledger() == []
    asyncs = [{"ph": ph, "cat": "io", "name": "read", "pid": 1, "tid": 1, "id": 1, "ts": ts} for ph, ts in (("b", 1), ("e", 9))]
    trace.write([span("a", 0, 10), *own, *asyncs, legacy])
    [entry] = [row for row in trace.table("ledger") if "no table of operators" in row["sentence"]]
    assert (entry["count"], entry["what"]) == (2, "other")
    assert trace.path.read_bytes()[entry["first_offset"]:].startswith(b'{"ph": "b"')


@pytest.mark.parametrize("name", ["cuLaunchKernelEx", "hipLaunchKernel", "cudaGraphLaunch", "cudaLaunchKernelExC"])
def test_I09_launches_by_any_name(trace, name):
    trace.write([span("a", 0, 20), launch(5, 9, name, "cuda_driver"), kernel("k", 30, 4, correlation=9)])
    assert {row["name"]: row["self_device_ns"] for row in trace.table("ops")}["a"] == 4000


# ---- clocks of ranks ----

MINUTE = 60_000_000


def ranks_of(trace, folder, clocks, late, collective="ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", length=MINUTE, steps=60):
    """A file for each rank: in each step one exchange, to which each rank comes late (us) by its row and which takes 100 us from the last of
    them. clocks: by rank, from the true time in us to what its clock says."""
    folder.mkdir()
    for rank, clock in enumerate(clocks):
        events = []
        for number in range(steps):
            begin = number * length
            arrives, ends = begin + 1000 + late[rank], begin + 1100 + max(late)
            events.append(step(number, clock(begin), length - 10))
            events.append(launch(clock(arrives - 50), number + 1))
            events.append(kernel(collective, clock(arrives), clock(ends) - clock(arrives), stream=9, correlation=number + 1))
        (folder / f"rank{rank}.json").write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank, "world_size": len(clocks)}}))
    trace.path = folder
    return trace.table("rank_collectives")


def true(us):
    return us


def test_T15_clocks_that_are_far_apart(trace, tmp_path):
    """By 11.56 s, while one rank is 1.6 ms late; and nothing is compared that no collective ties together."""
    late = [0, 1600, 0]
    rows = ranks_of(trace, tmp_path / "tied", [true, true, lambda us: us + 11_560_000], late)
    assert [row["clock_ahead_ns"] for row in rows] == [0, 0, 11_560_000_000]
    assert [row["late_mean_ns"] for row in rows] == [1000 * us for us in late]
    assert [row["clock_residual_ns"] for row in rows] == [0, 0, 0] and [row["clock_change_ns"] for row in rows] == [0, 0, 0]
    assert [row["is_slowest"] for row in trace.table("ranks")] == [False, True, False]
    assert not ranks_of(trace, tmp_path / "loose", [true, lambda us: us + 11_560_000], late, collective="gemm")
    assert [row["late_ns"] for row in trace.table("ranks")] == [None, None]


CLOCKS = {
    "drifts by 50 ppm": (lambda us: us + us // 20000, 59 * 3_000_000),
    "is slow by 20 ppm": (lambda us: us - us // 50000, -59 * 1_200_000),
    "is set forward by 2 s": (lambda us: us + (2_000_000 if us > 20 * MINUTE else 0), 2_000_000_000),
    "is set back by 90 s": (lambda us: us - (90_000_000 if us > 45 * MINUTE else 0), -90_000_000_000),
    "is set late in the run": (lambda us: us + (700_000 if us > 54 * MINUTE else 0), 700_000_000),
}


@pytest.mark.parametrize("name", CLOCKS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_T16_a_rank_whose_clock(trace, tmp_path, name, ranks):
    """Piece by piece: who is late by how much is as with good clocks, and that the clock changed is said."""
    clock, change_ns = CLOCKS[name]
    late = [0, 400, 0][:ranks]
    rows = ranks_of(trace, tmp_path / "ranks", [true, *[clock] * (ranks == 2), true, clock][:ranks], late)
    assert [row["late_mean_ns"] for row in rows] == pytest.approx([1000 * us for us in late], abs=1000)
    assert max(row["clock_residual_ns"] for row in rows) <= 1000
    changes = [row["clock_change_ns"] for row in rows]
    assert changes[-1] - changes[0] == pytest.approx(change_ns, abs=4000)  # of two ranks nobody knows whose: half of it is each one's
    assert "piece by piece" in trace.run("--table", "rank_collectives")
    slowest = {row["process"]: row["is_slowest"] for row in trace.table("ranks")}
    assert slowest == {f"rank {rank}": rank == 1 for rank in range(ranks)}


def test_T16_noise_is_no_drift(trace, tmp_path):
    """Ends that lie some microseconds apart, to and fro, are put right by one number."""
    rows = ranks_of(trace, tmp_path / "ranks", [true, lambda us: us + 5000 + us // MINUTE * 7 % 13, true], [0, 0, 0])
    assert [row["clock_change_ns"] for row in rows] == [0, 0, 0]
    assert rows[1]["clock_ahead_ns"] == pytest.approx(5_006_000, abs=2000)


# ---- names ----

HARD = ["a;b", "a b", "a\tb", "a\nb", 'a"b', "<b>&c", "%s", "a\\b", "a|b", "a,b", " a", "", "17", "__proto__", "=1+1", "\u202eabc", "a\u200bb", "e\u0301",
        "\u6f22\u5b57", "\U0001f525", "\x1b[31mred", "\x1b]52;c;x\x07"]


def test_N02_mangled_names_are_for_programs(trace):
    """People see what C++ calls it, however long; what is told apart, and what programs read, is the name."""
    name = "_ZN7cutlass13device_kernelIN4cute5tupleIJ" + "".join(f"{'NS3_' if i else 'NS1_1C'}ILi{i}EEE" for i in range(100)) + "EEEEEvv"
    text = "void cutlass::device_kernel<cute::tuple<" + ", ".join(f"cute::C<{i}>" for i in range(100)) + " > >()"
    trace.write([kernel(name, 0, 5), kernel("_ZN2at3addEi", 10, 3), kernel("_ZN2at3addEi.cold", 20, 2)])
    assert len(name) > 1024
    assert [row["kernel"] for row in trace.table("kernels")] == [name, "_ZN2at3addEi", "_ZN2at3addEi.cold"]
    assert trace.query("SELECT kernel FROM kernels WHERE kernel GLOB '_ZN2*'") == [["_ZN2at3addEi"], ["_ZN2at3addEi.cold"]]
    shown = trace.run("--table", "kernels", "--columns", "kernel")
    assert "void cutlass::device_kernel<cute::tuple<cute::C<0>, " in shown and "at::add(int)\n" in shown and "_Z" not in shown
    record = trace.write([kernel(name, 0, 5)]).run("--table", "kernels")  # a single row is written in full
    assert text in " ".join(record.split())


ADD = "_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi"
PLAIN = "void at::native::vectorized_elementwise_kernel<4>(int)"


def memory_bound(duration, name=ADD):
    """Steps in which one elementwise kernel takes most of the time."""
    return [event for number in range(8) for event in (
        step(number, STEP * number * 2, STEP), launch(STEP * number * 2 + 10, number + 1), kernel(name, STEP * number * 2 + 20, duration, correlation=number + 1))]


def test_N02_sentences_are_for_people_in_every_form(trace, tmp_path):
    """Findings, the answer of a comparison and a comment have the name as it is written in sources; rows keep that of the trace."""
    def run(*arguments):
        return subprocess.run([os.environ["STEPSCOPE"], *arguments], capture_output=True, text=True, timeout=60, check=True,
                              env={**os.environ, "COLUMNS": "1000"}).stdout

    trace.write(memory_bound(700))
    for form in ((), ("--json",), ("--sarif",)):
        text = run("diagnose", trace.path, *form)
        assert PLAIN in " ".join(text.split()) and "_ZN2" not in text, form
    fingers = [result["partialFingerprints"] for result in json.loads(text)["runs"][0]["results"]]
    assert {"stepscope/v1": f"SS304:{PLAIN}"} in fingers
    other = Trace(tmp_path / "other")
    other.path.parent.mkdir()
    other.write(memory_bound(900, ADD.replace("ILi4E", "ILi8E")))
    compare = ("compare", trace.path, other.path, "--fail-on", "never")
    text = run(*compare, "--markdown", tmp_path / "comment.md")
    assert "renamed: void at::native::" in " ".join(run(*compare, "--table", "contributions").split()) and "_ZN2" not in text
    comment = (tmp_path / "comment.md").read_text()
    assert "_ZN2" not in comment
    rows = json.loads(run(*compare, "--json"))
    assert any(ADD in str(row["note"]) for row in rows["contributions"])


def test_N02_stacks_and_causes_of_profiles(tmp_path):
    """What perf writes: a comparison names the function in its answer, rows of the table keep the mangled name."""
    for name, count in (("base", 10), ("new", 90)):
        (tmp_path / f"{name}.folded").write_text(f"main;{ADD} {count}\nmain;b 100\n")
    command = [os.environ["STEPSCOPE"], "compare", tmp_path / "base.folded", tmp_path / "new.folded", "--fail-on", "never"]
    text = subprocess.run([*command, "--markdown", tmp_path / "comment.md"], capture_output=True, text=True, timeout=60, check=True).stdout
    assert f"function: {PLAIN} 9.1 % -> 47.4 %" in " ".join(text.split()) and "_ZN2" not in text
    assert "vectorized&#95;elementwise&#95;kernel" in (comment := (tmp_path / "comment.md").read_text()).replace("_", "&#95;") and "_ZN2" not in comment
    document = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=60, check=True).stdout)
    assert PLAIN in document["verdict"]["cause"] and ADD in [row["function"] for row in document["functions"]]
    stacks = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / "new.folded", "--table", "sampled_stacks"],
                            capture_output=True, text=True, timeout=60, check=True).stdout
    assert "main;void at::native::" in stacks


def test_N03_hostile_names_stay_as_they_are(trace):
    """One that is read 2^40 times, one whose text doubles with each letter, a deep one, and those after them."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    hostile = ["_ZcvT_I" + "JcvT_I" * 40, "_Z1f1AIiiES_IS0_S0_E" + "".join(f"S_IS{digit}_S{digit}_E" for digit in digits[1:34]), "_Z1f" + "1AI" * 5400 + "i"]
    trace.write([kernel(name, 10 * i, 9 - i) for i, name in enumerate([*hostile, "_ZN2at3addEi"])])
    lines = trace.run("--table", "kernels", "--columns", "kernel").splitlines()
    assert [line.strip()[:12] for line in lines[2:6]] == ["_ZcvT_IJcvT_", "_Z1f1AIiiES_", "_Z1f1AI1AI1A", "at::add(int)"]
    assert [row["kernel"] for row in trace.table("kernels")][:3] == hostile


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


def test_N07_more_names_than_anybody_reads(trace):
    """record_function(f"step {i} loss {x}"): all but the 100,000 rows with the most self time are one row, wherever they are in the file."""
    count, slow = 100_100, {f"step {i} loss": 4 + i // 1000 for i in (100_099, 50_000)}
    spans = [span(f"step {i:06} loss", 10 * i, 3, "user_annotation") for i in range(count - 2)]
    trace.write([step(0, 0, 10 * count + 2000)] + spans + [span(name, 10 * count + 1000 * i, time) for i, (name, time) in enumerate(slow.items())])
    assert trace.query("SELECT count(*), sum(calls), sum(self_ns) FROM ops") == [["100002", str(count), str(1000 * (10 * count + 2000))]]
    assert trace.query("SELECT calls, total_ns, max_ns FROM ops WHERE name = '(more names)' AND kind = 'rest'") == [["100", "", "3000"]]
    assert trace.query("SELECT name, self_ns FROM ops WHERE kind <> 'rest' ORDER BY self_ns DESC LIMIT 2") == [
        [name, str(1000 * time)] for name, time in slow.items()]
    assert trace.query("SELECT max(name) FROM ops WHERE self_ns = 3000 AND kind <> 'rest'") == [["step 099997 loss"]]


def test_N08_files_of_frames_by_any_name(trace):
    files = ["<string>", "<frozen runpy>", "<eval_with_key>.123", "{'a': 1}", "~/x:y", "/" + "d/" * 2500 + "x.py"]
    trace.write([step(0, 0)] + [span(f"{file}({i}): f{i}", 10 + 100 * i, 50, "python_function", **{"Python id": i + 1})
                                for i, file in enumerate(files)])
    frames = trace.query("SELECT function, file, line FROM frames WHERE function IS NOT NULL")
    for i, file in enumerate(files):
        (_, path, line), = [frame for frame in frames if frame[0] == f"f{i}"]
        assert path.endswith(file) and line == str(i or "")


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
    assert "PyTorch has lost them (its issue 166121)" in trace.run("--table", "memory", "--json")
    trace.write([step(0, 0), span("aten::mm", 10, 100)], profile_memory=0)
    assert "torch.profiler writes them with profile_memory=True" in trace.run("--table", "memory", "--json")


def test_N06_nothing_reaches_the_terminal(trace):
    """No escape sequence, no text that runs backwards; columns stay in their places."""
    trace.write([span(name, 10 * i, 5) for i, name in enumerate(HARD)])
    text = trace.run("--table", "ops")
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text), text


def test_N06_no_name_of_a_file_reaches_the_terminal(tmp_path):
    (tmp_path / "a\x1b]52;c;x\x07\n\x1b[31m.json").write_text('{"traceEvents": [{"ph": "X", "name": "')
    for command in ("report", "validate", "convert"):
        arguments = [command, *os.listdir(tmp_path), *(["to.ssr"] if command == "convert" else [])]
        done = subprocess.run([os.environ["STEPSCOPE"], *arguments], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode and ".json" in done.stderr and not re.search("[\x00-\x09\x0b-\x1f\x7f]", done.stdout + done.stderr), done


def test_what_is_only_compressed_with_xz_is_told_from_an_archive(tmp_path):
    (tmp_path / "trace.json.xz").write_bytes(lzma.compress(b'{"traceEvents": []}'))
    done = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / "trace.json.xz"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3 and "compressed with xz must be decompressed first" in done.stderr


def test_compressed_data_that_begins_damaged_is_no_unknown_kind(tmp_path):
    packed = gzip.compress(b'{"traceEvents": [' + b'{"ph": "X", "name": "a", "ts": 1, "dur": 2}, ' * 999 + b"{}]}")
    (tmp_path / "damaged").write_bytes(packed[:12] + bytes([255] * (len(packed) - 12)))
    done = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / "damaged"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 3 and "damaged" in done.stderr and "not a recording" not in done.stderr, done.stderr


def test_the_last_forward_of_a_trace_is_one(tmp_path):
    """Behind its last operator there is no higher number, but a node of a backward that has its own."""
    events = []
    for step in range(3):
        at, number = 1000 * step, 2 * step
        events += [{"cat": "user_annotation", "name": f"ProfilerStep#{step}", "ts": at, "dur": 900},
                   {"cat": "cpu_op", "name": "aten::mm", "ts": at + 10, "dur": 100, "args": {"Sequence number": number, "Fwd thread id": 0}},
                   {"cat": "cpu_op", "name": "aten::logsumexp", "ts": at + 110, "dur": 80, "args": {"Sequence number": number + 1, "Fwd thread id": 0}}]
        for k, node in enumerate(("LogsumexpBackward0", "MmBackward0")):
            events.append({"cat": "cpu_op", "name": f"autograd::engine::evaluate_function: {node}", "ts": at + 200 + 150 * k, "dur": 150,
                           "args": {"Sequence number": number + 1 - k, "Fwd thread id": 1}})
        events.append({"cat": "cpu_op", "name": "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "ts": at + 500, "dur": 10})
        events.append({"cat": "user_annotation", "name": "Optimizer.step#SGD.step", "ts": at + 600, "dur": 200})
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, **event} for event in events]}))
    done = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / "trace.json", "--table", "steps", "--json"], capture_output=True, text=True,
                          timeout=60, check=True)
    assert [row["forward_ns"] for row in json.loads(done.stdout)["rows"]] == [180000] * 3


@pytest.mark.parametrize("last", ["null", "5", '"a\\"]b"', "true", "[]", "[1, [2]]", "null, 1"])
def test_what_is_behind_a_list_that_ends_with_no_event_is_read(tmp_path, last):
    event = '{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}'
    (tmp_path / "trace.json").write_text(f'{{"traceEvents": [{event}, {last}], "distributedInfo": {{"rank": 3, "world_size": 4}}}}')
    done = subprocess.run([os.environ["STEPSCOPE"], "report", tmp_path / "trace.json", "--table", "ledger", "--csv"], capture_output=True, text=True,
                          timeout=60, check=True)
    assert "places between events that are no event" in done.stdout and "torn" not in done.stdout and "cut" not in done.stdout
    assert "ranks 0 to 2 of 4" in done.stdout


def test_processes_of_containers_have_one_pid_and_names_of_their_own(tmp_path):
    for node in range(3):
        event = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 7, "tid": 1, "ts": 1 + node, "dur": 9}
        (tmp_path / f"node{node}.json").write_text(json.dumps({"traceEvents": [event]}))
    done = subprocess.run([os.environ["STEPSCOPE"], "query", tmp_path, "--csv", "SELECT process, count(*) FROM steps JOIN spans USING (process, step) "
                           "WHERE kind = 'step' GROUP BY 1"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n")[1:-1] == ["pid 7 #1,1", "pid 7 #2,1", "pid 7 #3,1"]


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
