# SPDX-License-Identifier: Apache-2.0
"""Every built-in rule that reads traces: an input in which it fires, one in which it stays silent, one of which it says that it cannot
tell. Real traces wherever one shows the fault; made_trace.py for the rest. Rules that need a recording of ours: see ELSEWHERE."""
import gzip
import json
import os
import pickle
import subprocess
from pathlib import Path

import made_snapshot
import pytest
from made_trace import GLOO, H100, NCCL, Trace, busy

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


# ---- traces made by hand ----

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


# rule: (input in which it fires, a part of its evidence), input in which it finds nothing, input of which it cannot tell
RULES = {
    "SS101": ((LOADER, "33.6 % of a step"), RESNET, LEGACY),
    "SS102": ((LOADER, "69.30 ms for a batch, mean of 6"), RESNET, QWEN),
    "SS204": ((lambda: steps([1000] * 5, 200), "200.0 us"), lambda: steps([1000] * 5), LEGACY),
    "SS214": ((epochs, "2 calls of 1.400 s, the longest 1.400 s, 35.00 ms for each step"), lambda: epochs(seconds=0.9), lambda: epochs("save")),
    "SS205": ((BERT, "92.0 % of a step"), QWEN, NO_OPERATORS),
    "SS206": ((ALEXNET, "cudaDeviceGetStreamPriorityRange"), QWEN, CPU_ONLY),
    "SS207": ((reads_a_value, "2 copies to the host, the thread waits for 2 of them"), QWEN, CPU_ONLY),
    "SS208": ((BERT, "6.9 %"), QWEN, CPU_ONLY),
    "SS209": ((BERT, "kernels are shorter"), RESNET, CPU_ONLY),
    "SS210": ((BERT, "pieces of work wait"), QWEN, CPU_ONLY),
    "SS211": ((uses(*[95] * 20, *[3] * 10), "95 % of the time or more in a twentieth of its 30 values, and for 3 % or less"), uses(*[95] * 20, 3),
              uses(*[95] * 10, *[3] * 9)),
    "SS212": ((room(0.3), "at most 40.0 % of the time, 25.0 % of the device's memory is in use, and 30.0 % of the processors"), room(0.9),
              usage(45, 20000)),
    "SS302": ((V100_TRAINING, "on tensor cores: 0.0 %"), QWEN, RESNET),
    "SS303": ((ONE_RANK, "25.8 % of the multiprocessors"), QWEN, RESNET),
    "SS304": ((QWEN, "57.4 % of a step"), RESNET, CPU_ONLY),
    "SS305": ((lambda: attention("aten::_softmax"), "2 % of the time of devices"), QWEN, CPU_ONLY),
    "SS306": ((BERT, "26 times"), QWEN, V100_TRAINING),
    "SS307": ((RESNET, "12 copies, 110 MiB"), QWEN, CPU_ONLY),
    "SS308": ((COPIES, "13.0 % of a step, 16.08 ms, it copies and computes nothing"), copies, CPU_ONLY),
    "SS309": ((one_kernel, "87.5 % of the time of kernels, 70.0 % of a step, 2 calls of 700.0 us"), SPIN, operators_only),
    "SS403": ((lambda: steps([1000, 2000] * 10), "the slowest 2.000 ms"), lambda: steps([1000] * 20), lambda: steps([1000] * 3)),
    "SS404": ((RESNET, "966 times"), V100_TRAINING, QWEN),
    "SS405": ((index_loop, "1 time, 385.0 us, 38.5 % of steps"), QWEN, no_operators),
    "SS406": ((RESNET, "6 times, 131.0 ms"), V100_TRAINING, CPU_ONLY),
    "SS407": ((lambda: convolution([64]), "1 convolution"), lambda: convolution([]), V100_TRAINING),
    "SS408": ((made_on_the_host, "5 times, 200.0 us"), QWEN, CPU_ONLY),
    "SS409": ((lambda: steps_and_stalls(10), "4 slow steps, 9.000 ms"), lambda: steps([1000, 1003] * 10), lambda: steps([1000] * 3)),
    "SS410": ((lambda: steps(([1000] * 9 + [20000]) * 11 + [1000] * 90), "11 of 200 steps, 20.00 ms on the mean, the others 1.000 ms"),
              lambda: steps([1000] * 190 + [20000] * 10), lambda: steps([1000] * 100)),
    "SS502": ((ALEXNET, "40 calls, 8.514 s"), QWEN, CPU_ONLY),
    "SS503": ((lambda: memory(0.95), "95.0 % of 79.2 GiB"), lambda: memory(0.5), RESNET),
    "SS504": ((idle_with_memory, "kernels run for 10.0 %"), lambda: memory(0.2), RESNET),
    "SS505": ((Snapshot, "1 time, fragmented: 6.00 MiB were asked for, the program had 28.0 MiB"), lambda: Snapshot(without_failure), QWEN),
    "SS506": ((pieces(64 << 20), "640 MiB of 1.25 GiB are free, but between blocks in use, and the largest piece has 64.0 MiB"), Snapshot, QWEN),
    "SS601": ((SAMPLED, "27.4 % of a step"), RESNET, None),
    "SS602": ((DLRM, "ranks wait 5.858 ms for one another"), QWEN, ALEXNET),
    "SS603": ((lambda: wrapped("DataParallel.forward", 2), "2 devices"), lambda: wrapped("DataParallel.forward"), operators_only),
    "SS604": ((lambda: wrapped("DistributedDataParallel.forward", distributedInfo=GLOO), "DistributedDataParallel"),
              lambda: wrapped("DistributedDataParallel.forward", distributedInfo=NCCL), QWEN),
    "SS805": ((lambda: clocks(gpu0__clocks__sm=1485, gpu0__clocks__max__sm=1980), "75.0 %"),
              lambda: clocks(gpu0__clocks__sm=1965, gpu0__clocks__max__sm=1980, gpu0__clocks_event_reasons__sw_power_cap=0), QWEN),
    "SS902": ((lambda: steps([9000] + [1000] * 2), "9.000 ms, the median step 1.000 ms"), lambda: steps([1000] * 9), lambda: steps([1000])),
    "SS606": ((lambda: messages(1000, 100_000), "100.0 % of all bytes go in 40 messages of 197 KiB"), lambda: messages(1000, 10_000_000), QWEN),
    "SS607": ((lambda: messages(1_000_001), "100.0 % of all bytes go in 20 messages whose size is no multiple of 16 bytes"),
              lambda: messages(1_000_004, 3), QWEN),
    "SS605": ((lambda: batch_norms(50), "25 in each step"), lambda: batch_norms(30), operators_only),
}
# rules about what only our own recordings have, or that depend on how long things take: where their tests are
ELSEWHERE = {
    "SS201": "tests/torch/test_diagnosis.py",
    "SS202": "tests/torch/test_diagnosis.py",
    "SS203": "tests/torch/test_diagnosis.py",
    "SS213": "tests/python/test_faults.py",
    "SS301": "tests/torch/test_diagnosis.py",
    "SS401": "tests/torch/test_diagnosis.py",
    "SS402": "tests/torch/test_diagnosis.py",
    "SS411": "tests/e2e/test_rules.py",
    "SS501": "tests/e2e/test_diagnose.py",
    "SS701": "tests/e2e/test_diagnose.py",
    "SS702": "tests/python/test_faults.py",
    "SS703": "tests/python/test_faults.py",
    "SS704": "tests/python/test_faults.py",
    "SS801": "tests/python/test_faults.py",
    "SS802": "tests/python/test_faults.py",
    "SS803": "tests/python/test_faults.py",
    "SS804": "tests/python/test_faults.py",
    "SS901": "tests/python/test_faults.py",
}
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


