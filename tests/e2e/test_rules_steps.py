# SPDX-License-Identifier: Apache-2.0
"""Rules about steps: the time between them, start-up, spikes, loaders, time in no operator, and exchanges between ranks."""
import json
import subprocess

import pytest
from made_trace import H100, Trace
from rule_inputs import DLRM, STEPSCOPE, V100_TRAINING, diagnose, epochs, index_loop, result_of, steps, steps_and_stalls


def test_R41_a_callback_has_its_name_wherever_it_is(tmp_path):
    """It is told once, also where it is most of what lies between the steps, and by guide 004's second. The call after the last step is outside of all
    steps: 79 gaps between steps have one."""
    for within in (False, True):
        found = {finding["rule"]: finding for finding in diagnose(tmp_path, lambda trace=epochs(within=within): trace)["findings"]}
        assert found["SS214"]["where"] == "[pl][profile][Callback]Plots.on_train_epoch_end" and "SS204" not in found
        assert "2 calls of 1.400 s" in found["SS214"]["evidence"]
        assert found["SS214"]["saving_ns"] == pytest.approx(2 * 1.4e9 / 80 if within else 1.4e9 / 79, rel=1e-4)


@pytest.mark.parametrize("seconds, share", [(16, "33.6 %"), (64, "66.9 %")])
def test_D09_time_between_steps_is_a_share_of_it_and_the_steps(tmp_path, seconds, share):
    """Steps of 400 ms, and 79 gaps between them of which one has the callback: nothing of the step itself would be saved."""
    diagnosis = diagnose(tmp_path, lambda: epochs(seconds=seconds))
    found, = [finding for finding in diagnosis["findings"] if finding["rule"] == "SS214"]
    assert found["saving_ns"] == pytest.approx(seconds * 1e9 / 79, rel=1e-4)
    verdict = diagnosis["verdict"]
    assert verdict["verdict"] == "host-bound" and f"a saving of {share} of a step" in verdict["sentence"]
    assert verdict["saving_of"] == "a step with the time behind it" and verdict["whole"] == "a step"
    assert verdict["saving_ns"] == found["saving_ns"] and verdict["saving_ratio"] == found["saving_ratio"] == pytest.approx(float(share[:-2]) / 100, abs=1e-3)


def test_R44_what_fills_the_time_between_steps_has_its_name(tmp_path):
    found, = (finding for finding in diagnose(tmp_path, lambda: epochs("save", 8))["findings"] if finding["rule"] == "SS204")
    assert found["where"] == "save" and "100.0 % of it in this, 8.000 s at the longest" in found["evidence"]
    assert found["saving_ns"] == pytest.approx(8e9 / 79, rel=1e-4)  # of 79 times; the other lies behind the last step


@pytest.mark.parametrize("count", (3, 30))
def test_time_between_steps_is_shared_out_among_the_times_between_them(tmp_path, count):
    """Three steps have two. The usual microsecond between two operators stays."""
    found, = (finding for finding in diagnose(tmp_path, lambda: steps([1000] * count, 300))["findings"] if finding["rule"] == "SS204")
    assert found["saving_ns"] == pytest.approx(300_000, abs=1_000) and found["saving_ratio"] == pytest.approx(300 / 1300, abs=1e-3)
    assert "300.0 us between two steps" in found["evidence"]


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


def test_samples_that_a_loader_takes_one_by_one_are_no_loop_of_the_program(tmp_path):
    trace = index_loop()
    trace.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 90, 500)
    assert result_of(tmp_path, lambda: trace, "SS405") == "nothing"


def test_D04_nothing_is_invented_of_a_healthy_run(tmp_path):
    """Only a choice would save more than a twentieth: products with less precision."""
    healthy = diagnose(tmp_path, V100_TRAINING)
    assert healthy["verdict"]["verdict"] == "compute-bound" and "without full precision, a choice," in healthy["verdict"]["sentence"]
    assert {finding["cut"] for finding in healthy["findings"] if (finding["saving_ratio"] or 0) > 0.05} == {"precision"}
    assert not [finding for finding in healthy["findings"] if finding["severity"] == "problem"]


@pytest.mark.parametrize("seen,share", [(700, "30.0 %"), (790, "21.0 %"), (950, None), (1000, None)])
def test_D04_a_step_that_nobody_saw_is_not_healthy(tmp_path, seen, share):
    """A step is known by 80 % or more: a replay of a processor's operators finds no cost in it."""
    trace = Trace()
    for number in range(10):
        trace.step(number, 1000 * number, 1000)
        trace.op("aten::mm", 1000 * number, seen)
    verdict = diagnose(tmp_path, lambda: trace)["verdict"]
    told = f"{share} of a step is in no phase, operator or range: nobody knows what it goes to; record_function()"
    assert verdict["verdict"] == ("unknown" if share else "healthy") and (told in verdict["sentence"]) == bool(share), verdict


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


def test_a_trace_has_waits_for_a_loader_and_nothing_of_its_batches(tmp_path):
    """SS102 finds a loader without workers there: that there was no loop over one would contradict it."""
    trace, path = Trace(), tmp_path / "inference.json"
    for number in range(6):
        trace.op("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 1000 * number, 400)
        trace.op("aten::mm", 1000 * number + 400, 500)
    assert result_of(tmp_path, lambda: trace, "SS102") == "found"
    trace.write(path)
    done = subprocess.run([STEPSCOPE, "report", path, "--table", "data_loader"], capture_output=True, text=True, timeout=60, check=True)
    assert "waits for a data loader were recorded, but not its batches and workers" in " ".join(done.stdout.split())
