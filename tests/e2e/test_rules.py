# SPDX-License-Identifier: Apache-2.0
"""Every built-in rule that reads traces: an input in which it fires, one in which it stays silent, one of which it says that it cannot
tell. Real traces wherever one shows the fault; made_trace.py for the rest. Rules that need a recording of ours: see ELSEWHERE."""
import json
import os
import subprocess
from pathlib import Path

import pytest
from made_trace import GLOO, NCCL, busy
from rule_inputs import (ALEXNET, BERT, COPIES, CPU_ONLY, DLRM, LEGACY, LOADER, NO_OPERATORS, ONE_RANK, QWEN, RESNET, ROOT, SAMPLED, SPIN, STEPSCOPE,
                         V100_TRAINING, Snapshot, attention, batch_norms, clocks, convolution, copies, copies_first, diagnose, epochs, idle_with_memory, index_loop,
                         made_on_the_host, memory, messages, mostly_empty, no_operators, one_kernel, operators_only, pieces, reads_a_value, result_of, room, steps,
                         steps_and_stalls, usage, uses, without_failure, wrapped)

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
    "SS303": ((mostly_empty, "20.0 % of the multiprocessors"), QWEN, RESNET),
    "SS304": ((QWEN, "57.4 % of a step"), RESNET, CPU_ONLY),
    "SS305": ((lambda: attention("aten::_softmax"), "2 % of the time of devices"), QWEN, CPU_ONLY),
    "SS306": ((BERT, "26 times"), QWEN, V100_TRAINING),
    "SS307": ((RESNET, "12 copies, 110 MiB"), QWEN, CPU_ONLY),
    "SS308": ((copies_first, "40.0 % of a step, 400.0 us, the device copies and computes nothing"), copies, CPU_ONLY),
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
    "SS507": ((Snapshot, "its last request, 6.00 MiB, did not fit into 55.0 MiB"), lambda: Snapshot(without_failure), QWEN),
    "SS506": ((pieces(64 << 20), "640 MiB of 1.25 GiB are free, but between blocks in use, and the largest piece has 64.0 MiB"), Snapshot, QWEN),
    "SS601": ((COPIES, "a step without it takes"), RESNET, None),
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
    "SS103": "tests/torch/test_what_if.py",
    "SS104": "tests/torch/test_loader.py",
    "SS215": "tests/e2e/test_what_if_recordings.py",
    "SS412": "tests/e2e/test_what_if_recordings.py",
    "SS413": "tests/e2e/test_what_if_recordings.py",
    "SS806": "tests/e2e/test_what_if_recordings.py",
    "SS411": "tests/e2e/test_rules.py",
    "SS414": "tests/torch/test_diagnosis.py",
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


def test_fault_T10m_kernels_that_wait_for_other_ranks_do_not_compute(tmp_path):
    """NCCL waits for most of the time in which kernels run; kernels that compute run for 6.3 % of the steps."""
    assert result_of(tmp_path, ONE_RANK, "SS303") == "nothing"


@pytest.mark.parametrize("backend", ("cpu:gloo,xpu:xccl", "mtia:hccl", "cpu:gloo,cuda:nccl", "ucc"))
def test_fault_T3m_other_backends_of_devices_are_not_gloo(tmp_path, backend):
    assert result_of(tmp_path, lambda: wrapped("DistributedDataParallel.forward", distributedInfo={**GLOO, "backend": backend}), "SS604") == "nothing"


@pytest.mark.parametrize("rule", [rule for rule, case in RULES.items() if case[2]])
def test_it_says_that_it_cannot_tell(tmp_path, rule):
    assert result_of(tmp_path, RULES[rule][2], rule) == "cannot tell"


@pytest.mark.parametrize("rule", ["SS202", "SS203", "SS213", "SS401", "SS501", "SS701", "SS702", "SS703", "SS704", "SS801", "SS802", "SS803", "SS804", "SS901"])
def test_a_trace_of_another_tool_does_not_tell(tmp_path, rule):
    assert result_of(tmp_path, QWEN, rule) == "cannot tell"


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


IDLE = ("idle: launch", "idle: host", "idle: queued", "idle: data wait", "idle: synchronization", "idle: runtime calls", "idle: nothing recorded")
# what a rule is about: the parts of a step of which its saving is one, if no replay computes it
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
    """A replay removes a cost and all that waits for it: at most the step."""
    path = case().write(tmp_path / "made.json") if callable(case) else case
    done = subprocess.run([STEPSCOPE, "query", path, "SELECT part, mean_ns FROM step_breakdown", "--json"], capture_output=True, text=True, timeout=60, check=True)
    parts = {row["part"]: row["mean_ns"] for row in json.loads(done.stdout)["rows"]}
    diagnosis = diagnose(tmp_path, case)
    for finding in diagnosis["findings"]:
        if finding["rule"] in ABOUT and parts and finding["saving_ns"] is not None:
            whole = parts if finding["cut"] else ABOUT[finding["rule"]]
            assert finding["saving_ns"] <= sum(parts[part] for part in whole) * (1 + 1e-9), finding
        if finding["cut"]:
            assert 0 <= finding["saving_low_ratio"] <= finding["saving_ratio"] <= finding["saving_high_ratio"] <= 1, finding
    assert (diagnosis["verdict"]["ratio"] or 0) <= 1


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
