# SPDX-License-Identifier: Apache-2.0
"""Rows D01 to D03 on ranks that wait for one another: who is late, in what, and how much shorter a step would be, known to the microsecond."""
import json
import os
import subprocess

import pytest

from made_trace import Trace

STEPSCOPE = os.environ["STEPSCOPE"]
STEPS, DATA, FORWARD, EXCHANGE, HANDOVER, UPDATE = 6, 20, 900, 30, 10, 10
NEAR = 2000  # ns: lags of launches, and the cost of the profiler


def write_ranks(directory, ranks):
    """One file per rank; each is (wait for data, forward) in microseconds, and then waits until the last one has come."""
    last = max(data + forward for data, forward in ranks)
    for rank, (data, forward) in enumerate(ranks):
        trace = Trace(distributedInfo={"backend": "gloo", "rank": rank, "world_size": len(ranks)})
        for number in range(STEPS):
            start = number * (last + EXCHANGE)
            trace.step(number, start, last + EXCHANGE)
            trace.span("user_annotation", "stepscope::data", start, data)
            trace.span("user_annotation", "stepscope::forward", start + data, forward)
            trace.span("user_annotation", "stepscope::communication", start + data + forward, last + EXCHANGE - data - forward)
        trace.write(directory / f"rank{rank}.json")


