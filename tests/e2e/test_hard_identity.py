# SPDX-License-Identifier: Apache-2.0
"""Hard cases of identity in traces, each with its row of the catalogue: processes, threads, devices, ranks and launches whose numbers are missing,
odd, or come again."""
import json
import os
import subprocess

import pytest
from hard_tools import STEP, fixture_trace, kernel, launch, span, step


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
    assert ("not ranks of one job, so they are not compared" in phases) == is_apart == ("pid 12" not in phases)
    assert ("did not all run at the same time are shown as one job" in " ".join(trace.run(*options).split())) == is_apart
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


def test_processes_of_containers_have_one_pid_and_names_of_their_own(tmp_path):
    for node in range(3):
        event = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 7, "tid": 1, "ts": 1 + node, "dur": 9}
        (tmp_path / f"node{node}.json").write_text(json.dumps({"traceEvents": [event]}))
    done = subprocess.run([os.environ["STEPSCOPE"], "query", tmp_path, "--csv", "SELECT process, count(*) FROM steps JOIN spans USING (process, step) "
                           "WHERE kind = 'step' GROUP BY 1"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split("\n")[1:-1] == ["pid 7 #1,1", "pid 7 #2,1", "pid 7 #3,1"]
