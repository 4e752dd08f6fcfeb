# SPDX-License-Identifier: Apache-2.0
"""Inputs of rules: real traces that show a fault; traces, snapshots and tables made by hand for the rest. diagnose() keeps the diagnosis of a real
trace for other tests of the same run."""
import json
import os
import pickle
import subprocess
from pathlib import Path

import made_snapshot
from made_trace import H100, NCCL, Trace, busy

STEPSCOPE = os.environ["STEPSCOPE"]
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
DATA = HERE.parent / "data"
TRACES = DATA / "traces"
HTA = TRACES / "hta/tests/data"
H100_TRACES = TRACES / "tracelens/tests/traces/h100"
DLRM = TRACES / "param/et_replay/tests/inputs/dlrm_kineto"

V100_TRAINING = DATA / "hta_ns_resolution/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz"
QWEN = H100_TRACES / "Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
BERT = H100_TRACES / "gaunernst_bert-small-uncased__1016001.json.gz"
RESNET = TRACES / "kineto/tb_plugin/samples/resnet50_num_workers_4/worker0.pt.trace.json.gz"
ONE_RANK = DLRM / "worker3_step_12.1694128201557.pt.trace.json.gz"
ALEXNET = HTA / "critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz"
SPIN = HTA / "critical_path/cuda_event_sync/event_sync_trace.json.gz"
SAMPLED = HTA / "timeline_analysis/sampled_rank-0.json.gz"
CPU_ONLY = HTA / "cpu_only/@05cd72fe/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz"
NO_OPERATORS = HTA / "trace_compare/base/base.json.gz"
LOADER = DATA / "large_traces/kineto/resnet50_num_workers_0.json.gz"
COPIES = DATA / "large_traces/hta/trace_diff_test.json.gz"
LEGACY = TRACES / "lightning/0_trace.json.gz"


def attention(name):
    trace = busy()
    trace.op("aten::bmm", 100, 50)
    trace.launch("cudaLaunchKernel", 110, 5, "nvjet_tst_64x64", 940, 20)
    trace.op(name, 200, 50)
    trace.launch("cudaLaunchKernel", 210, 5, "softmax_warp_forward", 960, 40)
    return trace


