# SPDX-License-Identifier: Apache-2.0
"""Faults of steps, phases and ranges that were found in use. A test has the fault's id in its name."""
import json
import os
import subprocess

import pytest
from hard_tools import STEP, fixture_trace, span, step

LABELS = 16  # process ids that Kineto labels as those of devices


def label(pid, text):
    return {"ph": "M", "name": "process_labels", "pid": pid, "tid": 0, "ts": 0, "args": {"labels": text}}


def training(pid, steps=5, labels=LABELS):
    """A step: a quarter forward, a half backward, a quarter optimizer; the device works in each part."""
    yield label(pid, "CPU")
    yield from (label(device, f"GPU {device}") for device in range(labels))
    for number in range(steps):
        begin, me = STEP * number, {"pid": pid, "tid": pid}
        yield step(number, begin, STEP - 10, **me)
        yield span("aten::linear", begin, 240, **me, **{"Sequence number": number + 1, "Fwd thread id": 0})
        yield span("autograd::engine::evaluate_function: AddmmBackward0", begin + 250, 490, pid=pid, tid=9000,
                   **{"Sequence number": number + 1, "Fwd thread id": 1})
        yield span("Optimizer.step#SGD.step", begin + 750, 230, "user_annotation", **me)
        yield span("aten::_foreach_add_", begin + 760, 200, **me)
        yield span("cudaLaunchKernel", begin + 770, 5, "cuda_runtime", **me, correlation=number + 1)
        yield span("k", begin + 780, 100, "kernel", 0, 7, device=0, stream=7, correlation=number + 1)


def phases(trace):
    return {row["name"]: row["ratio"] for row in trace.table("phases")}


@pytest.mark.parametrize("pid", [1, 2, 7, 15, 16, 4711])
def test_fault_T2_a_process_whose_id_is_labelled_as_a_device(trace, pid):
    """Kineto labels the ids 0 to 15 `GPU n`, whether there are such devices or not. A process in a container has the id 1."""
    trace.write(list(training(pid)))
    assert phases(trace) == pytest.approx({"forward": 0.24 / 0.99, "backward": 0.49 / 0.99, "optimizer": 0.23 / 0.99, "other": 0.03 / 0.99}, abs=1e-3)
    ops = {row["name"]: row["self_ns"] for row in trace.table("ops")}
    assert ops["Optimizer.step#SGD.step"] == 5 * 30_000 and ops["aten::linear"] == 5 * 240_000
    assert [row["pid"] for row in trace.table("processes")] == [pid]


def test_fault_T2_a_process_and_the_device_of_its_number(trace):
    """The device 1 works for the process 1: both keep their spans, also the annotations that Kineto copies to the device."""
    rows = [row if row["pid"] != 0 or row["ph"] == "M" else {**row, "pid": 1, "args": {**row["args"], "device": 1}} for row in training(1)]
    rows += [span("my range", 10, 50, "user_annotation", 1, 1), span("my range", 790, 50, "gpu_user_annotation", 1, 7, device=1, stream=7)]
    trace.write(rows)
    assert sorted((row["kind"], row["spans"]) for row in trace.table("threads")) == [("device", 6), ("thread", 5), ("thread", 41)]
    assert phases(trace)["optimizer"] == pytest.approx(0.23 / 0.99, abs=1e-3)


def test_fault_F3_a_worker_gets_no_steps_beside_a_process_that_marks_its_own(trace):
    """Merged traces: the loader's own ranges come again and again, but no step of the training is one of them."""
    rows = [step(number, 10_000 * number, 10_000, pid=100, tid=100) for number in range(4)]
    rows += [span("load_batch", 5000 * number, 3000, "user_annotation", pid=200, tid=200) for number in range(8)]
    trace.write(rows)
    mean, = [row["mean_ns"] for row in trace.table("step_time") if row["process"] == "all"]
    assert mean == 10_000_000
    assert [(row["step"], row["duration_ns"]) for row in trace.table("steps")] == [(number, 10_000_000) for number in range(4)]
    assert not any("the trace marks no steps" in sentence for sentence in trace.ledger())


def worker(pid):
    """Its ranges come again and again, with operators, allocations and flows in them; its step trains."""
    for number in range(8):
        begin, me = 5000 * number, {"pid": pid, "tid": pid}
        yield span("load_batch", begin, 3000, "user_annotation", **me)
        yield span("aten::decode", begin + 10, 2000, **me, **{"Input Dims": [[4, 4]]})
        yield {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "s": "t", **me, "ts": begin + 20,
               "args": {"Device Type": 0, "Device Id": -1, "Addr": 64 * (number + 1), "Bytes": 64}}
        yield {"ph": "s", "cat": "fwdbwd", "name": "fwdbwd", "id": number, **me, "ts": begin + 10}
        yield span("aten::collate", begin + 2100, 500, **me)
        yield {"ph": "f", "cat": "fwdbwd", "name": "fwdbwd", "id": number, **me, "ts": begin + 2100, "bp": "e"}


def other_rank(pid):
    """It trains, and marks no steps: forward, backward and optimizer tell of them."""
    return [row for row in training(pid) if not row["name"].startswith("ProfilerStep")]