@pytest.mark.parametrize("rule", RULES)
def test_it_fires(tmp_path, rule):
    case, evidence = RULES[rule][0]
    found = [finding for finding in diagnose(tmp_path, case)["findings"] if finding["rule"] == rule]
    assert found, diagnose(tmp_path, case)
    assert evidence in found[0]["evidence"]
    assert found[0]["where"] and found[0]["advice"] and found[0]["wrong"]
    assert found[0]["saving_ns"] is None or found[0]["saving_ns"] > 0


@pytest.mark.parametrize("rule", RULES)
def test_it_stays_silent(tmp_path, rule):
    assert result_of(tmp_path, RULES[rule][1], rule) == "nothing"


@pytest.mark.parametrize("rule", [rule for rule, case in RULES.items() if case[2]])
def test_it_says_that_it_cannot_tell(tmp_path, rule):
    assert result_of(tmp_path, RULES[rule][2], rule) == "cannot tell"


@pytest.mark.parametrize("rule", ["SS202", "SS203", "SS213", "SS401", "SS501", "SS701", "SS702", "SS703", "SS704", "SS801", "SS802", "SS803", "SS804", "SS901"])
def test_a_trace_of_another_tool_does_not_tell(tmp_path, rule):
    assert result_of(tmp_path, QWEN, rule) == "cannot tell"


@pytest.mark.parametrize("length, is_found", [(50, True), (150, False)])
def test_R07_kernels_are_short_by_guide_000s_number(tmp_path, length, is_found):
    """Longer than the 5 us of their launches, each launched when the one before is done."""
    trace = Trace(deviceProperties=[H100])
    trace.step(0, 0, 24 * (length + 20))
    for start in range(0, 24 * (length + 20), length + 20):
        trace.launch("cudaLaunchKernel", start, 5, "elementwise", start + 18, length)
    found = [finding["evidence"] for finding in diagnose(tmp_path, lambda: trace)["findings"] if finding["rule"] == "SS209"]
    assert bool(found) == is_found and all("0 of 24 kernels are shorter than the call" in text and "24 of 24 take less than 100 us" in text for text in found)


def test_R41_a_callback_has_its_name_wherever_it_is(tmp_path):
    """It is told once, also where it is most of what lies between the steps, and by guide 004's second."""
    for within in (False, True):
        found = {finding["rule"]: finding for finding in diagnose(tmp_path, lambda trace=epochs(within=within): trace)["findings"]}
        assert found["SS214"]["where"] == "[pl][profile][Callback]Plots.on_train_epoch_end" and "SS204" not in found
        assert found["SS214"]["saving_ns"] == pytest.approx(2 * 1.4e9 / 80, rel=1e-5)


@pytest.mark.parametrize("seconds, share", [(16, "50.0 %"), (64, "80.0 %")])
def test_D09_time_between_steps_is_a_share_of_it_and_the_steps(tmp_path, seconds, share):
    """Steps of 400 ms, and one or four times as much behind them: nothing of the step itself would be saved."""
    diagnosis = diagnose(tmp_path, lambda: epochs(seconds=seconds))
    found, = [finding for finding in diagnosis["findings"] if finding["rule"] == "SS214"]
    assert found["saving_ns"] == pytest.approx(seconds * 2e9 / 80, rel=1e-5)
    verdict = diagnosis["verdict"]
    assert verdict["verdict"] == "host-bound" and verdict["sentence"].startswith(f"{share} of a step with the time behind it")
    assert verdict["saving_of"] == "a step with the time behind it" and verdict["whole"] == "a step"
    assert verdict["saving_ns"] == found["saving_ns"] and verdict["saving_ratio"] == found["saving_ratio"] == pytest.approx(float(share[:-2]) / 100, rel=1e-4)


def test_R44_what_fills_the_time_between_steps_has_its_name(tmp_path):
    found, = (finding for finding in diagnose(tmp_path, lambda: epochs("save", 8))["findings"] if finding["rule"] == "SS204")
    assert found["where"] == "save" and "100.0 % of it in this, 8.000 s at the longest" in found["evidence"]
    assert found["saving_ns"] == pytest.approx(8e9 / 79, rel=1e-5)  # of 79 times; the other lies behind the last step


@pytest.mark.parametrize("count", (3, 30))
def test_time_between_steps_is_shared_out_among_the_times_between_them(tmp_path, count):
    """Three steps have two."""
    found, = (finding for finding in diagnose(tmp_path, lambda: steps([1000] * count, 300))["findings"] if finding["rule"] == "SS204")
    assert found["saving_ns"] == 300_000 and found["saving_ratio"] == pytest.approx(300 / 1300)


def loads_without_steps():
    """Twelve times 400 us of waiting for data and 550 us of a kernel."""
    trace = Trace(deviceProperties=[H100])
    for number in range(12):
        start = 1000 * number
        trace.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, 400)
        trace.launch("cudaLaunchKernel", start + 410, 5, "gemm", start + 420, 570)
    return trace


def test_a_trace_without_steps_waits_for_data_too(tmp_path):
    diagnosis = diagnose(tmp_path, loads_without_steps)
    assert diagnosis["verdict"]["verdict"] == "data-bound" and "of the whole trace" in diagnosis["verdict"]["sentence"]
    assert {finding["rule"] for finding in diagnosis["findings"]} >= {"SS101"}


