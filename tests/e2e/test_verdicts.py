# SPDX-License-Identifier: Apache-2.0
"""The verdict on every real trace that is committed, with what in the table step_breakdown speaks for it."""
import json
import os
import subprocess
from pathlib import Path

import pytest

from made_trace import H100, Trace

STEPSCOPE = os.environ["STEPSCOPE"]
DATA = Path(__file__).resolve().parent.parent / "data"
FOLDERS = ["traces", "large_traces", "hta_ns_resolution"]

VERDICTS = {
    # kernels compute for 96.5 % of the steps: only a choice, less precision, would save 6 %
    "hta_ns_resolution/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": "compute-bound",
    # 33.6 % of a step the device is idle while the loop waits for a loader without workers
    "large_traces/kineto/resnet50_num_workers_0.json.gz": "data-bound",
    # kernels compute for 73.5 %; without waits for the device a step is shorter by 5.3 %: no cause takes a fifth
    "large_traces/hta/trace_diff_test.json.gz": "compute-bound",
    # 14 small kernels in two steps of an AMD device: 72 % within launches, 19 % before them
    "traces/hta/tests/data/amd_trace/mi250_minitoy_train_ROCm6_2_kineto.json.gz": "launch-bound",
    # seven events that were left of a trace: nothing is known of two thirds of the step
    "traces/hta/tests/data/call_stack/backward_thread.json": "unknown",
    # no device; a step waits for gloo's allreduce for 80 %
    "traces/hta/tests/data/cpu_only/@05cd72fe/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz": "communication-bound",
    "traces/hta/tests/data/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz": "communication-bound",
    # 90 % of it are the first calls of the driver, which load it; no steps
    "traces/hta/tests/data/critical_path/alexnet/benchmark_result_2869224_1695835535_trace.json.gz": "host-bound",
    # four kernels in a step of 3 ms, 72 % of it between operators and launches
    "traces/hta/tests/data/critical_path/cuda_event_sync/@a4a6c2d1/event_sync_trace.json.gz": "launch-bound",
    "traces/hta/tests/data/critical_path/cuda_event_sync/event_sync_trace.json.gz": "launch-bound",
    # nothing is recorded for 98 %
    "traces/hta/tests/data/critical_path/cuda_event_sync_multi_stream/event_sync_trace.json.gz": "unknown",
    # 81 % of it are the first calls of the driver
    "traces/hta/tests/data/critical_path/end_to_end/simple_add/input/trace.json.gz": "host-bound",
    "traces/hta/tests/data/critical_path/end_to_end/simple_add/output/@27b06fce/overlaid_critical_path_trace.json.gz": "host-bound",
    "traces/hta/tests/data/critical_path/end_to_end/simple_add/output/overlaid_critical_path_trace.json.gz": "host-bound",
    # counters of ranges only: no work of a device, no steps
    "traces/hta/tests/data/cupti_profiler/benchmark_result_924719_1679055439_trace.json.gz": "unknown",
    # one step of operators alone, 45 % of it in the program's own range around backward(), in which another thread, not recorded, works
    "traces/hta/tests/data/distributed_info_unavailable/distributed_info_not_found.json.gz": "compute-bound",
    "traces/hta/tests/data/mixed_files/rank_non_gpu.json.gz": "compute-bound",
    "traces/hta/tests/data/rank_unavailable/@9246864b/rank_not_found.json.gz": "compute-bound",
    "traces/hta/tests/data/rank_unavailable/rank_not_found.json.gz": "compute-bound",
    # 99 % in calls of the driver, while three kernels ran
    "traces/hta/tests/data/execution_trace/benchmark_simple_add_trace.json.gz": "host-bound",
    # its kernels compute for 90 %, calls of its runtime take 5 %: no cause could take a fifth
    "traces/hta/tests/data/mtia_inference_trace/mtia_inference_rank_0.json.gz": "healthy",
    # of 128 ranks' recommender: kernels, copies and communication take 46 % of a step, which is as long as the host needs for its launches
    "traces/hta/tests/data/timeline_analysis/sampled_rank-0.json.gz": "launch-bound",
    "traces/hta/tests/data/trace_filter/sampled_rank-1.json.gz": "launch-bound",
    # a few events in steps of which 99 % are not recorded
    "traces/hta/tests/data/trace_compare/base/base.json.gz": "unknown",
    "traces/hta/tests/data/trace_compare/test/test.json.gz": "unknown",
    "traces/hta/tests/data/trace_file_list/inference_rank_1.json.gz": "unknown",
    "traces/hta/tests/data/triton_example/@0935c73d/triton_example.json.gz": "unknown",
    "traces/hta/tests/data/triton_example/@36347a15/triton_example.json.gz": "unknown",
    "traces/hta/tests/data/triton_example/triton_example.json.gz": "unknown",
    # kernels run for 3 %; 130 of 130 are shorter than their launch
    "traces/hta/tests/data/with_gpu_user_annotation/step_based_trace_2543932.json.gz": "launch-bound",
    # two samples of Kineto's unit tests, 67 % of them without any event
    "traces/kineto/docs/traces/after_fix_trace.json": "unknown",
    "traces/kineto/docs/traces/before_fix_trace.json": "unknown",
    # the same training with four workers: kernels compute for 84 %, small kernels of the optimizer 7 %
    "traces/kineto/tb_plugin/samples/resnet50_num_workers_4/worker0.pt.trace.json.gz": "compute-bound",
    # 30 kernels in a step of 13 ms, all shorter than their launch
    "traces/kineto/tb_plugin/test/@71530b1d/gpu_metrics_input.json.gz": "launch-bound",
    "traces/kineto/tb_plugin/test/@881d9250/gpu_metrics_input.json.gz": "launch-bound",
    "traces/kineto/tb_plugin/test/gpu_metrics_input.json.gz": "launch-bound",
    # operators of torch.autograd.profiler alone, without steps
    "traces/lightning/0_trace.json.gz": "unknown",
    "traces/lightning/@9946c108/0_trace.json": "unknown",
    "traces/lightning/@c86b649e/0_trace.json.gz": "unknown",
    # eight ranks of a DLRM: those that come first to the exchange wait in it, the late ones (2, 5 to 7) launch meanwhile
    "traces/param/et_replay/tests/inputs/dlrm_kineto/worker0_step_12.1694128201545.pt.trace.json.gz": "mixed",
    "traces/param/et_replay/tests/inputs/dlrm_kineto/worker1_step_12.1694128201556.pt.trace.json.gz": "communication-bound",
    "traces/param/et_replay/tests/inputs/dlrm_kineto/worker2_step_12.1694128201554.pt.trace.json.gz": "launch-bound",
    "traces/param/et_replay/tests/inputs/dlrm_kineto/worker3_step_12.1694128201557.pt.trace.json.gz": "communication-bound",
    "traces/param/et_replay/tests/inputs/dlrm_kineto/worker4_step_12.1694128201547.pt.trace.json.gz": "mixed",
    "traces/param/et_replay/tests/inputs/dlrm_kineto/worker5_step_12.1694128201549.pt.trace.json.gz": "launch-bound",
    "traces/param/et_replay/tests/inputs/dlrm_kineto/worker6_step_12.1694128201553.pt.trace.json.gz": "launch-bound",
    "traces/param/et_replay/tests/inputs/dlrm_kineto/worker7_step_12.1694128201553.pt.trace.json.gz": "launch-bound",
    # inference with batches of one: kernels run for 16 % and 7 %, the rest the host prepares the next
    "traces/tracelens/tests/traces/h100/Falconsai_nsfw_image_detection__1016002.json.gz": "launch-bound",
    "traces/tracelens/tests/traces/h100/gaunernst_bert-small-uncased__1016001.json.gz": "launch-bound",
    # kernels run for 91 %, 63 % of their time in elementwise operators, norms and copies of a model that is not compiled
    "traces/tracelens/tests/traces/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": "memory-bound",
}