def one_kernel():
    """A kernel that takes most of a step; SPIN has one that takes most of the kernels' time, which is next to nothing of the step."""
    trace = Trace(deviceProperties=[H100])
    for start in (0, 1000):
        trace.step(start // 1000, start, 1000)
        trace.op("aten::cumsum", start + 5, 30)
        trace.launch("cudaLaunchKernel", start + 10, 5, "scan_kernel", start + 20, 700)
        trace.launch("cudaLaunchKernel", start + 20, 5, "nvjet_tst_128x128", start + 720, 100)
    return trace


def copies():
    trace = Trace(deviceProperties=[H100])
    trace.step(0, 0, 1000)
    trace.launch("cudaLaunchKernel", 10, 5, "nvjet_tst_128x128", 30, 500)
    trace.launch("cudaMemcpyAsync", 20, 5, "Memcpy HtoD (Pinned -> Device)", 100, 400, "gpu_memcpy", bytes=1 << 20)
    return trace


def copies_first():
    """Each step waits for 400 us of a copy to the device."""
    trace = Trace(deviceProperties=[H100])
    for number in range(4):
        start = 1000 * number
        trace.step(number, start, 1000)
        trace.launch("cudaMemcpyAsync", start + 10, 5, "Memcpy HtoD (Pinned -> Device)", start + 17, 400, "gpu_memcpy", bytes=1 << 20)
        trace.launch("cudaLaunchKernel", start + 20, 5, "nvjet_tst_128x128", start + 418, 560)
        trace.call("cudaDeviceSynchronize", start + 30, 960)
    return trace


def steps(lengths, gap=0):
    """Steps of the host alone, one behind the other, in an operator nearly all the time."""
    trace, start = Trace(), 0
    for number, length in enumerate(lengths):
        trace.step(number, start, length)
        trace.op("aten::mm", start + 1, length - 2)
        start += length + gap
    return trace


def epochs(hook="[pl][profile][Callback]Plots.on_train_epoch_end", seconds=1.4, within=False):
    """Two of 40 steps of 400 ms, as Lightning's profiler names what comes behind them; within: in the last step."""
    trace, start, length = Trace(), 0, int(seconds * 1e6)
    for number in range(80):
        is_last = number % 40 == 39
        trace.step(number, start, 400_000 + (length if is_last and within else 0))
        trace.op("aten::mm", start + 1, 399_998)
        start += 400_000
        if is_last:
            trace.span("user_annotation", hook, start, length - 2)
            start += length
    return trace


def steps_and_stalls(distance):
    return steps([9000 if i % distance == distance - 1 else 1000 + i % 3 for i in range(40)])


def reads_a_value(launch="cudaLaunchKernel", copy="cudaMemcpyAsync", name="Memcpy DtoH (Device -> Pageable)", wait="cudaStreamSynchronize"):
    """Guide 004's pattern: kernel, copy to the host, work of the host, kernel."""
    trace = Trace(deviceProperties=[H100])
    for number in range(2):
        start = 1000 * number
        trace.step(number, start, 1000)
        trace.launch(launch, start + 10, 5, "nvjet_tst_128x128", start + 20, 600)
        trace.op("aten::_local_scalar_dense", start + 30, 610)
        trace.launch(copy, start + 35, 5, name, start + 620, 2, "gpu_memcpy", bytes=4)
        trace.call(wait, start + 42, 588)
        trace.op("python_work", start + 650, 250)
        trace.launch(launch, start + 910, 5, "nvjet_tst_128x128", start + 922, 70)
    return trace


def index_loop():
    trace = Trace()
    trace.step(0, 0, 1000)
    for i in range(20):
        trace.op("aten::select", 100 + 20 * i, 5)
        trace.op("aten::add", 110 + 20 * i, 5)
    return trace


def convolution(bias):
    trace = busy()
    trace.op("aten::conv2d", 100, 50, **{"Input Dims": [[8, 3, 32, 32], [64, 3, 3, 3], bias]})
    trace.op("aten::add_", 152, 5)  # counts the batch
    trace.op("aten::batch_norm", 160, 50)
    return trace


def made_on_the_host():
    trace = Trace(deviceProperties=[H100])
    trace.step(0, 0, 1000)
    for i in range(5):
        start = 100 * i
        trace.op("aten::zeros", start, 10)
        trace.op("aten::to", start + 12, 40)
        trace.op("aten::_to_copy", start + 13, 38)
        trace.op("aten::copy_", start + 14, 35)
        trace.launch("cudaMemcpyAsync", start + 15, 5, "Memcpy HtoD (Pageable -> Device)", start + 22, 10, "gpu_memcpy", bytes=4000)
    return trace


def no_operators():
    trace = Trace()
    trace.step(0, 0, 1000)
    return trace


def clocks(**counters):
    trace = busy()
    for name, value in counters.items():
        trace.events += [{"ph": "C", "name": name.replace("__", "."), "pid": 100, "tid": 1, "ts": ts, "args": {"": value}} for ts in (0, 900)]
    return trace


def memory(share):
    trace = busy()
    size = int(H100["totalGlobalMem"] * share)
    trace.memory(20, size, size, 4096)
    return trace


def idle_with_memory():
    trace = Trace(deviceProperties=[H100])
    trace.step(0, 0, 1000)
    trace.memory(20, 1 << 20, 1 << 20, 4096)
    trace.launch("cudaLaunchKernel", 15, 5, "nvjet_tst_128x128", 30, 100)
    return trace


class Ranks:
    """A folder with the same trace of two ranks."""
    def __init__(self, case):
        self.case = case

    def write(self, path):
        folder = path.with_suffix("")
        folder.mkdir()
        for rank in range(2):
            trace = self.case()
            trace.facts["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
            trace.write(folder / f"rank{rank}.json")
        return folder


class Snapshot:
    """made_snapshot's, changed."""
    def __init__(self, change=lambda data: None):
        self.data = made_snapshot.snapshot()
        change(self.data)

    def write(self, path):
        path.write_bytes(pickle.dumps(self.data, 4))
        return path


def without_failure(data):
    data["device_traces"] = [[event for event in events if event["action"] != "oom"] for events in data["device_traces"]]


def without_events(data):
    data["device_traces"] = [[] for _ in data["device_traces"]]


def pieces(size):
    """Blocks in use and free ones in turns."""
    def change(data):
        blocks = [made_snapshot.block(i * size, size, state="active_allocated" if i % 2 else "inactive") for i in range(20)]
        data["segments"] = [made_snapshot.segment(0, blocks)]
    return lambda: Snapshot(change)


class Table:
    """A .csv of nvidia-smi."""
    def __init__(self, names, *rows):
        self.lines = [f"timestamp, index, {names}"] + [f"2026/11/21 07:03:{i + 10}.000, 0, {row}" for i, row in enumerate(rows)]

    def write(self, path):
        path = path.with_suffix(".csv")
        path.write_text("\n".join(self.lines) + "\n")
        return path


def usage(busy_share, used_mib):
    return lambda: Table("utilization.gpu [%], memory.used [MiB], memory.free [MiB]", *[f"{busy_share} %, {used_mib} MiB, {80000 - used_mib} MiB"] * 3)


def uses(*busy_shares):
    return lambda: Table("utilization.gpu [%]", *[f"{share} %" for share in busy_shares])


def mostly_empty():
    trace = Trace(deviceProperties=[H100])
    trace.step(0, 0, 1000)
    trace.launch("cudaLaunchKernel", 5, 5, "resident_kernel", 10, 985, **{"blocks per SM": 0.2, "warps per SM": 2})
    return trace


def room(cpu_ratio, busy_share=40):
    """A trace of 20 s with the use of the processors, and nvidia-smi's table of it."""
    class Folder:
        def write(self, path):
            folder = path.with_suffix("")
            folder.mkdir()
            trace = Trace(deviceProperties=[H100], baseTimeNanoseconds=1795244590000000000)
            for number in range(20):
                trace.step(number, 1_000_000 * number, 1_000_000)
                trace.events.append({"ph": "C", "name": "host.cpu.busy_ratio", "pid": 100, "tid": 1, "ts": 1_000_000 * number, "args": {"": cpu_ratio}})
            trace.write(folder / "trace.json")
            table = Table("utilization.gpu [%], memory.used [MiB], memory.total [MiB]", *[f"{busy_share} %, 20000 MiB, 80000 MiB"] * 20)
            table.write(folder / "gpu_usage.csv")
            return folder
    return Folder


def messages(*counts):
    """Exchanges of so many float32, one behind the other, ten of each in each of two steps."""
    trace = busy(distributedInfo=NCCL)
    for number in range(2):
        for i, count in enumerate(counts * 10):
            trace.launch("cudaLaunchKernel", 1000 * number + 20 + i, 1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1000 * number + 930 + i, 1,
                         **{"Collective name": "allreduce", "dtype": "Float", "In msg nelems": count, "Out msg nelems": count, "Group size": 8})
    return trace


def wrapped(name, devices=1, **facts):
    trace = busy(**facts)
    trace.op("aten::add", 200, 5)
    trace.op(name, 300, 100)
    for device in range(1, devices):
        trace.launch("cudaLaunchKernel", 310, 5, "nvjet_tst_64x64", 320, 20, device=device)
    return trace


def batch_norms(count):
    trace = busy()
    trace.op("aten::add", 200, 5)
    for i in range(count):
        trace.op("SyncBatchNorm", 300 + 2 * i, 1)
    return trace


def operators_only():
    trace = Trace()
    trace.op("my_op", 0, 10)
    return trace


diagnosed = {}


def diagnose(tmp_path, case):
    """By the real trace, or made now."""
    if case not in diagnosed:
        path = case().write(tmp_path / "made.json") if callable(case) else case
        done = subprocess.run([STEPSCOPE, "diagnose", path, "--json"], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        diagnosed[case] = json.loads(done.stdout)
    return diagnosed[case]


def result_of(tmp_path, case, rule):
    return next(check["result"] for check in diagnose(tmp_path, case)["checks"] if check["rule"] == rule)