def diagnosis_of(*operands):
    done = subprocess.run([STEPSCOPE, "diagnose", *operands, "--json"], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def diagnose_files(*operands):
    """The verdict, and of each rule what saves most."""
    result = diagnosis_of(*operands)
    return result["verdict"], {finding["rule"]: finding for finding in reversed(result["findings"])}


def diagnose(directory, ranks):
    write_ranks(directory, ranks)
    return diagnose_files(directory)


@pytest.mark.parametrize("count", (2, 3, 4, 8))
def test_D01_one_rank_computes_longer(tmp_path, count):
    verdict, found = diagnose(tmp_path, [(DATA, FORWARD)] * (count - 1) + [(DATA, FORWARD + 1000)])
    assert verdict["verdict"] == "straggler-bound"
    late = found["SS602"]
    assert f"rank {count - 1}" in late["where"] and "1.000 ms behind the others" in late["evidence"] and "most in forward" in late["evidence"]
    assert late["saving_ns"] == pytest.approx(1_000_000) and "SS101" not in found
    if "SS601" in found:  # what is left is the exchange itself
        assert found["SS601"]["saving_ns"] == pytest.approx(EXCHANGE * 1000)
        assert f"waits for late ranks, longest for rank {count - 1}" in found["SS601"]["evidence"]


@pytest.mark.parametrize("count", (2, 3, 4, 8))
def test_D02_one_rank_waits_for_data(tmp_path, count):
    """The others have nothing to gain from their loaders."""
    verdict, found = diagnose(tmp_path, [(DATA + 1000, FORWARD)] + [(DATA, FORWARD)] * (count - 1))
    assert verdict["verdict"] == "straggler-bound"
    late = found["SS602"]
    assert "rank 0" in late["where"] and "most in data" in late["evidence"] and "loader" in late["advice"]
    assert late["saving_ns"] == pytest.approx(1_000_000)
    assert found["SS101"]["saving_ns"] == pytest.approx(DATA * 1000) and "(SS602)" in found["SS101"]["evidence"]


@pytest.mark.parametrize("count", (2, 3, 4, 8))
def test_D03_all_ranks_wait_for_data(tmp_path, count):
    verdict, found = diagnose(tmp_path, [(DATA + 1000, FORWARD)] * count)
    assert verdict["verdict"] == "data-bound" and "rank" not in verdict["sentence"] and "SS602" not in found and "SS601" not in found
    assert found["SS101"]["saving_ns"] == pytest.approx((DATA + 1000) * 1000) and "(SS602)" not in found["SS101"]["evidence"]


def test_D01_files_are_the_ranks_that_their_directory_has(tmp_path):
    of_directory = diagnose(tmp_path, [(DATA, FORWARD), (DATA, FORWARD + 1000), (DATA, FORWARD)])
    assert of_directory[0]["verdict"] == "straggler-bound"
    assert diagnose_files(*sorted(tmp_path.iterdir(), reverse=True)) == of_directory


def test_a_rank_is_measured_by_the_next_slowest(tmp_path):
    """Were the slowest as fast as the fastest, the second would still hold them up."""
    _, found = diagnose(tmp_path, [(DATA, FORWARD), (DATA, FORWARD + 400), (DATA, FORWARD + 1000)])
    assert found["SS602"]["saving_ns"] == pytest.approx(600_000) and "800.0 us behind the others" in found["SS602"]["evidence"]


def wait_for_device(trace, start, end):
    """The step of the host ends with that of the device."""
    trace.call("cudaDeviceSynchronize", start, end - start)


def update(trace, launched, start):
    """A kernel that waits for the collectives on the other streams, and the host for it: a step ends UPDATE after its collectives."""
    trace.call("cudaStreamWaitEvent", launched, 1)
    trace.launch("cudaLaunchKernel", launched + 1, 1, "adam", start, UPDATE - 1)
    wait_for_device(trace, launched + 3, start + UPDATE - 1)


def write_devices(directory, ranks, exchanges=1):
    """As write_ranks(), of (wait for data, kernel), after HANDOVER: collectives begin on each device after its kernel, all at once, and end when
    the last one has come."""
    last = HANDOVER + max(data + kernel for data, kernel in ranks)
    for rank, (data, kernel) in enumerate(ranks):
        trace = Trace(deviceProperties=[{"id": 0, "name": "a device"}], distributedInfo={"backend": "nccl", "rank": rank, "world_size": len(ranks)})
        for number in range(STEPS):
            start = number * (last + EXCHANGE + UPDATE)
            ready, end = start + HANDOVER + data, start + last + EXCHANGE
            trace.step(number, start, last + EXCHANGE + UPDATE)
            trace.op("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", start, HANDOVER + data)
            trace.launch("cudaLaunchKernel", ready, 2, "gemm", ready, kernel)
            for n in range(exchanges):
                trace.launch("cudaLaunchKernel", ready + 3 + n, 1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", ready + kernel,
                             end - ready - kernel, stream=20 + n)
            update(trace, ready + 4 + exchanges, end)
        trace.write(directory / f"rank{rank}.json")


def diagnose_devices(directory, ranks, **how):
    write_devices(directory, ranks, **how)
    return diagnose_files(directory)


def diagnosis_of_devices(directory, ranks):
    write_devices(directory, ranks)
    return diagnosis_of(directory)


def test_two_late_ranks_hold_the_others_up_together(tmp_path):
    """The others wait 1.5 and 0.5 ms for the slowest, a mean of 1 ms. The median rank is the next slowest: with all at the median a step is 0.5 ms
    shorter. Then 1 ms of waits is left."""
    write_devices(tmp_path, [(0, 1000), (0, 2000), (0, 2500)])
    found = {finding["where"]: finding for finding in diagnosis_of(tmp_path)["findings"] if finding["rule"] == "SS602"}
    assert "each of the others waits 1.000 ms" in found["rank 2"]["evidence"]
    assert found["rank 2"]["saving_ns"] == pytest.approx(500_000, abs=NEAR) and found["rank 2"]["cut"] == "rank"
    second = found["rank 1, behind rank 2"]
    assert "they wait 1.000 ms for this one" in second["evidence"] and second["saving_ns"] is None


def test_D03_devices_that_all_wait_for_data_are_no_rank_s(tmp_path):
    verdict, found = diagnose_devices(tmp_path, [(800, 1000)] * 4)
    assert verdict["verdict"] == "data-bound" and "rank" not in verdict["sentence"] and found["SS101"]["where"] == "the device"


@pytest.mark.parametrize("exchanges", (1, 3))
def test_D09_who_is_late_behind_a_slower_rank_is_named_too(tmp_path, exchanges):
    """Rank 2 waits 800 us for data, the kernels of rank 0 take 300 us longer: who mends the loader finds the 300 us still there. With all ranks at
    the median both are gone."""
    write_devices(tmp_path, [(0, 1300), (0, 1000), (800, 1000), (0, 1000)], exchanges=exchanges)
    result = diagnosis_of(tmp_path)
    late = [finding for finding in result["findings"] if finding["rule"] == "SS602"]
    assert [finding["where"] for finding in late] == ["rank 2, in data", "rank 0, behind rank 2"]
    assert [finding["saving_ns"] for finding in late] == [pytest.approx(800_000, abs=NEAR), None]
    assert late[1]["evidence"].startswith("once rank 2 is as fast as the others, they wait 300.0 us for this one")
    assert "its loader" in late[0]["advice"] and "its loader" not in late[1]["advice"]
    assert result["verdict"]["verdict"] == "straggler-bound" and result["verdict"]["ratio"] == pytest.approx(800 / 1850, abs=1e-3)
    assert result["verdict"]["sentence"].startswith("without slower ranks (rank 2, in data) a step takes ")


def test_D09_a_rank_that_is_late_in_its_turn_is_no_second(tmp_path):
    """All but the slowest are alike."""
    write_devices(tmp_path, [(0, 1000), (0, 1000), (800, 1000), (0, 1000)])
    assert [finding["where"] for finding in diagnosis_of(tmp_path)["findings"] if finding["rule"] == "SS602"] == ["rank 2, in data"]


@pytest.mark.parametrize("exchanges", (1, 2, 5))
def test_D01_what_is_waited_in_several_collectives_at_once_counts_once(tmp_path, exchanges):
    """Buckets of gradients: however many there are, the others wait 400 us a step."""
    verdict, found = diagnose_devices(tmp_path, [(0, 500), (0, 500), (0, 900)], exchanges=exchanges)
    assert verdict["verdict"] == "straggler-bound" and "each of the others waits 400.0 us" in found["SS602"]["evidence"]
    assert found["SS602"]["saving_ns"] == pytest.approx(400_000, abs=NEAR) and found["SS601"]["saving_ns"] == pytest.approx(EXCHANGE * 1000, abs=NEAR)
    done = subprocess.run([STEPSCOPE, "report", tmp_path, "--table", "rank_collectives", "--json"], capture_output=True, text=True, timeout=60, check=True)
    assert [row["waits_total_ns"] for row in json.loads(done.stdout)["rows"]] == [400_000 * STEPS, 400_000 * STEPS, 0]


def test_no_rank_gains_more_than_it_waits(tmp_path):
    """Each is as long as its own work, whatever the others do: what one has more of holds nobody up."""
    for rank, forward in enumerate((900, 1900)):
        write_ranks(tmp_path, [(DATA, forward)])
        (tmp_path / "rank0.json").rename(tmp_path / f"of{rank}.json")
        text = json.loads((tmp_path / f"of{rank}.json").read_text())
        text["distributedInfo"].update(rank=rank, world_size=2)
        (tmp_path / f"of{rank}.json").write_text(json.dumps(text))
    _, found = diagnose_files(tmp_path)
    assert "SS602" not in found


def test_D01_ranks_that_do_not_communicate_hold_nobody_up(tmp_path):
    write_devices(tmp_path, [(0, 1000), (0, 2500)], exchanges=0)
    done = subprocess.run([STEPSCOPE, "diagnose", tmp_path, "--json"], capture_output=True, text=True, timeout=60, check=True)
    check, = [check for check in json.loads(done.stdout)["checks"] if check["rule"] == "SS602"]
    assert check["result"] == "cannot tell", check


def test_the_verdict_names_rank_and_phase(tmp_path):
    verdict, found = diagnose(tmp_path, [(DATA, FORWARD)] * 3 + [(DATA, FORWARD + 1000)])
    assert verdict["sentence"].startswith("51.3 % of a step: rank 3, in forward") and found["SS602"]["where"] == "rank 3, in forward"


@pytest.mark.parametrize("bad, late", [(0, 40), (3, 40), (7, 40), (3, 200)])
def test_D02_the_device_of_one_rank_of_eight_waits_for_data(tmp_path, bad, late):
    """In the mean of eight ranks that is 3 % of a step. The step is shorter by the delay, for the loader as for the rank: it counts once together."""
    result = diagnosis_of_devices(tmp_path, [(250, 750 + late) if rank == bad else (0, 1000) for rank in range(8)])
    found = {finding["rule"]: finding for finding in reversed(result["findings"])}
    step = HANDOVER + 1000 + late + EXCHANGE + UPDATE
    share, mean = (100 * time / step for time in (HANDOVER + 250, HANDOVER + 250 / 8))
    data, rank = found["SS101"], found["SS602"]
    assert data["where"] == f"the device of rank {bad}" and "(SS602)" in data["evidence"] and rank["where"] == f"rank {bad}, in data"
    assert f"{share:.1f} % of a step, {HANDOVER + 250}.0 us" in data["evidence"] and f"on the mean of all ranks for {mean:.1f} %" in data["evidence"]
    for finding in data, rank:
        assert finding["saving_low_ratio"] <= late / step <= finding["saving_high_ratio"]
    assert result["verdict"]["saving_ns"] == pytest.approx(late * 1000, abs=NEAR)


def test_D02_devices_that_do_not_wait_for_one_another(tmp_path):
    """One of two that waits for data half of its steps makes their mean step a quarter shorter."""
    _, found = diagnose_devices(tmp_path, [(0, 1000), (500, 500)], exchanges=0)
    assert found["SS101"]["where"] == "the device of rank 1" and found["SS101"]["saving_ns"] == pytest.approx(250_000 + HANDOVER * 1000)


def group_ranks(rank, group):
    return f"[{rank & ~1}, {rank | 1}]" if group.startswith("tensor") else f"[{rank & 1}, {rank & 1 | 2}]"


def write_grid(directory, late, told=lambda group, ranks: {"Process Group Name": group}):
    """Tensor parallel pairs (0, 1) and (2, 3), data parallel ones (0, 2) and (1, 3). In each step every rank computes 500 us and meets the other of
    the first pair for EXCHANGE, then that of the second for 200 us. `late`: by rank, how much longer it computes; `told`: what kernels say of
    their group."""
    step = 500 + max(late) + EXCHANGE + 200 + 20
    for rank in range(4):
        trace = Trace(deviceProperties=[{"id": 0, "name": "a device"}], distributedInfo={"backend": "nccl", "rank": rank, "world_size": 4})
        partner = rank ^ 1
        together = {pair: 500 + max(late[pair], late[pair ^ 1]) + EXCHANGE for pair in range(4)}
        meet = max(together[rank], together[rank ^ 2])
        for number in range(STEPS):
            start = number * step
            trace.step(number, start, step)
            trace.launch("cudaLaunchKernel", start, 2, "gemm", start, 500 + late[rank])
            for group, begin, end in ((f"tensor {min(rank, partner)}", 500 + late[rank], together[rank]),
                                      (f"data {rank % 2}", together[rank], meet + 200)):
                trace.launch("cudaLaunchKernel", start + 3, 2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", start + begin, end - begin,
                             **{"Collective name": "allreduce", "Group size": 2, **told(group, group_ranks(rank, group))})
            wait_for_device(trace, start + 10, start + meet + 200)
        trace.write(directory / f"rank{rank}.json")


def test_D01_who_is_late_in_one_group_holds_up_other_groups(tmp_path):
    """Rank 3 is 400 us late for rank 2, and rank 2 for rank 0 therefore, rank 3 for rank 1 in the second group: each of the others waits for it
    once, and nobody twice."""
    write_grid(tmp_path, [0, 0, 0, 400])
    verdict, found = diagnose_files(tmp_path)
    late = found["SS602"]
    assert verdict["verdict"] == "straggler-bound" and "rank 3" in late["where"]
    assert "each of the others waits 400.0 us" in late["evidence"] and late["saving_ns"] == pytest.approx(400_000, abs=NEAR)
    assert found["SS601"]["saving_ns"] == pytest.approx((EXCHANGE + 200) * 1000, abs=NEAR), "what nobody waits for"


def write_host_grid(directory, *, names):
    """The same pairs on gloo, on one machine: in each step rank 3 comes 400 us late to its tensor parallel pair, and a rank is 100 us in each
    collective with the other. Of groups that `names` does not have nothing is said but what is executed."""
    for rank in range(4):
        trace = Trace(host_name="vm", distributedInfo={"backend": "gloo", "rank": rank, "world_size": 4})
        for number in range(STEPS):
            start, own = 2000 * number, 900 if rank == 3 else 500
            tensor = start + (1000 if rank > 1 else 600)
            trace.step(number, start, 1900)
            trace.op("aten::mm", start, own)
            for kind, members, begin, end in (("tensor", [rank & 2, rank | 1], start + own, tensor),
                                              ("data", [rank & 1, rank | 2], tensor, start + 1100)):
                trace.span("cpu_op", "c10d::allreduce_", begin - 10, 5)
                said = {"Process Group Name": f"{kind} {members[0]}", "Process Group Ranks": str(members), "Group size": 2}
                trace.span("user_annotation", "gloo:all_reduce", begin, end - begin, tid=7 + (kind == "data"), **said if kind in names else {})
        trace.write(directory / f"rank{rank}.json")


def test_D01_groups_on_the_host_are_compared_within_themselves(tmp_path):
    write_host_grid(tmp_path, names=("tensor", "data"))
    times = {row["group_members"]: (row["count"], row["skew_mean_ns"], row["exchange_mean_ns"]) for row in table(tmp_path, "collective_times")}
    assert times == {"[0, 1]": (STEPS, 0, 100_000), "[2, 3]": (STEPS, 400_000, 100_000), "[0, 2]": (STEPS, 400_000, 100_000),
                     "[1, 3]": (STEPS, 400_000, 100_000)}
    ranks = table(tmp_path, "ranks")
    assert [row["caused_ns"] for row in ranks] == pytest.approx([0, 0, 0, 400_000]) and {row["late_ns"] for row in ranks} == {None}


def test_collectives_of_chosen_steps_are_theirs(tmp_path):
    write_host_grid(tmp_path, names=("tensor", "data"))
    assert {row["count"] for row in table(tmp_path, "collective_times", "--steps", "1-3")} == {3}
    assert {row["collectives"] for row in table(tmp_path, "rank_collectives", "--steps", "1-3")} == {6}


def test_D01_only_groups_that_are_not_known_are_left_out(tmp_path):
    """Of the tensor parallel pairs it is not said which they are: what ranks 2 and 3 wait for in theirs is not known."""
    write_host_grid(tmp_path, names=("data",))
    times = table(tmp_path, "collective_times")
    assert sorted(row["group_members"] for row in times) == ["[0, 2]", "[1, 3]"]
    # rank 0 waits for rank 2, and who holds that one up is not known
    assert {(row["late_ns"], row["caused_ns"]) for row in table(tmp_path, "ranks")} == {(None, None)}


def test_D01_late_ranks_are_no_slow_network(tmp_path):
    """Whoever is late: what is left is the exchange."""
    _, found = diagnose_devices(tmp_path, [(0, 500), (0, 700), (0, 900)])
    assert found["SS601"]["saving_ns"] == pytest.approx(EXCHANGE * 1000, abs=NEAR)
    assert "; ranks wait 200.0 us for late ones, longest for rank 2 (SS602)" in found["SS601"]["evidence"]


def test_D01_who_waited_as_long_is_late_by_itself(tmp_path):
    """Ranks 1 and 3 hold up one pair each by 400 us: nobody is late in the second group because of that."""
    write_grid(tmp_path, [0, 400, 0, 400])
    done = subprocess.run([STEPSCOPE, "report", tmp_path, "--table", "ranks", "--json"], capture_output=True, text=True, timeout=60, check=True)
    caused = [row["caused_ns"] for row in json.loads(done.stdout)["rows"]]
    assert caused == pytest.approx([0, 400_000 / 3, 0, 400_000 / 3])


def test_what_waits_for_a_rank_counts_once_in_a_mean_of_all(tmp_path):
    """The late one does not wait: of the mean over four ranks that communicate a quarter has nothing to wait for."""
    _, found = diagnose_devices(tmp_path, [(0, 100)] * 3 + [(0, 140)])
    assert found["SS602"]["saving_ns"] == pytest.approx(40_000, abs=NEAR)
    assert found["SS601"]["saving_ns"] == pytest.approx(EXCHANGE * 1000, abs=NEAR)


# ---- windows ----

def split(directory, out, name, at):
    """Each file as two, as a schedule that repeats writes them: steps before `at` and those from it on."""
    out.mkdir()
    for path in sorted(directory.glob("*.json")):
        whole = json.loads(path.read_text())
        pid = 100 + whole["distributedInfo"]["rank"]
        events = [{**event, "pid": pid} if event["pid"] == 100 else event for event in whole["traceEvents"]]
        begin = next(event["ts"] for event in events if event["name"] == f"ProfilerStep#{at}")
        for window, chosen in enumerate(([e for e in events if e["ts"] < begin], [e for e in events if e["ts"] >= begin])):
            (out / name.format(pid=pid, window=window)).write_text(json.dumps({**whole, "traceEvents": chosen}))


def table(directory, name, *options):
    done = subprocess.run([STEPSCOPE, "report", directory, "--table", name, "--json", *options], capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)["rows"]


NAMES = ("host_{pid}.179539350630{window}.pt.trace.json", "rank{pid}_window{window}.json", "window{window}_rank{pid}.json")


@pytest.mark.parametrize("name", NAMES)
def test_R02_windows_of_one_process_are_one(tmp_path, name):
    """A rank of which a schedule that repeats wrote several files is no two ranks: all that is told of them is as of one file."""
    (tmp_path / "whole").mkdir()
    write_devices(tmp_path / "whole", [(0, 500), (0, 500), (0, 700)])
    split(tmp_path / "whole", tmp_path / "windows", name, at=STEPS // 2)
    for told in ("ranks", "rank_collectives", "collective_times", "steps", "step_breakdown", "kernels", "ops", "runtime_calls", "launches"):
        assert table(tmp_path / "windows", told) == table(tmp_path / "whole", told), told
    verdict, found = diagnose_files(tmp_path / "windows")
    assert verdict["verdict"] == "straggler-bound" and "rank 2" in found["SS602"]["where"]
    assert [row["rank"] for row in table(tmp_path / "windows", "ranks")] == [0, 1, 2]


def test_R02_the_time_of_steps_that_were_not_recorded_is_not_between_steps(tmp_path):
    """A schedule leaves steps out between its windows."""
    trace = Trace()
    for number in (3, 4, 5, 9, 10, 11):
        trace.step(number, 1000 * number, 990)
        trace.op("aten::mm", 1000 * number + 10, 900)
    trace.write(tmp_path / "trace.json")
    parts = {row["part"]: row["total_ns"] for row in table(tmp_path / "trace.json", "between_steps")}
    assert parts["between steps: other"] == 4 * 10_000 and parts["steps that were not recorded"] == 3_010_000


@pytest.mark.parametrize("change", ("pid", "rank", "steps", "time"))
def test_what_is_no_window_of_the_same_process_stays_apart(tmp_path, change):
    """Another process, another rank, a program that was started again, and two at once."""
    for window in range(2):
        trace = Trace(distributedInfo={"backend": "gloo", "rank": window if change == "rank" else 0, "world_size": 2})
        for number in range(3):
            start = 1000 * (number + 3 * (window if change != "time" else 0))
            trace.span("user_annotation", f"ProfilerStep#{number + 3 * (window if change != 'steps' else 0)}", start, 990,
                       pid=100 + (window if change == "pid" else 0))
        trace.write(tmp_path / f"window{window}.json")
    assert len(table(tmp_path, "ranks")) == 2


@pytest.mark.parametrize("seconds, is_said, has_ranks", ((0, False, False), (30, False, False), (86400, True, False), (86400, True, True)))
def test_runs_of_other_days_are_no_ranks_of_one_job(tmp_path, seconds, is_said, has_ranks):
    """A directory of TensorBoard with two runs in it; clocks of two machines may differ by some seconds, or, where both say which ranks they are of, by
    any time."""
    for number in range(2):
        ranks = {"distributedInfo": {"backend": "gloo", "rank": number, "world_size": 2}} if has_ranks else {}
        trace = Trace(baseTimeNanoseconds=1790000000000000000 + number * seconds * 1000000000, **ranks)
        for step in range(STEPS):
            trace.step(step, 1000 * step, 900 - 100 * number)
        trace.write(tmp_path / f"worker0.{number}.pt.trace.json")
    done = subprocess.run([STEPSCOPE, "report", tmp_path, "--table", "ledger", "--json"], capture_output=True, text=True, timeout=60, check=True)
    said = [row for row in json.loads(done.stdout)["rows"] if "apart from the first trace, so it is from another run" in json.dumps(row)]
    assert len(said) == is_said
    assert not is_said or "the trace is 24 h 0 min apart" in json.dumps(said)
    mean, = [row["mean_ns"] for row in table(tmp_path, "step_time") if row["process"] == "all"]
    assert mean == (900_000 if is_said and not has_ranks else pytest.approx(850_000))


def test_of_a_run_of_another_day_nothing_is_counted(tmp_path):
    """Nor of a second process of its file, which has no steps."""
    first, both = tmp_path / "first", tmp_path / "both"
    for number in range(2):
        trace = Trace(baseTimeNanoseconds=1790000000000000000 + number * 86400_000000000)
        for step in range(STEPS):
            trace.step(step, 1000 * step, 900)
            trace.launch("cudaLaunchKernel", 1000 * step + 5, 5, f"kernel_{step % 2}", 1000 * step + 20, 500)
        trace.span("cpu_op", "aten::add", 100, 50, pid=200 + number)
        for folder in (both, first)[:2 - number]:
            folder.mkdir(exist_ok=True)
            trace.write(folder / f"{number}.pt.trace.json")
    for name in ("processes", "steps", "ops", "kernels", "launches", "device_busy", "threads", "facts"):
        assert table(both, name) == table(first, name), name
    for key in ("duration_ns", "processes", "events"):
        assert [row[key] for row in table(both, "run")] == [row[key] for row in table(first, "run")]
    assert [row["where"] for row in table(both, "ledger") if "another run" in row["sentence"]] == ["1.pt.trace.json"]


@pytest.mark.parametrize("exchanges", (1, 3))
def test_kernels_that_communicate_are_the_communication_of_a_rank(tmp_path, exchanges):
    """Also several at once, and not what lies behind a kernel that computes."""
    write_devices(tmp_path, [(0, 500), (0, 900)], exchanges=exchanges)
    rows = table(tmp_path, "ranks")
    assert [row["communication_ns"] for row in rows] == [(400 + EXCHANGE) * 1000, EXCHANGE * 1000]
    assert [row["own_ns"] for row in rows] == [500_000 + (HANDOVER + UPDATE) * 1000, 900_000 + (HANDOVER + UPDATE) * 1000]
    assert [row["behind_ns"] for row in rows] == [-400_000, 400_000]
    assert [row["is_slowest"] for row in rows] == [False, True]


def test_hidden_communication_is_0_and_none_is_not_measured(tmp_path):
    for rank, kernels in enumerate((("gemm", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)"), ("gemm",))):
        trace = Trace(deviceProperties=[{"id": 0, "name": "a device"}], distributedInfo={"backend": "nccl", "rank": rank, "world_size": 2})
        for number in range(STEPS):
            trace.step(number, 1000 * number, 1000)
            for stream, kernel in enumerate(kernels):
                trace.launch("cudaLaunchKernel", 1000 * number + stream, 1, kernel, 1000 * number + 100 + stream, 800 - 2 * stream, stream=7 + stream)
        trace.write(tmp_path / f"rank{rank}.json")
    assert [row["communication_ns"] for row in table(tmp_path, "ranks")] == [0, None]


@pytest.mark.parametrize("collective, given, gotten", (("gather", 1 << 20, 8 << 20), ("scatter", 8 << 20, 1 << 20), ("allgather", 1 << 20, 8 << 20),
                                                       ("reduce_scatter", 8 << 20, 1 << 20)))
def test_sizes_are_those_of_all_parts(tmp_path, collective, given, gotten):
    """As nccl-tests count them: 8 Mi elements of 4 bytes in 1 ms, of which a rank's own eighth goes over no link."""
    trace = Trace(distributedInfo={"backend": "nccl", "rank": 0, "world_size": 8})
    trace.launch("cudaLaunchKernel", 0, 5, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 10, 1000,
                 **{"Collective name": collective, "In msg nelems": given, "Out msg nelems": gotten, "Group size": 8, "dtype": "Float"})
    trace.write(tmp_path / "rank0.json")
    row, = table(tmp_path, "communication")
    assert row["bytes"] == 32 << 20 and row["algorithm_bytes_per_s"] == pytest.approx((32 << 20) * 1000)
    assert row["bus_bytes_per_s"] == pytest.approx((32 << 20) * 1000 * 7 / 8)


def test_D01_groups_of_one_name_are_told_apart_by_their_ranks(tmp_path):
    """All tensor parallel groups are called the same, and so are all data parallel ones."""
    write_grid(tmp_path, [0, 0, 0, 400], told=lambda group, ranks: {"Process Group Name": group.split()[0], "Process Group Ranks": ranks})
    verdict, found = diagnose_files(tmp_path)
    assert verdict["verdict"] == "straggler-bound" and "each of the others waits 400.0 us" in found["SS602"]["evidence"]
    times = table(tmp_path, "collective_times")
    assert sorted((row["group"], row["group_members"], row["recorded_ranks"]) for row in times) == [
        ("data", "[0, 2]", 2), ("data", "[1, 3]", 2), ("tensor", "[0, 1]", 2), ("tensor", "[2, 3]", 2)]


@pytest.mark.parametrize("told", (lambda group, ranks: {}, lambda group, ranks: {"Process Group Name": group.split()[0]}))
def test_D01_groups_that_cannot_be_told_apart_are_said(tmp_path, told):
    """They are four pairs, and no collective of four ranks; that there was none is not true, either."""
    write_grid(tmp_path, [0, 0, 0, 400], told)
    done = subprocess.run([STEPSCOPE, "report", tmp_path, "--table", "rank_collectives"], capture_output=True, text=True, timeout=60, check=True)
    assert "collectives of several process groups cannot be distinguished" in " ".join(done.stdout.split())


def test_ranks_that_have_other_numbers_of_collectives_are_said(tmp_path):
    for rank in range(2):
        trace = Trace(distributedInfo={"backend": "nccl", "rank": rank, "world_size": 2})
        trace.step(0, 0, 1000)
        for number in range(1 + rank):
            trace.launch("cudaLaunchKernel", 10 * number, 2, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", 100 + 100 * number, 50)
        trace.write(tmp_path / f"rank{rank}.json")
    done = subprocess.run([STEPSCOPE, "report", tmp_path, "--table", "rank_collectives"], capture_output=True, text=True, timeout=60, check=True)
    assert "the ranks recorded different collectives, or different numbers of them" in " ".join(done.stdout.split())


def test_a_pipeline_is_told_of_its_bubble_and_not_of_buckets(tmp_path):
    """Two stages that send and receive: nothing else is exchanged."""
    for rank in range(2):
        trace = Trace(deviceProperties=[{"id": 0, "name": "a device"}], distributedInfo={"backend": "nccl", "rank": rank, "world_size": 2})
        for number in range(STEPS):
            start = 2000 * number
            trace.step(number, start, 2000)
            for kernel, begin, dur in (("gemm", 1000 * rank, 900), ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 1000 - 1000 * rank, 950)):
                trace.launch("cudaLaunchKernel", start, 2, kernel, start + begin, dur)
        trace.write(tmp_path / f"rank{rank}.json")
    _, found = diagnose_files(tmp_path)
    assert "sends and receives" in found["SS601"]["evidence"]
    assert "bubble" in found["SS601"]["advice"] and "buckets" not in found["SS601"]["advice"]
    done = subprocess.run([STEPSCOPE, "report", tmp_path, "--table", "rank_collectives"], capture_output=True, text=True, timeout=60, check=True)
    assert "sends, receives and broadcasts do not show which rank waits for which" in " ".join(done.stdout.split())


def test_I06_a_rank_that_is_not_here_is_missed(tmp_path):
    """All but the late one: what they wait for it must not be sold as time of the exchange."""
    write_devices(tmp_path, [(0, 500), (0, 900), (0, 500), (0, 500)])
    (tmp_path / "rank1.json").unlink()
    for operand, count, missing in ((tmp_path, 1, "rank 1 of 4"), (tmp_path / "rank0.json", 3, "ranks 1 to 3 of 4")):
        done = subprocess.run([STEPSCOPE, "diagnose", operand, "--json"], capture_output=True, text=True, timeout=60, check=True)
        result = json.loads(done.stdout)
        found, = [finding for finding in result["findings"] if finding["rule"] == "SS601"]
        assert found["confidence"] == "low" and found["evidence"].endswith(f"cannot be told from waiting without {missing}")
        straggler, = [check for check in result["checks"] if check["rule"] == "SS602"]
        assert straggler["result"] == "cannot tell" and "ranks of the job are not here" in straggler["reason"]
        report = subprocess.run([STEPSCOPE, "report", operand], capture_output=True, text=True, timeout=60, check=True).stdout
        told = f"these ranks are missing, so the time that other ranks waited for them in communication is unknown ({count}, {missing})"
        assert told in " ".join(report.split())


def test_I06_who_is_late_of_those_that_are_here_is_found_all_the_same(tmp_path):
    write_devices(tmp_path, [(0, 500), (0, 900), (0, 500), (0, 500)])
    (tmp_path / "rank3.json").unlink()
    _, found = diagnose_files(tmp_path)
    assert found["SS602"]["where"] == "rank 1" and found["SS602"]["saving_ns"] == pytest.approx(400_000, abs=NEAR)


def missing_ranks(path):
    done = subprocess.run([STEPSCOPE, "query", path, "SELECT missing_ranks FROM run", "--json"], capture_output=True, text=True, timeout=60, check=True)
    row, = json.loads(done.stdout)["rows"]
    return row["missing_ranks"]


GROUP = {"Collective name": "allreduce", "dtype": "Float", "In msg nelems": 8, "Out msg nelems": 8, "Group size": 4}
AS_WORK = [("launch", ("cudaLaunchKernel", 5, 5, "ncclDevKernel_AllReduce_Sum_f32", 20, 50), GROUP)]
AS_OPERATOR = [("op", ("record_param_comms", 5, 50), {**GROUP, "Process Group Ranks": "[0, 1, 2, 3]"})]


@pytest.mark.parametrize("names, events, missing", [
    (["rank0", "rank1", "rank3"], [], "rank 2 of at least 4 (there is rank 3)"), (["rank0", "rank1"], [], None), (["trace"], [], None),
    (["rank0", "rank1"], AS_WORK, "ranks 2, 3 of at least 4 (a process group has size 4)"), (["trace"], AS_WORK, "3 of at least 4 ranks (a process group has size 4)"),
    (["rank0", "rank2"], AS_OPERATOR, "ranks 1, 3 of at least 4 (a process group has size 4)"),
    (["rank0", "rank1", "rank2", "rank3"], AS_WORK + AS_OPERATOR, None), (["a", "bb", "ccc", "dddd"], AS_WORK + AS_OPERATOR, None),
    (["a", "bb", "ccc"], AS_WORK, "1 of at least 4 ranks (a process group has size 4)"),
    (["rank1", "rank0"], [("op", ("record_param_comms", 5, 50), {"Process Group Ranks": "[0, 2, ..., 5]"})],
     "ranks 2 to 5 of at least 6 (a process group contains rank 5)")])
def test_I06_who_is_missing_where_nobody_says_how_many_there_are(tmp_path, names, events, missing):
    for name in names:
        trace = Trace(deviceProperties=[{"id": 0, "name": "a device"}])
        trace.step(len(names), 1000 * len(name), 1000 + int(name[-1:] if name[-1:].isdigit() else 0))
        for kind, arguments, args in events:
            getattr(trace, kind)(*arguments, **args)
        trace.write(tmp_path / f"{name}.json")
    assert missing_ranks(tmp_path) == missing


@pytest.mark.parametrize("here, missing", [
    ((0,), "ranks 1 to 7 of 8"), ((0, 7), "ranks 1 to 6 of 8"), ((3, 1, 2, 4, 5, 6, 7), "rank 0 of 8"), ((0, 2, 5, 6), "ranks 1, 3, 4, 7 of 8"),
    (range(0, 24, 2), "12 of 24 ranks"), (range(8), None), ((), "7 of 8 ranks")])
def test_I06_missing_ranks_have_their_names(tmp_path, here, missing):
    world = 24 if len(here) > 8 else 8
    for rank in here or (None,):
        info = {"backend": "gloo", "world_size": world} | ({} if rank is None else {"rank": rank})
        trace = Trace(distributedInfo=info)
        trace.step(0, 0, 1000)
        trace.write(tmp_path / f"trace-{rank}.json")
    assert missing_ranks(tmp_path) == missing


def write_turns(directory, late):
    """Four ranks; late(rank, step) in microseconds, behind 900 us of work; each waits in a collective until the last one has come."""
    for rank in range(4):
        start = 0
        trace = Trace(deviceProperties=[{"id": 0, "name": "a device"}], distributedInfo={"backend": "nccl", "rank": rank, "world_size": 4})
        for number in range(20):
            own, last = 900 + late(rank, number), 900 + max(late(other, number) for other in range(4))
            trace.step(number, start, last + EXCHANGE + UPDATE)
            trace.launch("cudaLaunchKernel", start, 2, "gemm", start, own)
            trace.launch("cudaLaunchKernel", start + 3, 1, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", start + own, last - own + EXCHANGE, stream=20)
            update(trace, start + 5, start + last + EXCHANGE)
            start += last + EXCHANGE + UPDATE
        trace.write(directory / f"rank{rank}.json")


@pytest.mark.parametrize("late, where, saved", [
    (lambda rank, number: 3000 * (rank >= 2), "rank 2, rank 3", 1500),
    (lambda rank, number: 3000 * (number % 4 == rank), "rank 0, rank 1, rank 2, rank 3", 3000)], ids=["a slow machine", "each in its turn"])
def test_what_no_single_rank_is_to_blame_for_is_told(tmp_path, late, where, saved):
    """The step with all ranks at their median: half way if two of four are late, and with no delay if one is late in each step."""
    write_turns(tmp_path, lambda rank, number: late(rank, number) + (rank == 3))
    verdict, found = diagnose_files(tmp_path)
    assert verdict["verdict"] == "straggler-bound" and found["SS602"]["where"] == where and "no single one" in found["SS602"]["evidence"]
    assert found["SS602"]["saving_ns"] == pytest.approx(saved * 1000, rel=0.01)
    assert f"({where})" in verdict["sentence"]
    assert "SS601" not in found or "; ranks wait 2.250 ms for late ones" in found["SS601"]["evidence"]


def test_a_rank_that_is_late_in_one_step_is_not_late_on_average(tmp_path):
    write_turns(tmp_path, lambda rank, number: 20_000 * (rank == 3 and number == 15) + (rank == 2 and number % 2))
    _, found = diagnose_files(tmp_path)
    assert found["SS602"]["where"] == "rank 3" and "; 100.0 % of that is of step 15 alone; " in found["SS602"]["evidence"]
    assert found["SS602"]["confidence"] == "medium"