def test_every_trace_has_a_verdict():
    files = {str(path.relative_to(DATA)) for folder in FOLDERS for path in (DATA / folder).rglob("*.json*")}
    assert files == VERDICTS.keys()


@pytest.mark.parametrize("path", VERDICTS)
def test_verdict(path):
    done = subprocess.run([STEPSCOPE, "diagnose", DATA / path, "--json"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)["verdict"]
    assert verdict["verdict"] == VERDICTS[path], verdict
    if verdict["verdict"] == "unknown":
        assert verdict["ratio"] is None and verdict["margin_ratio"] is None
    else:
        assert 0 <= verdict["margin_ratio"] <= 1 and verdict["parts"], verdict


@pytest.mark.parametrize("path", [path for path in sorted(VERDICTS) if "simple_add" in path or "alexnet" in path or "triton" in path])
def test_what_has_no_steps_is_not_told_of_a_step(path):
    """Shares and savings are of the whole trace there, in the verdict and in what each finding says."""
    def diagnose(*options):
        return subprocess.run([STEPSCOPE, "diagnose", DATA / path, *options], capture_output=True, text=True, timeout=60, check=True).stdout

    steps = json.loads(subprocess.run([STEPSCOPE, "report", DATA / path, "--table", "step_time", "--json"], capture_output=True, timeout=60, check=True).stdout)["rows"]
    found = json.loads(diagnose("--json"))
    assert found["verdict"]["whole"] == ("a step" if steps else "the whole trace")
    told = " ".join([found["verdict"]["sentence"], *(finding["evidence"] or "" for finding in found["findings"])])
    text = " ".join(diagnose().split("Cannot tell")[0].split())
    assert steps or not [words for words in ("% of a step", " of a step,", " a step: ", "% of steps") if words in told + text]


def several_devices(*ends):
    """Steps of 1000 us, launched a step ahead. Each device computes after the one before, until its end, and the first one after the last."""
    trace = Trace(deviceProperties=[{**H100, "id": device} for device in range(len(ends))])
    for number in range(6):
        start = 1000 * number
        if number:
            trace.step(number, start, 1000)
        for device, (first, end) in enumerate(zip((ends[-1] - 1000, *ends), ends)):
            trace.op("aten::mm", start + 2 * device, 2)
            trace.launch("cudaLaunchKernel", start + 2 * device, 1, "nvjet_tst_128x128", start + 1000 + first, end - first, device=device)
    return trace


@pytest.mark.parametrize("ends, verdict, told", [
    ((510, 980), "mixed", "; device 1, one of several of its process, computes for only 47.0 % of a step"),
    ((880, 980), "mixed", "; device 1, one of several of its process, computes for only 10.0 % of a step"),
    ((975, 980), "healthy", ""), ((980,), "healthy", "")])
def test_D04_devices_of_one_process_that_take_turns_are_not_healthy(tmp_path, ends, verdict, told):
    """One of them always computes; one that does so for less than 1 % of a step is not what the process trains on."""
    path = several_devices(*ends).write(tmp_path / "made.json")
    found = json.loads(subprocess.run([STEPSCOPE, "diagnose", path, "--json"], capture_output=True, text=True, timeout=60, check=True).stdout)
    assert found["verdict"]["verdict"] == verdict and found["verdict"]["sentence"].endswith(told), found["verdict"]
    if told:
        low, = [finding for finding in found["findings"] if finding["rule"] == "SS208"]
        assert "micro-batches" in low["advice"]
