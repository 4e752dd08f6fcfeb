# SPDX-License-Identifier: Apache-2.0
"""Rules about devices: kernels, launches, copies, synchronizations, memory and clocks, also by the table of nvidia-smi."""
import json
import subprocess

import pytest
from made_trace import H100, Trace, busy
from rule_inputs import (BERT, QWEN, RESNET, STEPSCOPE, V100_TRAINING, Ranks, Snapshot, Table, clocks, diagnose, idle_with_memory, mostly_empty, reads_a_value,
                         result_of, usage, without_events)


@pytest.mark.parametrize("length, is_found", [(50, True), (150, False)])
def test_R07_kernels_are_short_by_guide_000s_number(tmp_path, length, is_found):
    """Longer than the 5 us of their launches, each launched when the one before is done."""
    trace = Trace(deviceProperties=[H100])
    trace.step(0, 0, 24 * (length + 20))
    for start in range(0, 24 * (length + 20), length + 20):
        trace.launch("cudaLaunchKernel", start, 5, "elementwise", start + 18, length)
    found = [finding["evidence"] for finding in diagnose(tmp_path, lambda: trace)["findings"] if finding["rule"] == "SS209"]
    assert bool(found) == is_found and all("0 of 24 kernels are shorter than the call" in text and "24 of 24 take less than 100 us" in text for text in found)


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


def test_D05_values_copies_and_small_kernels_are_each_told(tmp_path):
    assert diagnose(tmp_path, reads_a_value)["verdict"]["verdict"] == "sync-bound"
    assert result_of(tmp_path, RESNET, "SS307") == result_of(tmp_path, BERT, "SS209") == "found"
    assert diagnose(tmp_path, BERT)["verdict"]["verdict"] == "launch-bound"


def test_D09_the_wait_for_a_batch_behind_a_copy_is_data(tmp_path):
    """Results are copied to the host, and then the loader, which has no workers, makes the next batch. Without the copy the batch would be made while
    the kernel runs, a step of 670 us; without the loader's 250 us, of which 100 us may be handing over the batch, the step has 150 us less. Both are found, with what each saves."""
    trace = reads_a_value()
    for event in trace.events:
        if event["name"] == "python_work":
            event.update(cat="user_annotation", name="enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
    found = diagnose(tmp_path, lambda: trace)
    savings = {finding["cut"]: finding["saving_ns"] for finding in found["findings"] if finding["rule"] in ("SS101", "SS207")}
    assert savings == {"sync": pytest.approx(330_000, abs=10_000), "data": pytest.approx(150_000, abs=3_000)}
    assert found["verdict"]["verdict"] == "sync-bound" and "; next " in found["verdict"]["sentence"]


def test_D09_idle_time_makes_a_run_bound_by_one_thing(tmp_path):
    """After .item() memory is pinned for 650 us. Without that a step has 650 us less; without .item() the pinning runs beside the kernel, 210 us less."""
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
    assert savings["SS206"] is None and savings["SS502"] == pytest.approx(650_000, abs=20_000)
    assert savings["SS207"] == pytest.approx(210_000, abs=20_000)
    assert found["verdict"]["verdict"] == "memory-bound" and found["verdict"]["saving_ratio"] <= 1


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
    """What the device idles behind it is the call's doing: without it the host would have been ahead."""
    trace = synchronizes(50)
    trace.launch("cudaLaunchKernel", 4010, 5, "nvjet_tst_128x128", 4020, 100)
    found = diagnose(tmp_path, lambda: trace)
    named, = [finding for finding in found["findings"] if finding["rule"] == "SS207"]
    assert found["verdict"]["verdict"] == "sync-bound" and named["where"] == "cudaDeviceSynchronize"
    assert named["evidence"].startswith("cudaDeviceSynchronize: 4 calls until the device is done") and named["saving_ns"] == pytest.approx(300_000, abs=3_000)
    assert "torch.cuda.synchronize()" in named["advice"]
    assert found["findings"][0] == named


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
    """Without it the host would have launched 20 us sooner: that much is its saving, and the rest is the host's."""
    trace = synchronizes(710)
    found = diagnose(tmp_path, lambda: trace)
    named, = [finding for finding in found["findings"] if finding["rule"] == "SS207"]
    assert found["verdict"]["verdict"] == "launch-bound" and named["severity"] == "hint"
    assert named["where"] == "cudaDeviceSynchronize" and named["saving_ns"] == pytest.approx(20_000, abs=3_000)


def test_D05_behind_a_synchronization_a_batch_is_waited_for(tmp_path):
    """Without the wait the batch is fetched beside the kernels, which take 700 of 1000 us. Without the batch's 240 us, of which 100 us may be handing it over, a step takes 140 us less."""
    found = diagnose(tmp_path, lambda: synchronizes(50, batch_us=240))
    savings = {finding["cut"]: finding["saving_ns"] for finding in found["findings"] if finding["rule"] in ("SS101", "SS207")}
    assert savings == {"sync": pytest.approx(300_000, abs=5_000), "data": pytest.approx(140_000, abs=4_000)}
    assert found["verdict"]["verdict"] == "sync-bound" and "; next " in found["verdict"]["sentence"]


@pytest.mark.parametrize("memory", ["D2M (Device -> Memory)", "D2H (Device -> Host)"])
def test_D05_values_are_found_by_intels_names(tmp_path, memory):
    """As Kineto writes them for XPUs: the copy by letters, Level Zero's call, the unified runtime's."""
    trace = reads_a_value("urEnqueueKernelLaunch", "urEnqueueUSMMemcpy", f"Memcpy {memory}", "zeEventHostSynchronize")
    found, = [finding for finding in diagnose(tmp_path, lambda: trace)["findings"] if finding["rule"] == "SS207" and "copies" in finding["evidence"]]
    theirs, = [finding for finding in diagnose(tmp_path, reads_a_value)["findings"] if finding["rule"] == "SS207" and "copies" in finding["evidence"]]
    assert found["evidence"].split("; a step")[0] == theirs["evidence"].split("; a step")[0]
    assert found["saving_ns"] == pytest.approx(theirs["saving_ns"], abs=5_000)  # one waits for an event, the other for a stream
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
    assert "3 calls" in found["evidence"] and found["saving_ns"] == pytest.approx(400e3, abs=1e3)


def test_D06_a_device_that_is_busy_and_mostly_empty(tmp_path):
    diagnosis = diagnose(tmp_path, mostly_empty)
    assert diagnosis["verdict"]["verdict"] == "compute-bound"
    found, = [finding for finding in diagnosis["findings"] if finding["rule"] == "SS303"]
    assert "98.5 % of the steps" in found["evidence"] and "20.0 % of the multiprocessors" in found["evidence"]


@pytest.mark.parametrize("blocks, verdict", [(0.07, "healthy"), (0.4, "healthy"), (90, "memory-bound")])
def test_D06_a_device_that_is_mostly_empty_is_not_held_up_by_its_memory(tmp_path, blocks, verdict):
    """Whatever the names of its kernels say. No replay knows what fuller kernels would save: SS303 says that they leave it empty."""
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
    assert found["where"] == "GPU 0 clocks.current.sm" and "75.0 %" in found["evidence"]
    assert found["saving_ns"] is None  # a replay does not know how kernels follow the clock


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