def test_R44_what_ranks_have_between_their_steps_is_no_sum(tmp_path):
    for rank in range(4):
        trace = steps([1000] * 5, 200)
        trace.facts = {"distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 4}}
        trace.write(tmp_path / f"rank{rank}.json")
    done = subprocess.run([STEPSCOPE, "diagnose", tmp_path, "--json"], capture_output=True, text=True, timeout=60, check=True)
    found, = (finding for finding in json.loads(done.stdout)["findings"] if finding["rule"] == "SS204")
    assert found["saving_ns"] == 200_000


def set_up_with_a_long_gather():
    """What DDP exchanges in its constructor takes longer than all that its steps do."""
    trace = Trace(distributedInfo={"backend": "gloo", "rank": 0, "world_size": 1})
    trace.span("cpu_op", "c10d::allgather_", 0, 5)
    trace.span("user_annotation", "gloo:all_gather", 10, 90000, tid=7)
    for number in range(3):
        start = 100000 + 1000 * number
        trace.step(number, start, 1000)
        trace.op("aten::mm", start, 300)
        trace.span("cpu_op", "c10d::allreduce_", start + 310, 5)
        trace.span("user_annotation", "gloo:all_reduce", start + 320, 600, tid=7)
    return trace


def test_the_collective_that_steps_wait_for_is_one_of_theirs(tmp_path):
    found, = (finding for finding in diagnose(tmp_path, set_up_with_a_long_gather)["findings"] if finding["rule"] == "SS601")
    assert found["where"].startswith("gloo:all_reduce in ")


def test_what_holds_up_chosen_steps_is_theirs(tmp_path):
    trace = Trace()
    for number in range(4):
        trace.step(number, 1000 * number, 900)
        for item in range(number + 1):
            trace.op("aten::item", 1000 * number + 100 * item, 50)
    trace.op("aten::item", 2950, 20)  # between two
    path = trace.write(tmp_path / "trace.json")
    for steps, count, own in ((None, 11, 520), ("1", 2, 100), ("2-3", 7, 350)):
        done = subprocess.run([STEPSCOPE, "report", path, "--table", "host_waits", "--json", *(["--steps", steps] if steps else [])],
                              capture_output=True, text=True, timeout=60, check=True)
        row, = json.loads(done.stdout)["rows"]
        assert (row["count"], row["own_ns"], row["total_ns"]) == (count, 1000 * own, 1000 * own)


def test_canary_holds_times_of_the_same_steps_against_each_other(tmp_path):
    """Also of work that runs behind the step that launched it."""
    trace = Trace()
    for number in range(4):
        start = 10_000 * number
        trace.step(number, start, 10_000)
        trace.span("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start, 7000)
        trace.launch("cudaLaunchKernel", start + 8000, 1000, "gemm", start + 9500, 2000)
    path = trace.write(tmp_path / "trace.json")
    for steps, cpu, cuda in (("0-3", 32, 8), ("1-2", 16, 4)):
        block = subprocess.run([STEPSCOPE, "diagnose", path, "--style", "canary", "--steps", steps], check=True, capture_output=True, text=True,
                               timeout=60).stdout
        assert f"WARNING: CPU time ({cpu}ms) >> CUDA time ({cuda}ms)" in block, block


def test_canary_counts_the_time_of_a_thread_once(tmp_path):
    """Where its operators cross."""
    trace = Trace()
    for start in range(0, 40_000, 10_000):
        trace.step(start // 10_000, start, 10_000)
        trace.op("aten::mm", start, 6000)
        trace.op("aten::mul", start + 3000, 5000)
        trace.launch("cudaLaunchKernel", start + 8000, 1000, "gemm", start + 9000, 500)
    path = trace.write(tmp_path / "trace.json")
    block = subprocess.run([STEPSCOPE, "diagnose", path, "--style", "canary"], check=True, capture_output=True, text=True, timeout=60).stdout
    assert "WARNING: CPU time (36ms) >> CUDA time (2ms)" in block, block


@pytest.mark.parametrize("lost", ["none", "at the end", "in two steps", "everywhere"])
def test_I05_kernels_that_the_profiler_lost_are_missed(tmp_path, lost):
    """The device looks idle without them, and it was not."""
    trace, missing = Trace(), 0
    for number in range(10):
        start = 10_000 * number
        trace.step(number, start, 10_000)
        trace.op("aten::mm", start, 9000)
        for kernel in range(9):
            is_lost = {"none": False, "at the end": number == 9 and kernel == 8, "in two steps": number in (3, 4), "everywhere": kernel % 2}[lost]
            begin = start + 1000 * kernel
            missing += bool(is_lost)
            trace.launch("cudaLaunchKernel", begin, 5, "gemm", begin + 10, 980)
            if is_lost:
                trace.events.pop()
    path = trace.write(tmp_path / "trace.json")
    done = subprocess.run([STEPSCOPE, "report", path, "--table", "ledger", "--json"], capture_output=True, text=True, timeout=60, check=True)
    said = [row["count"] for row in json.loads(done.stdout)["rows"] if row["where"] == "launches"]
    assert said == ([missing] if missing else [])
    done = subprocess.run([STEPSCOPE, "diagnose", path, "--json"], capture_output=True, text=True, timeout=60, check=True)
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["verdict"] == ("unknown" if lost == "everywhere" else "healthy")


def test_samples_that_a_loader_takes_one_by_one_are_no_loop_of_the_program(tmp_path):
    trace = index_loop()
    trace.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 90, 500)
    assert result_of(tmp_path, lambda: trace, "SS405") == "nothing"


def test_D04_nothing_is_invented_of_a_healthy_run(tmp_path):
    healthy = diagnose(tmp_path, V100_TRAINING)
    assert healthy["verdict"]["verdict"] == "healthy"
    assert not [finding for finding in healthy["findings"] if finding["severity"] == "problem"]


@pytest.mark.parametrize("seen,share", [(700, "30.0 %"), (950, None), (1000, None)])
def test_D04_a_step_that_nobody_saw_is_not_healthy(tmp_path, seen, share):
    trace = Trace()
    for number in range(10):
        trace.step(number, 1000 * number, 1000)
        trace.op("aten::mm", 1000 * number, seen)
    verdict = diagnose(tmp_path, lambda: trace)["verdict"]
    told = f"{share} of a step is in no phase, operator or range: nobody knows what it goes to; record_function()"
    assert verdict["verdict"] == "unknown" and (told in verdict["sentence"]) == bool(share), verdict


def test_D05_values_copies_and_small_kernels_are_each_told(tmp_path):
    assert diagnose(tmp_path, reads_a_value)["verdict"]["verdict"] == "sync-bound"
    assert result_of(tmp_path, RESNET, "SS307") == result_of(tmp_path, BERT, "SS209") == "found"
    assert diagnose(tmp_path, BERT)["verdict"]["verdict"] == "launch-bound"


def test_D09_the_wait_for_a_batch_behind_a_copy_is_data(tmp_path):
    """Results are copied to the host, and then the loader, which has no workers, makes the next batch."""
    trace = reads_a_value()
    for event in trace.events:
        if event["name"] == "python_work":
            event.update(cat="user_annotation", name="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    found = diagnose(tmp_path, lambda: trace)
    assert found["verdict"]["verdict"] == "data-bound" and found["verdict"]["sentence"] == "25.0 % of a step; next sync-bound 5.0 %"


def test_D09_idle_time_makes_a_run_bound_by_one_thing(tmp_path):
    """Behind .item() memory is pinned: seen as a copy's doing and as a call's."""
    trace = Trace(deviceProperties=[H100])
    for number in range(3):
        start = 1000 * number
        trace.step(number, start, 1000)
        trace.launch("cudaLaunchKernel", start + 10, 5, "nvjet_tst_128x128", start + 20, 200)
        trace.op("aten::_local_scalar_dense", start + 30, 210)
        trace.launch("cudaMemcpyAsync", start + 35, 5, "Memcpy DtoH (Device -> Pageable)", start + 220, 2, "gpu_memcpy", bytes=4)
        trace.call("cudaStreamSynchronize", start + 42, 190)
        trace.call("cudaHostAlloc", start + 240, 650)
        trace.launch("cudaLaunchKernel", start + 895, 5, "nvjet_tst_128x128", start + 902, 90)
    found = diagnose(tmp_path, lambda: trace)
    savings = {finding["rule"]: finding["saving_ns"] for finding in found["findings"]}
    assert savings["SS206"] > 600_000 < savings["SS207"]
    assert found["verdict"]["verdict"] == "sync-bound"


def synchronizes(until_us, batch_us=0):
    """Kernels are launched well ahead, then a call waits until the device is done, and the host works for 250 us until it launches more, the
    last of it while it waits for a batch."""
    trace = Trace(deviceProperties=[H100])
    for number in range(4):
        start = 1000 * number
        trace.step(number, start, 1000)
        for i in range(7):
            trace.launch("cudaLaunchKernel", start + 10 + 5 * i, 4, "nvjet_tst_128x128", start + 20 + 100 * i, 100)
        trace.call("cudaDeviceSynchronize", start + until_us, 730 - until_us)
        trace.op("python_work", start + 735, 250 - batch_us)
        if batch_us:
            trace.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", start + 985 - batch_us, batch_us)
    return trace


def test_D05_a_synchronization_in_each_step_is_named(tmp_path):
    """What the device idles behind it is the call's doing, and no launch's: the host would have been ahead."""
    trace = synchronizes(50)
    trace.launch("cudaLaunchKernel", 4010, 5, "nvjet_tst_128x128", 4020, 100)
    found = diagnose(tmp_path, lambda: trace)
    named, = [finding for finding in found["findings"] if finding["rule"] == "SS207"]
    assert found["verdict"]["verdict"] == "sync-bound" and named["where"] == "cudaDeviceSynchronize"
    assert named["evidence"].startswith("cudaDeviceSynchronize: 4 calls until the device is done") and named["saving_ns"] == 300_000
    assert "torch.cuda.synchronize()" in named["advice"]
    assert result_of(tmp_path, lambda: trace, "SS205") == "nothing"


@pytest.mark.parametrize("period", [10, 12])
def test_D05_tiny_kernels_back_to_back_are_launch_bound(tmp_path, period):
    """Of two programs that do nothing but launch the faster one is as bound by it: there a kernel ends while the next one is launched."""
    trace = Trace(deviceProperties=[H100])
    for number in range(5):
        trace.step(number, 10_000 * number, 10_000)
        for start in range(10_000 * number, 10_000 * number + 9_800, period):
            trace.launch("cudaLaunchKernel", start, 6, "vectorized_elementwise_kernel", start + 8, 2)
    verdict = diagnose(tmp_path, lambda: trace)["verdict"]
    assert verdict["verdict"] == "launch-bound" and verdict["ratio"] > 0.6
    assert result_of(tmp_path, lambda: trace, "SS209") == "found"


def test_D05_a_short_synchronization_is_no_reason_of_a_long_stall(tmp_path):
    """Without it the host would have launched 20 us sooner: the rest is the host's."""
    trace = synchronizes(710)
    found = diagnose(tmp_path, lambda: trace)
    assert found["verdict"]["verdict"] == "launch-bound" and "SS207" not in [finding["rule"] for finding in found["findings"]]


def test_D05_behind_a_synchronization_a_batch_is_waited_for(tmp_path):
    found = diagnose(tmp_path, lambda: synchronizes(50, batch_us=240))
    assert found["verdict"]["verdict"] == "data-bound" and found["verdict"]["sentence"].startswith("24.0 % of a step")


@pytest.mark.parametrize("memory", ["D2M (Device -> Memory)", "D2H (Device -> Host)"])
def test_D05_values_are_found_by_intels_names(tmp_path, memory):
    """As Kineto writes them for XPUs: the copy by letters, Level Zero's call, the unified runtime's."""
    trace = reads_a_value("urEnqueueKernelLaunch", "urEnqueueUSMMemcpy", f"Memcpy {memory}", "zeEventHostSynchronize")
    found, = [finding for finding in diagnose(tmp_path, lambda: trace)["findings"] if finding["rule"] == "SS207" and "copies" in finding["evidence"]]
    theirs, = [finding for finding in diagnose(tmp_path, reads_a_value)["findings"] if finding["rule"] == "SS207" and "copies" in finding["evidence"]]
    assert found["evidence"] == theirs["evidence"] and found["saving_ns"] == theirs["saving_ns"]
    done = subprocess.run([STEPSCOPE, "query", trace.write(tmp_path / "made.json"), "SELECT pageable_count FROM copy_waits", "--json"], check=True,
                          capture_output=True, text=True)
    assert json.loads(done.stdout)["rows"] == [{"pageable_count": 2 if "Memory" in memory else 0}]


def test_D05_pinned_buffers_that_are_made_in_steps(tmp_path):
    """The device waits while the host pins memory for each batch (pytorch#89753)."""
    trace = Trace(deviceProperties=[H100])
    for number in range(3):
        start = 1000 * number
        trace.step(number, start, 1000)
        trace.call("cudaHostAlloc", start + 10, 400)
        trace.launch("cudaLaunchKernel", start + 500, 5, "nvjet_tst_128x128", start + 510, 400)
    found, = [finding for finding in diagnose(tmp_path, lambda: trace)["findings"] if finding["rule"] == "SS502"]
    assert "3 calls" in found["evidence"] and found["saving_ns"] == pytest.approx(400e3)


def test_D06_a_device_that_is_busy_and_mostly_empty(tmp_path):
    trace = Trace(deviceProperties=[H100])
    trace.step(0, 0, 1000)
    trace.launch("cudaLaunchKernel", 5, 5, "resident_kernel", 10, 985, **{"blocks per SM": 0.2, "warps per SM": 2})
    diagnosis = diagnose(tmp_path, lambda: trace)
    assert diagnosis["verdict"]["verdict"] == "compute-bound"
    found, = [finding for finding in diagnosis["findings"] if finding["rule"] == "SS303"]
    assert "98.5 % of the steps" in found["evidence"] and "20.0 % of the multiprocessors" in found["evidence"]


@pytest.mark.parametrize("blocks, verdict", [(0.07, "compute-bound"), (0.4, "compute-bound"), (90, "memory-bound")])
def test_D06_a_device_that_is_mostly_empty_is_not_held_up_by_its_memory(tmp_path, blocks, verdict):
    """Whatever the names of its kernels say."""
    trace = Trace(deviceProperties=[H100])
    for number in range(4):
        trace.step(number, 1000 * number, 1000)
        trace.launch("cudaLaunchKernel", 1000 * number + 5, 5, "my_reduce_kernel", 1000 * number + 10, 985, **{"blocks per SM": blocks, "warps per SM": 2})
    diagnosis = diagnose(tmp_path, lambda: trace)
    assert diagnosis["verdict"]["verdict"] == verdict
    assert [finding["rule"] for finding in diagnosis["findings"] if finding["rule"] in ("SS303", "SS304")] == ["SS303" if blocks < 0.5 else "SS304"]


def test_D06_nvidia_smi_calls_it_busy(tmp_path):
    trace = Trace(deviceProperties=[H100], baseTimeNanoseconds=1795244589000000000)
    trace.step(0, 0, 2000)
    trace.launch("cudaLaunchKernel", 5, 5, "resident_kernel", 10, 1985, **{"blocks per SM": 0.2, "warps per SM": 2})
    trace.write(tmp_path / "trace.json")
    rows = [f"2026/11/21 07:03:09.00{ms}, 0, 100 %" for ms in (0, 1)]
    (tmp_path / "gpu_usage.csv").write_text("\n".join(["timestamp, index, utilization.gpu [%]", *rows, ""]))
    found, = [finding for finding in diagnose(tmp_path, tmp_path)["findings"] if finding["rule"] == "SS303"]
    assert "20.0 % of the multiprocessors; nvidia-smi's 100.0 % only says that some kernel runs" in found["evidence"]


def test_spare_memory_of_each_rank_is_told(tmp_path):
    """With several ranks tables name devices with their rank."""
    found = [finding["where"] for finding in diagnose(tmp_path, lambda: Ranks(idle_with_memory))["findings"] if finding["rule"] == "SS504"]
    assert sorted(found) == ["rank 0, device 0", "rank 1, device 0"]


@pytest.mark.parametrize("before, at_end", [(["sleep", "300"], ["steps", "3", "0"]), (["push", "a", "pop"], ["sleep", "300", "push", "b", "pop"])])
def test_SS411_a_first_step_that_comes_late(tmp_path, before, at_end):
    """20 minutes are too long for a test: 0.2 s instead. That a step comes at once is no finding, nor is another tool's trace one."""
    actor = os.path.join(os.environ["BUILD"], "tests", "e2e", "actor")
    (tmp_path / "thresholds.yaml").write_text(f"SS411:\n  minutes: {0.2 / 60}\n")
    subprocess.run([STEPSCOPE, "run", "--quiet", "--out", "run", "--", actor, *before, *at_end], check=True, timeout=60, cwd=tmp_path)
    for options, expected in ((["--thresholds", "thresholds.yaml"], "found"), ([], "nothing")):
        done = subprocess.run([STEPSCOPE, "diagnose", "run", "--json", *options], check=True, capture_output=True, timeout=60, cwd=tmp_path)
        assert {check["rule"]: check["result"] for check in json.loads(done.stdout)["checks"]}["SS411"] == expected
    assert result_of(tmp_path, QWEN, "SS411") == "cannot tell"


def test_a_snapshot_without_events_does_not_tell_what_failed(tmp_path):
    assert result_of(tmp_path, lambda: Snapshot(without_events), "SS505") == "cannot tell"


# what nvidia-smi saw, its three rules: SS208 little used, SS503 almost full, SS504 room for more
@pytest.mark.parametrize("seen, expected", [((97, 79000), {"SS503"}), ((97, 60000), set()), ((45, 60000), {"SS208"}), ((45, 20000), {"SS208", "SS504"}),
                                            ((60, 20000), {"SS504"}), ((0, 10), set())])
def test_guide_000s_table_of_nvidia_smi_alone(tmp_path, seen, expected):
    found = {finding["rule"]: finding for finding in diagnose(tmp_path, usage(*seen))["findings"]}
    assert found.keys() == expected
    assert "98.8 % at most, by nvidia-smi: 79000 of 80000 MiB" in found["SS503"]["evidence"] if "SS503" in expected else True


def test_a_table_of_nvidia_smi_without_these_columns(tmp_path):
    for rule in ("SS208", "SS503", "SS504"):
        assert result_of(tmp_path, lambda: Table("temperature.gpu", "61", "62"), rule) == "cannot tell"


def test_a_trace_that_is_cut_off_says_so(tmp_path):
    cut = tmp_path / "cut.json.gz"
    cut.write_bytes(QWEN.read_bytes()[:300000])
    found, = [finding for finding in diagnose(tmp_path, cut)["findings"] if finding["rule"] == "SS901"]
    assert "cut off" in found["evidence"] and "copy the file again" in found["advice"] and "--pool" not in found["advice"]
    done = subprocess.run([STEPSCOPE, "compare", QWEN, cut], capture_output=True, text=True, timeout=60, check=False)
    assert "damaged     new 'cut.json.gz': " in done.stdout


@pytest.mark.parametrize("percent, first, last", [(62, None, None), (70, 5, 5), (80, 5, 7), (90, 5, 8), (100, 5, 10)])
def test_J08_a_trace_that_lost_kernels_is_judged_by_its_whole_steps(tmp_path, percent, first, last):
    """The rest is of its first steps: that it is cut off is said first, and no step whose kernels are lost is taken for one of an idle device."""
    text = gzip.decompress(RESNET.read_bytes())
    path = tmp_path / "cut.json"
    path.write_bytes(text[:len(text) * percent // 100])
    result = diagnose(tmp_path, path)
    verdict, checks = result["verdict"], {check["rule"]: check["result"] for check in result["checks"]}
    found = {finding["rule"] for finding in result["findings"]}
    assert (verdict["headline"] or "").startswith("not whole: the recording: ") == (percent < 100)
    assert not found & {"SS205", "SS208"}
    block = subprocess.run([STEPSCOPE, "diagnose", path, "--style", "canary"], check=True, capture_output=True, text=True, timeout=60).stdout
    assert "CPU bottleneck" not in block and ("NOTE: not whole" in block) == (percent < 100) and ("CANNOT TELL" in block) == (first is None)
    if first is None:
        assert verdict["verdict"] == "unknown" and "lost all over it" in verdict["sentence"] and verdict["parts"] is None
        assert checks["SS205"] == checks["SS208"] == checks["SS307"] == "cannot tell"
        return
    assert verdict["verdict"] == "healthy" and "compute kernels 8" in verdict["parts"]
    which = f"the others are {first} to {last}" if first < last else f"the other is {first}"
    left = f"{5 - last + first} of 6 steps, as launches or kernels of theirs are lost: {which}"
    assert verdict["left_out"] == (left if percent < 100 else None)


def cut_off(trace, path):
    """The file of the events so far, without what closes it."""
    path.write_text(trace.write(path).read_text().rstrip("]}"))
    return path


def in_turns(traces):
    """What stands in a file that several processes write at once, a buffer at a time."""
    for start in range(0, max(map(len, traces)), 65536):
        yield from (trace[start:start + 65536] for trace in traces)


def over(traces):
    """What stands there when the shorter one came last."""
    longer, shorter = sorted(traces, key=len, reverse=True)
    return [shorter, longer[len(shorter):]]


@pytest.mark.parametrize("mixed", [in_turns, over])
def test_J10_a_file_that_two_ranks_wrote(tmp_path, mixed):
    """No verdict without that word: what is said of a step, and of its device, is of halves."""
    path = tmp_path / "shared.json"
    path.write_bytes(b"".join(mixed([gzip.decompress(path.read_bytes()) for path in sorted(DLRM.glob("*.json.gz"))[:2]])))
    result = diagnose(tmp_path, path)
    assert result["verdict"]["headline"].startswith("not whole: the recording: file written by several processes: ")
    found, = [finding for finding in result["findings"] if finding["rule"] == "SS901"]
    assert found["advice"].startswith("give each process a file of its own")


def of_ten_steps(launched, worked):
    """Of 20 launches, each in an operator, the first ones; and of these the first ones with their kernels. (By step.)"""
    trace = Trace()
    for number in range(10):
        trace.step(number, 1000 * number, 1000)
        for i in range(20):
            start = 1000 * number + 40 * i
            trace.op("aten::mm", start, 35)
            if i < launched[number] and i < worked[number]:
                trace.launch("cudaLaunchKernel", start + 5, 5, "gemm", start + 12, 38)
            elif i < launched[number]:
                trace.call("cudaLaunchKernel", start + 5, 5, correlation=100000 + start)
    return trace


ALL, NONE = [20] * 10, [0] * 10


@pytest.mark.parametrize("launched, worked, left_out", [
    (ALL, ALL, None),
    (ALL, ALL[:6] + [12, 0, 0, 0], "4 of 10 steps, as launches or kernels of theirs are lost: the others are 0 to 5"),  # kernels are lost
    (ALL[:6] + [12, 0, 0, 0], ALL, "4 of 10 steps, as launches or kernels of theirs are lost: the others are 0 to 5"),  # and their launches
    (ALL[:6] + NONE[6:], ALL, "5 of 10 steps, as launches or kernels of theirs are lost: the others are 0 to 4"),  # the end of 5 may be, too
    (ALL, [20, 20, 3] + ALL[3:], "3 of 10 steps, as launches or kernels of theirs are lost: the others are 3 to 9"),  # a hole
    (ALL, [3] * 10, "unknown"),
    (ALL, NONE, "unknown"),  # the device has nothing left
])
def test_J08_steps_that_lost_kernels_or_launches(tmp_path, launched, worked, left_out):
    trace = of_ten_steps(launched, worked)
    verdict = diagnose(tmp_path, cut_off(trace, tmp_path / "cut.json"))["verdict"]
    assert verdict["headline"].startswith("not whole: ")
    assert verdict["left_out"] == (None if left_out == "unknown" else left_out)
    assert (verdict["verdict"] == "unknown" and "lost all over it" in verdict["sentence"]) == (left_out == "unknown")
    # a file that is whole has lost what its launches have launched, if it has work at all (CUPTI may be missing); fewer
    # launches are how it was
    is_lost = any(worked) and any(calls > kernels for calls, kernels in zip(launched, worked))
    verdict = diagnose(tmp_path, trace.write(tmp_path / "made.json"))["verdict"]
    assert verdict["headline"] is None and verdict["left_out"] == (left_out if is_lost and left_out != "unknown" else None)
    assert ("lost all over it" in verdict["sentence"]) == (is_lost and left_out == "unknown")


def test_J08_without_steps_a_trace_that_lost_kernels_tells_nothing_of_devices(tmp_path):
    for worked, is_known in ((ALL, True), (ALL[:8] + NONE[8:], False)):
        trace = of_ten_steps(ALL, worked)
        trace.events = [event for event in trace.events if not event["name"].startswith("ProfilerStep")]
        result = diagnose(tmp_path, cut_off(trace, tmp_path / f"{is_known}.json"))
        assert ("lost all over it" in result["verdict"]["sentence"]) == (not is_known)
        told, = [check["result"] for check in result["checks"] if check["rule"] == "SS205"]
        assert (told == "cannot tell") == (not is_known)


def of_kernels(durations):
    """A step of 1000 us for each, with a kernel that begins at 130 and lasts as long; None: the trace does not say it."""
    trace = Trace()
    for number, duration in enumerate(durations):
        start = 1000 * number
        trace.step(number, start, 1000)
        trace.op("aten::mm", start + 100, 100)
        trace.launch("cudaLaunchKernel", start + 110, 10, "gemm", start + 130, duration)
        if duration is None:
            del trace.events[-1]["dur"]
    return trace


@pytest.mark.parametrize("durations, left_out", [
    ([-5] * 8, "unknown"),
    ([None] * 8, "unknown"),
    ([400] * 5 + [-5] * 3, "3 of 8 steps, as durations of kernels of theirs are lost: the others are 0 to 4"),
    ([-5] + [400] * 7, "2 of 8 steps, as durations of kernels of theirs are lost: the others are 2 to 7"),  # it may have run until the next begins
    ([400] * 7 + [-5], "1 of 8 steps, as durations of kernels of theirs are lost: the others are 0 to 6"),
])
def test_T03_steps_whose_kernels_have_lost_their_durations_carry_no_verdict(tmp_path, durations, left_out):
    is_known = left_out != "unknown"
    result = diagnose(tmp_path, of_kernels(durations).write(tmp_path / "made.json"))
    verdict = result["verdict"]
    assert verdict["headline"].startswith("not whole: ")
    assert verdict["left_out"] == (left_out if is_known else None)
    assert ("durations are lost all over" in verdict["sentence"]) == (not is_known)
    assert "compute kernels 40.0 %" in verdict["parts"] if is_known else verdict["parts"] is None
    assert is_known or "SS309" not in {finding["rule"] for finding in result["findings"]}


@pytest.mark.parametrize("durations, is_known", [([400] * 8, True), ([400] * 4 + [-5] * 4, False)])
def test_T03_without_steps_a_trace_that_lost_durations_tells_nothing_of_devices(tmp_path, durations, is_known):
    trace = of_kernels(durations)
    trace.events = [event for event in trace.events if not event["name"].startswith("ProfilerStep")]
    verdict = diagnose(tmp_path, trace.write(tmp_path / "made.json"))["verdict"]
    assert ("durations are lost all over" in verdict["sentence"]) == (verdict["parts"] is None) == (not is_known)


def test_T03_work_behind_which_its_stream_has_none_is_of_its_step(tmp_path):
    trace = of_kernels([400] * 8)
    trace.launch("cudaMemsetAsync", 3020, 5, "Memset (Device)", 3030, -1, "gpu_memset", stream=9)
    verdict = diagnose(tmp_path, trace.write(tmp_path / "made.json"))["verdict"]
    assert verdict["left_out"] == "4 of 8 steps, as durations of kernels of theirs are lost: the others are 4 to 7"
    assert "compute kernels 40.0 %" in verdict["parts"]


def test_T03_little_work_without_a_duration_changes_no_verdict(tmp_path):
    """It ends where the next begins: in a step of 1000 us that is 40 us at most."""
    trace = of_ten_steps(ALL, ALL)
    for event in [event for event in trace.events if event["cat"] == "kernel"][::20]:
        event["dur"] = -1
    verdict = diagnose(tmp_path, trace.write(tmp_path / "made.json"))["verdict"]
    assert verdict["headline"].startswith("not whole: ") and verdict["left_out"] is None and "compute kernels" in verdict["parts"]


def test_an_impossible_occupancy_is_not_measured(tmp_path):
    trace = busy()
    trace.launch("cudaLaunchKernel", 5, 5, "resident_kernel", 10, 85, **{"warps per SM": 70, "est. achieved occupancy %": 150})
    done = subprocess.run([STEPSCOPE, "query", "--csv", trace.write(tmp_path / "made.json"), "SELECT occupancy_ratio FROM kernels WHERE "
                           "kernel = 'resident_kernel'"], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n")[1] == ""


def test_a_clock_that_is_held_down_says_by_what(tmp_path):
    held = {"gpu0__clocks_event_reasons__hw_thermal_slowdown": 1, "gpu0__clocks_event_reasons__gpu_idle": 1}
    found, = [finding for finding in diagnose(tmp_path, lambda: clocks(**held))["findings"] if finding["rule"] == "SS805"]
    assert "hw_thermal_slowdown" in found["where"] and "100.0 % of the time" in found["evidence"]


def beside_clocks(tmp_path, names, *values):
    """A trace of 2 ms, and nvidia-smi's table of its time."""
    trace = busy(baseTimeNanoseconds=1795244589000000000)
    trace.write(tmp_path / "trace.json")
    rows = [f"2026/11/21 07:03:09.00{ms}, 0, {', '.join(values)}" for ms in (0, 1)]
    (tmp_path / "gpu_usage.csv").write_text("\n".join([f"timestamp, index, {names}", *rows, ""]))
    return tmp_path


def test_clocks_of_nvidia_smi_beside_the_run(tmp_path):
    low = diagnose(tmp_path, beside_clocks(tmp_path, "clocks.current.sm [MHz], clocks.max.sm [MHz]", "1485 MHz", "1980 MHz"))
    found, = [finding for finding in low["findings"] if finding["rule"] == "SS805"]
    assert found["where"] == "GPU 0 clocks.current.sm" and "75.0 %" in found["evidence"] and found["saving_ns"] > 0


def test_nvidia_smi_says_why_the_clock_is_low_or_that_it_is_not(tmp_path):
    (tmp_path / "held").mkdir()
    (tmp_path / "high").mkdir()
    (tmp_path / "unknown").mkdir()
    held = diagnose(tmp_path, beside_clocks(tmp_path / "held", "clocks_event_reasons.hw_thermal_slowdown", "Active"))
    found, = [finding for finding in held["findings"] if finding["rule"] == "SS805"]
    assert found["where"] == "GPU 0 clocks_event_reasons.hw_thermal_slowdown" and "100.0 % of the time" in found["evidence"]
    names = "clocks.sm [MHz], clocks.max.sm [MHz]"
    assert result_of(tmp_path, beside_clocks(tmp_path / "high", names, "1965 MHz", "1980 MHz"), "SS805") == "nothing"
    assert result_of(tmp_path, beside_clocks(tmp_path / "unknown", names, "[N/A]", "1980 MHz"), "SS805") == "cannot tell"


def test_D07_no_memory_problem_without_evidence(tmp_path):
    for case in (QWEN, RESNET, V100_TRAINING):
        for rule in ("SS501", "SS503", "SS803"):
            assert result_of(tmp_path, case, rule) != "found"


IDLE = ("idle: launch", "idle: host", "idle: queued", "idle: data wait", "idle: synchronization", "idle: runtime calls", "idle: nothing recorded")
# what a rule is about: the parts of a step of which its saving is one
ABOUT = {"SS205": ("idle: launch", "idle: host"), "SS206": ("idle: runtime calls",), "SS207": IDLE, "SS303": ("compute kernels",), "SS304": ("compute kernels",),
         "SS307": ("exposed copies",), "SS308": ("exposed copies",), "SS502": IDLE, "SS601": ("exposed communication",), "SS805": ("compute kernels",)}
SAVERS = [case for cases in RULES.values() for case in cases if isinstance(case, Path)] + [case[0][0] for case in RULES.values() if isinstance(case[0][0], Path)]


def allocations_on_two_threads():
    """4 ms of them, beside a device that does nothing for 0.1 ms of a step."""
    trace = busy()
    for tid in (1, 2):
        trace.span("cuda_runtime", "cudaMalloc", 50, 1900, tid=tid)
    return trace


@pytest.mark.parametrize("case", [*sorted(set(SAVERS)), allocations_on_two_threads], ids=lambda case: getattr(case, "name", case))
def test_no_saving_is_more_than_the_time_that_it_is_about(tmp_path, case):
    path = case().write(tmp_path / "made.json") if callable(case) else case
    done = subprocess.run([STEPSCOPE, "query", path, "SELECT part, mean_ns FROM step_breakdown", "--json"], capture_output=True, text=True, timeout=60, check=True)
    parts = {row["part"]: row["mean_ns"] for row in json.loads(done.stdout)["rows"]}
    diagnosis = diagnose(tmp_path, case)
    for finding in diagnosis["findings"]:
        if finding["rule"] in ABOUT and parts and finding["saving_ns"] is not None:
            assert finding["saving_ns"] <= sum(parts[part] for part in ABOUT[finding["rule"]]) * (1 + 1e-9), finding
    assert (diagnosis["verdict"]["ratio"] or 0) <= 1


def test_who_is_late_is_no_slow_network(tmp_path):
    """All but a few microseconds of the exchange is waiting for ranks that are late, most of it for one. All others would gain the least that any of
    them waits for that one; the rest they wait for several."""
    diagnosis = diagnose(tmp_path, DLRM)
    exchange, = [finding for finding in diagnosis["findings"] if finding["rule"] == "SS601"]
    together, one = [finding for finding in diagnosis["findings"] if finding["rule"] == "SS602"]
    assert diagnosis["verdict"]["sentence"] == "launch-bound (44.6 % of a step) and straggler-bound (36.6 %: rank 7)"
    assert one["where"] == "rank 7" and "longest for rank 7" in exchange["evidence"] and "each of the others waits 5.081 ms" in one["evidence"]
    assert exchange["saving_ns"] < 10_000 and one["saving_ns"] == pytest.approx(1_209_250)
    assert together["saving_ns"] + one["saving_ns"] == pytest.approx(5_857_750, rel=1e-4) and "beyond what is told of rank 7, no single" in together["evidence"]


def test_T06_one_call_that_is_longer_than_all_others_is_no_mean(tmp_path):
    """The last one of its stream may be that long: the importer lets its end stand."""
    trace = one_kernel()
    for i in range(10):
        trace.launch("cudaLaunchKernel", 1900 + i, 1, "scan_kernel", 1830 + 10 * i, 5)
    scans = [event for event in trace.events if event["name"] == "scan_kernel"]
    scans[0]["dur"] = scans[1]["dur"] = 5
    scans[-1]["dur"] = 1_600_000
    found, = [finding for finding in diagnose(tmp_path, lambda: trace)["findings"] if finding["rule"] == "SS309"]
    assert "12 calls, one of 1.600 s, the others of 5.000 us" in found["evidence"] and "its end may be wrong" in found["advice"]


def test_D10_spikes_are_apart_from_the_steady_state(tmp_path):
    found, = [finding for finding in diagnose(tmp_path, lambda: steps_and_stalls(10))["findings"] if finding["rule"] == "SS409"]
    assert found["where"] == "every 10 steps, from step 9" and "the others 1.001 ms" in found["evidence"]


@pytest.mark.parametrize("lengths,left_out", [
    ([9000] + [1000] * 9, "step 0, 9.000 ms, 9.000 ms of it in no phase, as start-up: the median of the others is 1.000 ms (--steps 0-9 counts all)"),
    ([9000, 5000] + [1000] * 6, "steps 0 to 1, 7.000 ms on the mean, 7.000 ms of it in no phase, as start-up: the median of the others is 1.000 ms "
                                "(--steps 0-7 counts all)"),
    ([1900] + [1000] * 9, None), ([9000] * 3 + [1000] * 5, "steps 0 to 1"), ([9000, 1000, 1000], None)])
def test_D10_the_start_up_is_apart_from_the_steady_state(tmp_path, lengths, left_out):
    path = steps(lengths).write(tmp_path / "made.json")
    text = diagnose(tmp_path, path)["verdict"]["left_out"]
    assert text.startswith(left_out) if left_out else text is None
    done = subprocess.run([STEPSCOPE, "diagnose", path, "--steps", f"0-{len(lengths)}", "--json"], check=True, capture_output=True, text=True)
    assert json.loads(done.stdout)["verdict"]["left_out"] is None


def test_D10_what_a_device_did_in_the_start_up_saves_nothing(tmp_path):
    """Memory is taken from the driver in the first step only."""
    trace = Trace(deviceProperties=[H100])
    for number, start in enumerate([0, *range(9000, 15000, 1000)]):
        trace.step(number, start, 1000 if number else 9000)
        trace.launch("cudaLaunchKernel", start + 500, 5, "nvjet_tst_128x128", start + 510, 400)
    trace.call("cudaMalloc", 1000, 7000)
    verdict = diagnose(tmp_path, lambda: trace)["verdict"]
    assert verdict["left_out"].startswith("step 0, 9.000 ms")
    assert result_of(tmp_path, lambda: trace, "SS502") == "nothing"


def graphs(kernel_us):
    """Twenty kernels of each graph, launched by one call of 60 us, in which the device is idle: 3 us for each."""
    trace = Trace(deviceProperties=[H100])
    for number in range(8):
        start = 1000 * number
        trace.step(number, start, 1000)
        trace.launch("cudaGraphLaunch", start + 40, 60, "triton_0", start + 100, kernel_us)
        for node in range(1, 20):
            trace.span("kernel", f"triton_{node}", start + 100 + 6 * node, kernel_us, pid=0, tid=7, correlation=trace.number, stream=7, device=0)
    return trace


@pytest.mark.parametrize("kernel_us,expected", [(5, "nothing"), (0.5, "found")])
def test_a_graph_is_launched_once_for_all_of_its_kernels(tmp_path, kernel_us, expected):
    trace = graphs(kernel_us)
    assert result_of(tmp_path, lambda: trace, "SS209") == expected
    path = trace.write(tmp_path / "made.json")
    done = subprocess.run([STEPSCOPE, "query", path, "SELECT calls, work_count, short_count FROM launches", "--json"], check=True,
                          capture_output=True, text=True)
    assert list(json.loads(done.stdout)["rows"][0].values()) == [8, 160, 0 if expected == "nothing" else 160]
    assert result_of(tmp_path, lambda: trace, "SS210") == "nothing"  # 8 launches


def test_times_are_those_of_all_rules_and_of_the_tables_made_for_them():
    """Within what the whole program took; without the option the output is the same for the same run."""
    program = subprocess.Popen([STEPSCOPE, "diagnose", V100_TRAINING, "--json", "--times"], stdout=subprocess.PIPE)
    result = json.loads(program.stdout.read())
    _, status, usage = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    times = {kind: {row["name"]: row["cpu_ns"] for row in result["times"] if row["kind"] == kind} for kind in ("rule", "table", "shared")}
    assert times["rule"].keys() == {check["rule"] for check in result["checks"]} and len(times["shared"]) == 1
    assert {"step_breakdown", "ops", "kernels"} <= times["table"].keys() and "memory_peak" not in times["table"]
    every = [row["cpu_ns"] for row in result["times"]]
    assert every == sorted(every, reverse=True) and min(every) >= 0
    assert 0 < sum(every) < 1e9 * (usage.ru_utime + usage.ru_stime)
    done = subprocess.run([STEPSCOPE, "diagnose", V100_TRAINING, "--times"], check=True, capture_output=True, text=True)
    plain = subprocess.run([STEPSCOPE, "diagnose", V100_TRAINING], check=True, capture_output=True, text=True)
    assert done.stdout.startswith(plain.stdout) and "What it took" in done.stdout[len(plain.stdout):]
    assert "SS101" in done.stdout[len(plain.stdout):] and "times" not in diagnose(None, V100_TRAINING)


def test_every_rule_is_tested():
    rules = {path.name[:5] for path in (ROOT / "rules").glob("*.sql")}
    assert rules == RULES.keys() | ELSEWHERE.keys()
    for rule, path in ELSEWHERE.items():
        assert rule in (ROOT / path).read_text(), (rule, path)


def test_a_trace_has_waits_for_a_loader_and_nothing_of_its_batches(tmp_path):
    """SS102 finds a loader without workers there: that there was no loop over one would contradict it."""
    trace, path = Trace(), tmp_path / "inference.json"
    for number in range(6):
        trace.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1000 * number, 400)
        trace.op("aten::mm", 1000 * number + 400, 500)
    assert result_of(tmp_path, lambda: trace, "SS102") == "found"
    trace.write(path)
    done = subprocess.run([STEPSCOPE, "report", path, "--table", "data_loader"], capture_output=True, text=True, timeout=60, check=True)
    assert "waits for a data loader were recorded, but not what its batches and workers do" in " ".join(done.stdout.split())
