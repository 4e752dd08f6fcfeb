# SPDX-License-Identifier: Apache-2.0
"""Tables of devices, against an independent reader of real traces where one shows it, and made_trace.py where none does."""
import json
import os
import subprocess
from pathlib import Path

import pytest
from made_trace import H100, Trace
from test_kineto_corpus import events_of, ns

STEPSCOPE = os.environ["STEPSCOPE"]
DATA = Path(__file__).resolve().parent.parent / "data"
H100_TRACES = sorted((DATA / "traces/tracelens/tests/traces/h100").iterdir())


def table(path, name, *options):
    command = [STEPSCOPE, "report", path, "--table", name, *options, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return json.loads(done.stdout)["rows"]


# ---- modules ----

def modules_by_hand(path):
    """Of each module the time of work whose launch lies in its call and in no other module's inside; as one number per name."""
    events = [event for event in events_of(path) if event["ph"] == "X"]
    called = {event["args"]["correlation"]: event for event in events if event.get("cat") in ("cuda_runtime", "cuda_driver")}
    modules = [event for event in events if event["name"].startswith("nn.Module: ")]
    times = {event["name"][11:]: 0 for event in modules}
    for event in events:
        call = called.get(event["args"].get("correlation")) if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset") else None
        if not call:
            continue
        around = [module for module in modules if (module["pid"], module["tid"]) == (call["pid"], call["tid"])
                  and module["ts"] <= call["ts"] < module["ts"] + module["dur"]]
        if around:
            times[max(around, key=lambda module: (module["ts"], -module["dur"]))["name"][11:]] += ns(event["dur"])
    return times


@pytest.mark.parametrize("path", H100_TRACES, ids=lambda path: path.name)
def test_what_modules_launch(path):
    rows = table(path, "modules")
    assert {row["module"]: row["self_device_ns"] for row in rows} == modules_by_hand(path)
    assert rows[0]["device_ns"] == sum(row["self_device_ns"] for row in rows[:1 + len([row for row in rows if row["depth"] > 0])])


def test_a_backward_is_its_forwards_module(tmp_path):
    trace = Trace(deviceProperties=[H100])
    trace.step(0, 0, 1000)
    trace.span("python_function", "nn.Module: Net_0", 10, 200)
    trace.span("python_function", "nn.Module: Linear_0", 20, 100)
    trace.op("aten::addmm", 30, 50, **{"Sequence number": 5, "Fwd thread id": 0})
    trace.launch("cudaLaunchKernel", 35, 5, "gemm_forward", 50, 40)
    trace.op("aten::relu", 130, 50)
    trace.launch("cudaLaunchKernel", 135, 5, "relu", 150, 7)
    trace.span("cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 300, 100, tid=2, **{"Sequence number": 5, "Fwd thread id": 1})
    trace.span("cpu_op", "AddmmBackward0", 305, 90, tid=2, **{"Sequence number": 5, "Fwd thread id": 1})
    trace.events += [{"ph": "s", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 100, "tid": 1, "ts": 30},
                     {"ph": "f", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 100, "tid": 2, "ts": 305, "bp": "e"}]
    trace.number += 1
    trace.span("cuda_runtime", "cudaLaunchKernel", 320, 5, tid=2, correlation=trace.number)
    trace.span("kernel", "gemm_backward", 330, 60, pid=0, tid=7, correlation=trace.number, stream=7, device=0)
    rows = {row["module"]: row for row in table(trace.write(tmp_path / "made.json"), "modules")}
    assert [rows[name]["device_ns"] for name in ("Net_0", "Linear_0")] == [107000, 100000]
    assert [rows[name]["self_device_ns"] for name in ("Net_0", "Linear_0")] == [7000, 100000]
    assert [rows[name]["backward_device_ns"] for name in ("Net_0", "Linear_0")] == [60000, 60000]
    assert [rows[name]["launched_count"] for name in ("Net_0", "Linear_0")] == [1, 2]


# ---- operators ----

SQUARE = {"Input Dims": [[100, 100], [100, 100]], "Input type": ["float", "float"], "Concrete Inputs": ["", ""]}
FLOP = 2 * 100 ** 3


def rate(trace, tmp_path, name="aten::mm"):
    row, = (row for row in table(trace.write(tmp_path / "made.json"), "ops") if row["name"] == name)
    assert row["flops"] == row["calls"] * FLOP
    return row["flops_per_s"]


def product(trace, start, dur=20, name="aten::mm"):
    trace.op(name, start, dur, **SQUARE)


def test_the_rate_of_an_operator_is_over_the_time_of_its_work(tmp_path):
    """Its call is back after 20 us; its two kernels take 50 and 150."""
    trace = Trace(deviceProperties=[H100])
    product(trace, 0)
    trace.launch("cudaLaunchKernel", 5, 5, "gemm", 30, 150)
    trace.op("aten::zero_", 11, 8)
    trace.launch("cudaLaunchKernel", 12, 5, "fill", 180, 50)
    assert rate(trace, tmp_path) == FLOP / 200e-6
    product(trace, 100, 50)  # on the host: it launched nothing
    assert rate(trace, tmp_path) == 2 * FLOP / 250e-6


def test_a_call_whose_work_is_not_recorded_is_in_no_rate(tmp_path):
    trace = Trace(deviceProperties=[H100])
    product(trace, 0)
    trace.call("cudaLaunchKernel", 5, 5, correlation=77)
    assert rate(trace, tmp_path) is None
    product(trace, 100)
    trace.launch("cudaLaunchKernel", 105, 5, "gemm", 130, 200)
    assert rate(trace, tmp_path) == FLOP / 200e-6
    product(trace, 400)
    trace.launch("cudaLaunchKernel", 405, 5, "gemm", 430, 100)
    del trace.events[-1]["dur"]  # it took nobody knows how long
    assert rate(trace, tmp_path) == FLOP / 200e-6


@pytest.mark.parametrize("inside", (False, True))
def test_a_launch_that_two_calls_tell_of_is_one(tmp_path, inside):
    """cudaLaunchKernel around cuLaunchKernel, and either has the number of the kernel."""
    trace = Trace(deviceProperties=[H100])
    product(trace, 0)
    trace.call("cudaLaunchKernel", 5, 8, correlation=2 - inside)
    trace.call("cuLaunchKernel", 6, 5, correlation=1 + inside)
    trace.span("kernel", "gemm", 30, 200, pid=0, tid=7, correlation=2, stream=7, device=0)
    assert rate(trace, tmp_path) == FLOP / 200e-6


@pytest.mark.parametrize("facts, add, is_known", [
    ({}, lambda trace: None, True),
    ({"deviceProperties": []}, lambda trace: None, True),
    ({"deviceProperties": [H100]}, lambda trace: None, False),
    ({}, lambda trace: trace.memory(30, 4096, 4096, 0x1000), False),
    ({}, lambda trace: trace.op("nccl:all_reduce", 40, 5), False),
    ({}, lambda trace: trace.span("kernel", "gemm", 30, 200, pid=0, tid=7, correlation=9, stream=7, device=0), False)],
    ids=("nothing of devices", "no device", "a device", "memory of a device", "NCCL", "a kernel without launch"))
def test_where_no_launch_is_recorded_a_device_may_have_done_it(tmp_path, facts, add, is_known):
    trace = Trace(**facts)
    product(trace, 0)
    add(trace)
    assert rate(trace, tmp_path) == (FLOP / 20e-6 if is_known else None)


# ---- kernels ----

@pytest.mark.parametrize("length", (None, -1, "NaN"))
def test_T03_a_kernel_of_unknown_length_ends_where_its_stream_goes_on(tmp_path, length):
    """What is not known is in no mean: 3 kernels of 50 us each 100, and the device is busy for at most 50 us more than is known."""
    trace = busy_for(4)
    kernel = [event for event in trace.events if event["cat"] == "kernel"][1]
    del kernel["dur"]
    if length is not None:
        kernel["dur"] = length
    path = trace.write(tmp_path / "made.json")
    row, = table(path, "kernels")
    assert (row["calls"], row["incomplete_calls"], row["total_ns"]) == (4, 1, 3 * 50000 + 100000)
    assert row["mean_ns"] == row["min_ns"] == row["max_ns"] == 50000
    assert table(path, "device_busy")[0]["busy_ns"] == 250000


def test_a_kernel_that_no_call_tells_the_length_of_has_no_mean(tmp_path):
    trace = busy_for(1)
    del trace.events[-1]["dur"]
    row, = table(trace.write(tmp_path / "made.json"), "kernels")
    assert row["incomplete_calls"] == 1 and row["mean_ns"] is None and row["max_ns"] is None


def test_many_kernels_of_unknown_length_that_begin_at_once(tmp_path):
    """The next work of the stream is looked for once, and not for each of them: else this takes minutes."""
    trace = Trace()
    for _ in range(300_000):
        trace.span("kernel", "gemm", 5, 0, pid=0, tid=7, device=0, stream=7)
        del trace.events[-1]["dur"]
    row, = table(trace.write(tmp_path / "made.json"), "kernels")
    assert row["calls"] == row["incomplete_calls"] == 300_000


def busy_for(kernels):
    trace = Trace(deviceProperties=[H100])
    trace.step(0, 0, 1000)
    for i in range(kernels):
        trace.launch("cudaLaunchKernel", 100 * i, 5, "gemm", 100 * i + 10, 50)
    return trace


def kernels_by_hand(path, place_of):
    """(name, place) -> (calls, time): the place is that of the spans around the launch, on its thread, outermost first."""
    events = [event for event in events_of(path) if event["ph"] == "X"]
    places, open_spans, rows = {}, {}, {}
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        thread = (event["pid"], event["tid"])
        around = [span for span in open_spans.get(thread, []) if span["ts"] + span["dur"] > event["ts"]]
        if event.get("cat") in ("cuda_runtime", "cuda_driver"):
            places[event["args"]["correlation"]] = place_of(around)
        elif event.get("cat") in ("cpu_op", "python_function"):
            open_spans[thread] = [*around, event]
    for event in events:
        if event.get("cat") == "kernel":
            key = (event["name"], places.get(event["args"].get("correlation")))
            calls, total = rows.get(key, (0, 0))
            rows[key] = (calls + 1, total + ns(event["dur"]))
    return rows


def shape_around(spans):
    """Without blanks, which mean nothing in it."""
    operators = [span["args"].get("Input Dims") for span in spans if span["cat"] == "cpu_op"]
    return "".join(json.dumps(dims).replace(" ", "") for dims in operators[-1]) if operators and operators[-1] else None


def module_around(spans):
    modules = [span["name"][11:] for span in spans if span["name"].startswith("nn.Module: ")]
    return modules[-1] if modules else None


@pytest.mark.parametrize("path", H100_TRACES, ids=lambda path: path.name)
def test_kernels_by_what_launched_them(path):
    for option, place_of in (("shape", shape_around), ("module", module_around)):
        rows = table(path, "kernels", "--by", option)
        found = {(row["kernel"], row[option] and row[option].replace(" ", "")): (row["calls"], row["total_ns"]) for row in rows}
        assert len(found) == len(rows) and found == kernels_by_hand(path, place_of), option


@pytest.mark.parametrize("path", H100_TRACES, ids=lambda path: path.name)
def test_rows_by_what_launched_them_sum_to_those_by_name(path):
    whole = {row["kernel"]: (row["calls"], row["total_ns"]) for row in table(path, "kernels")}
    every = table(path, "kernels", "--by", "shape", "--by", "module", "--by", "line", "--by", "stack")
    assert len({tuple(row[key] for key in ("kernel", "shape", "module", "line", "stack")) for row in every}) == len(every) > len(whole)
    for rows in [every, *(table(path, "kernels", "--by", by) for by in ("shape", "module", "line", "stack"))]:
        sums = dict.fromkeys(whole, (0, 0))
        for row in rows:
            calls, total = sums[row["kernel"]]
            sums[row["kernel"]] = (calls + row["calls"], total + row["total_ns"])
        assert sums == whole


@pytest.mark.parametrize("path", H100_TRACES, ids=lambda path: path.name)
def test_kernels_by_stack_are_what_the_stacks_launch(path):
    """`stacks` counts copies and fills, too, and only steps that it measures."""
    stacks = {row["stack"]: row["device_ns"] for row in table(path, "stacks")}
    sums = {}
    for row in table(path, "kernels", "--by", "stack"):
        sums[row["stack"]] = sums.get(row["stack"], 0) + row["total_ns"]
    assert len(sums) > 3 and all(0 < total <= stacks[stack] for stack, total in sums.items() if stack)


def backward_with_a_checkpoint():
    """Net calls Linear, whose addmm makes a node; that calls Block to compute again, launches one kernel in it and one beside it."""
    trace = Trace(deviceProperties=[H100])
    trace.step(0, 0, 1000)
    trace.span("python_function", "train.py(3): main", 5, 900)
    trace.span("python_function", "nn.Module: Net_0", 10, 200)
    trace.span("python_function", "nn.Module: Linear_0", 20, 100)
    trace.op("aten::addmm", 30, 50, **{"Sequence number": 5, "Fwd thread id": 0, "Input Dims": [[4], [2, 3], [3, 4]]})
    trace.launch("cudaLaunchKernel", 35, 5, "gemm", 50, 40)
    trace.op("autograd::engine::evaluate_function: AddmmBackward0", 300, 100, **{"Sequence number": 5, "Fwd thread id": 1})
    trace.op("AddmmBackward0", 305, 90, **{"Sequence number": 5, "Fwd thread id": 1})
    trace.events += [{"ph": "s", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 100, "tid": 1, "ts": 30},
                     {"ph": "f", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 100, "tid": 1, "ts": 305, "bp": "e"}]
    trace.launch("cudaLaunchKernel", 310, 5, "gemm", 320, 20)
    trace.span("python_function", "nn.Module: Block_0", 330, 50)
    trace.op("aten::mm", 335, 40)
    trace.launch("cudaLaunchKernel", 340, 5, "gemm", 350, 7)
    trace.span("kernel", "gemm", 600, 1, pid=0, tid=7, stream=7, device=0)
    return trace


def test_kernels_of_a_backward_and_of_what_it_computes_again(tmp_path):
    path = backward_with_a_checkpoint().write(tmp_path / "made.json")
    times = {row["module"]: row["total_ns"] for row in table(path, "kernels", "--by", "module")}
    assert times == {"Linear_0": 60000, "Block_0": 7000, None: 1000}
    assert {row["module"]: row["self_device_ns"] for row in table(path, "modules")} == {"Net_0": 0, "Linear_0": 60000, "Block_0": 7000}
    rows = table(path, "kernels", "--by", "shape")
    assert [(row["shape"], row["total_ns"]) for row in rows] == [("[4] [2, 3] [3, 4]", 40000), (None, 28000)]
    assert table(path, "kernels")[0]["shape"] is None


# ---- the critical path ----

def three_streams(record=11, with_wait=True):
    """A kernel of stream 20 waits for one of stream 7; one of stream 9, which has nothing to do with both, ends between them."""
    trace = Trace(deviceProperties=[H100])
    trace.step(0, 0, 910)
    trace.op("train", 5, 905)
    for number, stream, call, begin, length, name in ((10, 7, 10, 20, 580, "first"), (9, 9, 40, 50, 552, "unrelated"),
                                                      (13, 20, 70, 605, 300, "second")):
        trace.call("cudaLaunchKernel", call, 5, correlation=number)
        trace.span("kernel", name, begin, length, pid=0, tid=stream, correlation=number, stream=stream, device=0)
    trace.call("cudaEventRecord", 20, 2, correlation=11)
    trace.call("cudaStreamWaitEvent", 60, 2, correlation=12)
    trace.call("cudaDeviceSynchronize", 80, 830, correlation=14)
    if with_wait:
        trace.span("cuda_sync", "Stream Wait Event", 61, 2, pid=0, tid=20, correlation=12, stream=20, device=0,
                   cuda_sync_kind="Stream Wait Event", wait_on_stream=7, wait_on_cuda_event_record_corr_id=record)
    return trace


def path_of(trace, tmp_path):
    return {(row["part"], row["name"]): row["total_ns"] for row in table(trace.write(tmp_path / "made.json"), "critical_path")}


def test_a_stream_waits_for_what_the_program_says(tmp_path):
    path = path_of(three_streams(), tmp_path)
    assert path["compute kernel", "first"] == 580000 and ("compute kernel", "unrelated") not in path
    assert sum(path.values()) == 910000


@pytest.mark.parametrize("trace", [three_streams(with_wait=False), three_streams(record=-1), three_streams(record=999)],
                         ids=["no wait", "not recorded in the trace", "no such call"])
def test_where_no_wait_is_known_it_is_what_ended_last(tmp_path, trace):
    path = path_of(trace, tmp_path)
    assert path["compute kernel", "unrelated"] == 552000 and ("compute kernel", "first") not in path


# ---- queued or in its launch ----

def idle_of(trace, tmp_path):
    row, = table(trace.write(tmp_path / "made.json"), "device_busy")
    return row["idle_queued_ns"], row["idle_launch_ns"], row["idle_unlaunched_ns"]


@pytest.mark.parametrize("period, call, delay, length", [(10, 6, 8, 2), (6, 4, 7, 2), (19, 14, 18, 2), (8, 2, 9, 3)],
                         ids=["at the same instant", "while it runs", "just begun", "just over"])
def test_D05_what_is_being_launched_is_not_queued(tmp_path, period, call, delay, length):
    """Kernels that take less than their launch, each launched before the one before it ends: no other stream, no event, no other work."""
    trace = Trace(deviceProperties=[H100])
    for start in range(0, 100 * period, period):
        trace.launch("cudaLaunchKernel", start, call, "add", start + delay, length)
        if start == 50 * period: # one that finds the device idle
            trace.launch("cudaLaunchKernel", 200 * period, call, "add", 200 * period + delay, length)
    queued, launched, _ = idle_of(trace, tmp_path)
    assert queued == 0 and launched == 1000 * (99 * (period - length) + delay)


def test_what_waits_for_another_stream_is_queued(tmp_path):
    trace = Trace(deviceProperties=[H100])
    trace.launch("cudaLaunchKernel", 0, 5, "first", 10, 90)
    trace.launch("cudaLaunchKernel", 20, 5, "behind a copy of another process", 150, 50)
    assert idle_of(trace, tmp_path) == (50_000, 0, 0)


def test_a_graph_that_has_begun_is_queued(tmp_path):
    trace = Trace(deviceProperties=[H100])
    trace.launch("cudaGraphLaunch", 0, 100, "first", 30, 10)
    trace.span("kernel", "second", 45, 10, pid=0, tid=7, correlation=trace.number, stream=7, device=0)
    assert idle_of(trace, tmp_path) == (5_000, 0, 0)