TABLES = ("steps", "step_time", "phases", "ops", "memory", "ledger", "between_steps", "processes")


def answers(path):
    answer = dict(zip(TABLES, tables(path, *TABLES)))
    answer["ledger"] = sorted(row["sentence"] for row in answer["ledger"])
    answer["processes"].sort(key=lambda row: row["pid"])
    columns = "name, kind, depth, start_ns, dur_ns, (select count(*) from links where links.from_track = spans.track and links.from_span = spans.span)"
    query = [os.environ["STEPSCOPE"], "query", path, "--csv", f"select {columns} from spans order by 1, 2, 4"]
    answer["spans"] = subprocess.run(query, capture_output=True, text=True, timeout=60, check=True).stdout
    return answer


@pytest.mark.parametrize("names", [("a.json", "b.json"), ("b.json", "a.json")])
@pytest.mark.parametrize("other", [worker, other_rank])
def test_fault_F3_files_a_file_without_steps_beside_one_that_marks_them(tmp_path, names, other):
    """Several traces are as one trace of all their processes, in any order of the files."""
    marked = [step(number, 10_000 * number, 10_000, pid=100, tid=100) for number in range(4)]
    joined, apart = tmp_path / "joined", tmp_path / "apart"
    joined.mkdir()
    apart.mkdir()
    (joined / "all.json").write_text(json.dumps({"traceEvents": marked + list(other(200))}))
    for name, rows in zip(names, (marked, list(other(200)))):
        (apart / name).write_text(json.dumps({"traceEvents": rows}))
    found = answers(apart)
    assert [(row["step"], row["duration_ns"]) for row in found["steps"]] == [(number, 10_000_000) for number in range(4)]
    assert found == answers(joined)


def test_fault_F3_files_of_another_time_are_no_workers(tmp_path):
    rows = [{**row, "ts": row["ts"] + 20e6} for row in other_rank(200)]
    (tmp_path / "marked.json").write_text(json.dumps({"traceEvents": [step(number, 10_000 * number, 10_000, pid=100, tid=100) for number in range(4)]}))
    (tmp_path / "later.json").write_text(json.dumps({"traceEvents": rows}))
    steps, = tables(tmp_path, "steps")
    assert len(steps) == 9


def test_fault_F3_files_that_all_mark_no_steps_have_inferred_ones(tmp_path):
    for pid in (200, 300):
        (tmp_path / f"{pid}.json").write_text(json.dumps({"traceEvents": other_rank(pid)}))
    steps, phases_of_all = tables(tmp_path, "steps", "phases")
    assert len(steps) == 10 and {row["name"] for row in phases_of_all} >= {"forward", "backward", "optimizer"}


@pytest.mark.parametrize("own", [0, 30])
def test_fault_T7_an_optimizer_in_another_one_counts_once(trace, own):
    """ZeroRedundancyOptimizer: `own` operators of the outer one are on single tensors, too."""
    rows = []
    for number in range(4):
        begin = STEP * number
        rows += [step(number, begin), span("Optimizer.step#ZeroRedundancyOptimizer.step", begin + 500, 400, "user_annotation"),
                 span("Optimizer.step#Adam.step", begin + 580, 310, "user_annotation")]
        rows += [span("aten::add_", begin + 502 + 2 * i, 1) for i in range(own)]
        rows += [span("aten::add_", begin + 581 + 10 * i, 8) for i in range(30)]
    trace.write(rows)
    found, = [row for row in trace.table("operator_patterns") if row["pattern"] == "optimizer tensor by tensor"]
    optimizer = phases(trace)["optimizer"]
    assert found["count"] == 4 and found["ratio"] == pytest.approx(optimizer if own else 0.31) and optimizer == pytest.approx(0.4)


def test_fault_T10_a_later_range_deeper_in_pythons_stack_is_not_in_one_that_ended(trace):
    rows = []
    for number in range(3):
        rows += [step(number, 20_000 * number, 9000), span("aten::mm", 20_000 * number + 10, 8000)]
    rows += [span("short", 10_000, 1000, "user_annotation"), span("train.py(1): epoch_end", 12_000, 7000, "python_function"),
             span("train.py(9): evaluate", 12_000, 6900, "python_function"), span("later", 12_100, 6800, "user_annotation"),
             span("inner", 12_200, 100, "user_annotation")]
    trace.write(rows)
    assert {row["name"]: (row["total_ns"], row["self_ns"]) for row in trace.table("between_ranges")} == {
        "short": (1_000_000, 1_000_000), "later": (6_800_000, 6_700_000), "inner": (100_000, 100_000)}


def windows(folder, count, pid=300, begin_of=lambda window: 10 * STEP * window):
    """A profiler for each batch writes a file for each, without step()."""
    for window in range(count):
        begin = begin_of(window)
        rows = [span("aten::linear", begin, 300, pid=pid, tid=pid), span("Optimizer.step#SGD.step", begin + 400, 100, "user_annotation", pid=pid, tid=pid),
                span("k", begin + 20, 200, "kernel", 0, 7, device=0, stream=7)]
        (folder / f"host_{pid}.{1700000000 + window}.pt.trace.json").write_text(json.dumps({"traceEvents": rows}))


