# SPDX-License-Identifier: Apache-2.0
"""Rules on traces that have lost something: files that are cut off or written twice, kernels without launches, launches without kernels, and
work without a duration."""
import gzip
import json
import subprocess

import pytest
from made_trace import Trace, busy
from rule_inputs import DLRM, QWEN, RESNET, STEPSCOPE, diagnose, one_kernel


@pytest.mark.parametrize("lost", ["none", "at the end", "in two steps", "everywhere"])
def test_I05_kernels_that_the_profiler_lost_are_missed(tmp_path, lost):
    """The device looks idle without them, and it was not: in each step it computes for 9 * 980 us and waits for launches for 180. 1000 us of the host
    are unknown: without them and the launches a step takes 12 % less, however many kernels are lost."""
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
    result = json.loads(done.stdout)
    assert result["verdict"]["verdict"] == ("unknown" if lost == "everywhere" else "compute-bound")
    cuts = {finding["cut"]: finding for finding in result["findings"] if finding["cut"]}
    assert list(cuts) == ([] if lost == "everywhere" else ["launch"])
    assert lost == "everywhere" or cuts["launch"]["saving_ratio"] == pytest.approx(1 - 9 * 980 / 10_000, abs=0.011)  # one lost kernel is 1 %


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
    assert "SS208" not in found and all(finding["saving_low_ratio"] == 0 for finding in result["findings"] if finding["rule"] == "SS205")
    block = subprocess.run([STEPSCOPE, "diagnose", path, "--style", "canary"], check=True, capture_output=True, text=True, timeout=60).stdout
    assert "CPU bottleneck" not in block and ("NOTE: not whole" in block) == (percent < 100) and ("CANNOT TELL" in block) == (first is None)
    if first is None:
        assert verdict["verdict"] == "unknown" and "lost all over it" in verdict["sentence"] and verdict["parts"] is None
        assert "SS205" not in found and not any(finding["cut"] for finding in result["findings"])
        assert checks["SS205"] == checks["SS208"] == checks["SS307"] == "cannot tell"
        return
    # of three whole steps or six savings are not sure: the lower end of each interval is about 0
    # and one whole step cannot be replayed, so nothing is known against it or for it
    assert verdict["verdict"] in (("unknown",) if first == last else ("healthy", "compute-bound")) and "compute kernels 8" in verdict["parts"]
    assert all((finding["saving_low_ratio"] or 0) < 0.01 for finding in result["findings"])
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
    assert result["verdict"]["headline"].startswith("not whole: the recording: places where one of several processes wrote into the text of another")
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