def tables(folder, *names):
    for name in names:
        done = subprocess.run([os.environ["STEPSCOPE"], "report", folder, "--table", name, "--json"], capture_output=True, text=True, timeout=60, check=True)
        yield json.loads(done.stdout)["rows"]


def test_fault_T7m_windows_without_steps_are_of_one_process(tmp_path):
    windows(tmp_path, 20)
    processes, busy, steps = tables(tmp_path, "processes", "device_busy", "steps")
    assert [row["pid"] for row in processes] == [300] and len(busy) <= 2
    assert [row["step"] for row in steps] == list(range(20))


def test_fault_T7m_two_at_once_are_two_processes(tmp_path):
    """The same id in two containers."""
    windows(tmp_path, 2, begin_of=lambda window: 100 * window)
    processes, = tables(tmp_path, "processes")
    assert len(processes) == 2


def exchanges(has_call=True, has_copy=False):
    """The call that enqueues takes 60 us; the device executes the collective later for 9 ms, while nothing else runs on it."""
    rows = []
    for number in range(5):
        begin = 100_000 * number
        rows += [step(number, begin, 99_900), span("aten::linear", begin, 24_000, **{"Sequence number": number + 1, "Fwd thread id": 0}),
                 span("autograd::engine::evaluate_function: AddmmBackward0", begin + 25_000, 49_000, tid=2, **{"Sequence number": number + 1, "Fwd thread id": 1}),
                 span("nccl:all_reduce", begin + 30_020, 60, "user_annotation", tid=2), span("cudaLaunchKernelExC", begin + 30_030, 5, "cuda_runtime", tid=2, correlation=number + 1),
                 span("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", begin + 65_000, 9000, "kernel", 0, 40, device=0, stream=40, correlation=number + 1),
                 span("Optimizer.step#SGD.step", begin + 75_000, 24_000, "user_annotation")]
        rows += [span("c10d::allreduce_", begin + 30_000, 90, tid=2)] * has_call
        rows += [span("nccl:all_reduce", begin + 65_000, 9000, "gpu_user_annotation", 0, 40, device=0, stream=40)] * has_copy
    return rows


@pytest.mark.parametrize("has_call, has_copy", [(True, False), (True, True), (False, True)])
def test_fault_T3_the_call_that_enqueues_is_no_execution(trace, has_call, has_copy):
    trace.write(exchanges(has_call, has_copy))
    row, = trace.table("collectives")
    assert (row["count"], row["issue_ns"]) == (5, 90_000 if has_call else 60_000)
    assert row["total_ns"] is None and row["exposed_ns"] is None
    found, = trace.table("communication")
    assert (found["total_ns"], found["exposed_ratio"]) == (45_000_000, 1)
    assert {name: ratio for name, ratio in phases(trace).items() if name != "other"} == pytest.approx(
        {"forward": 24 / 99.9, "backward": 49 / 99.9, "optimizer": 24 / 99.9}, abs=1e-3)


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_fault_T9m_nodes_without_numbers_are_told_by_their_names(trace, is_elsewhere):
    """PyTorch 1.8: nodes of a device's backward are in another thread, without the engine and without numbers."""
    rows = []
    for number in range(4):
        begin, thread = STEP * number, 9000 if is_elsewhere else 1
        rows += [step(number, begin, 990), span("aten::conv2d", begin, 100), span("aten::convolution", begin + 2, 96), span("aten::cudnn_convolution", begin + 4, 90),
                 span("aten::relu", begin + 100, 50), span("aten::addmm", begin + 150, 150), span("AddmmBackward", begin + 300, 200, tid=thread),
                 span("ReluBackward", begin + 500, 100, tid=thread), span("CudnnConvolutionBackward", begin + 600, 200, tid=thread),
                 span("torch::autograd::AccumulateGrad", begin + 800, 10, tid=thread), span("Optimizer.step#SGD.step", begin + 820, 100)]
    trace.write(rows)
    assert phases(trace) == pytest.approx({"forward": 300 / 990, "backward": 510 / 990, "optimizer": 100 / 990, "other": 80 / 990})


@pytest.mark.parametrize("ahead", [0, 8])
def test_fault_T8m_backwards_of_other_micro_batches_leave_phases_unknown(trace, ahead):
    """A stage of a pipeline: each backward works for the forward of `ahead` micro-batches before."""
    rows = [step(0, 0, 8 * STEP)]
    for number in range(8):
        begin = STEP * number
        rows += [span("aten::linear", begin, 300, **{"Sequence number": 100 + number, "Fwd thread id": 0}),
                 span("autograd::engine::evaluate_function: AddmmBackward0", begin + 400, 500, tid=2, **{"Sequence number": 100 + number - ahead, "Fwd thread id": 1})]
    trace.write(rows + [span("Optimizer.step#SGD.step", 7950, 40)])
    assert ("forward" in phases(trace)) == (not ahead)
    assert any("phases are unknown" in sentence for sentence in trace.ledger()) == bool(ahead)
