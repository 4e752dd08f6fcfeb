# SPDX-License-Identifier: Apache-2.0
"""Hard cases of clocks in traces, each with its row of the catalogue: clocks that step back, drift or are far apart, of devices and of ranks."""
import gzip
import json
import re
from random import Random

import pytest
from hard_tools import STEP, TESTS, fixture_trace, kernel, launch, span, step


def test_T12_a_clock_that_steps_back(trace):
    """By 500 us within step 1: what follows is in the order of its times, and no duration is below 0."""
    events = []
    for number in range(4):
        back = 500 if number >= 2 else 0
        events += [step(number, number * STEP - back), span("aten::mm", number * STEP + 10 - back, 400)]
    trace.write(events)
    assert [row["duration_ns"] for row in trace.table("steps")] == [1_000_000, 500_000, 1_000_000, 1_000_000]
    assert [row["is_complete"] for row in trace.table("steps")] == [True, False, True, True]
    row, = [row for row in trace.table("ops") if row["name"] == "aten::mm"]
    assert (row["calls"], row["max_ns"]) == (3, 400_000)  # that of the incomplete step does not count
    assert any("steps in which the next one begins end there" in sentence for sentence in trace.ledger())


def clock_sentences(trace):
    return [text for text in trace.ledger() if "before its launch" in text or "before their launches" in text]


def an_hour(drift, waits, seed=16):
    """Of a step a minute: a launch that its kernel follows within 10 to 30 us, and, with `waits`, a wait for the device."""
    random, events, minute = Random(seed), [], 60_000_000
    for number in range(60):
        start = number * minute
        begin = start + 110 + random.uniform(10, 30)
        events += [step(number, start, minute - 10), launch(start + 110, number + 1),
                   kernel("gemm", round(begin * (1 - drift), 3), 1000, correlation=number + 1)]
        if waits:
            wait = launch(start + 200, 1000 + number, "cudaDeviceSynchronize")
            events.append({**wait, "dur": round(begin + 1000 + 5 - (start + 200), 3)})
    return events


@pytest.mark.parametrize("waits", (False, True))
def test_T16_a_device_clock_that_drifts_for_an_hour(trace, waits):
    """50 ppm: 177 ms at the end. It is put right, and what that was is said."""
    trace.write(an_hour(50e-6, waits))
    sentence, = clock_sentences(trace)
    found = re.fullmatch(r"work appears to start before its launch because the clocks drift by ([\d.]+) ppm: .* and 17\d\.\d ms at the end; (.*)", sentence)
    assert abs(float(found[1]) - 50) < 0.01 and ("up to" in found[2]) == waits
    row, = [row for row in trace.table("launches") if row["call"] == "cudaLaunchKernel"]
    assert (row["work_count"], row["early_count"]) == (60, 0) and row["delay_max_ns"] < 30_000
    parts = {row["part"]: row["total_ns"] for row in trace.table("step_breakdown")}
    assert min(parts.values()) >= 0 and abs(parts["compute kernels"] - 60_000_000) < 10_000


def test_T16_clocks_that_agree_are_left_alone(trace):
    trace.write(an_hour(0, True))
    starts = trace.table("kernels")
    assert not clock_sentences(trace) and starts[0]["total_ns"] == 60_000_000
    row, = [row for row in trace.table("launches") if row["call"] == "cudaLaunchKernel"]
    assert 10_000 <= row["delay_mean_ns"] <= 30_000


def test_T16_waits_that_end_too_early_forbid_it(trace):
    """Work that is early by 3 ms, but that is waited for where it stands: no clock is wrong by so much, so nothing is moved."""
    events = an_hour(0, True)
    early = [{**event, "ts": event["ts"] - 3000} if event.get("cat") == "kernel" and event["ts"] % 120_000_000 < 60_000_000 else event
             for event in events]
    trace.write(early)
    sentence, = clock_sentences(trace)
    assert "the clocks of device and host disagree" in sentence
    assert sum(row["early_count"] for row in trace.table("launches")) == 30


def real_trace(change):
    """4,350 kernels and 1,600 copies of one device, with the times of the device changed."""
    whole = json.loads(gzip.decompress((TESTS / "data/hta_ns_resolution/rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz").read_bytes()))
    for event in whole["traceEvents"]:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"):
            event["ts"] = round(float(event["ts"]) + change, 3)
    return whole["traceEvents"]


def test_T16_a_device_clock_that_is_3_ms_behind(trace):
    trace.write(real_trace(0))
    before = {row["call"]: row for row in trace.table("launches")}
    assert not clock_sentences(trace)
    trace.write(real_trace(-3000))
    after = {row["call"]: row for row in trace.table("launches")}
    sentence, = clock_sentences(trace)
    assert sentence.startswith("work appears to start before its launch: device times were shifted later by 2.994 ms, the smallest")
    for call, row in after.items():
        assert row["early_count"] == 0 and -10_000 < row["delay_p50_ns"] - before[call]["delay_p50_ns"] <= 0


def test_T13_more_than_two_to_the_32_microseconds(trace):
    trace.write([step(1, 0, 5 * 10**9), step(2, 5 * 10**9, 26 * 86400 * 10**6)])
    assert [row["duration_ns"] for row in trace.table("steps")] == [5 * 10**12, 26 * 86400 * 10**9]


@pytest.mark.parametrize("base", [None, 0, 1712867402000000000, 3 * 2592000 * 10**9])
def test_T14_any_base_of_time(trace, base):
    trace.write([step(1, 5), span("a", 10, 20)], **({} if base is None else {"baseTimeNanoseconds": base}))
    assert [row["duration_ns"] for row in trace.table("steps")] == [STEP * 1000]
    assert [row["total_ns"] for row in trace.table("ops") if row["name"] == "a"] == [20000]


MINUTE = 60_000_000


def ranks_of(trace, folder, clocks, late, collective="ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", length=MINUTE, steps=60):
    """A file for each rank: in each step one exchange, to which each rank comes late (us) by its row and which takes 100 us from the last of
    them. clocks: by rank, from the true time in us to what its clock says."""
    folder.mkdir()
    for rank, clock in enumerate(clocks):
        events = []
        for number in range(steps):
            begin = number * length
            arrives, ends = begin + 1000 + late[rank], begin + 1100 + max(late)
            events.append(step(number, clock(begin), length - 10))
            events.append(launch(clock(arrives - 50), number + 1))
            events.append(kernel(collective, clock(arrives), clock(ends) - clock(arrives), stream=9, correlation=number + 1))
        (folder / f"rank{rank}.json").write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": rank, "world_size": len(clocks)}}))
    trace.path = folder
    return trace.table("rank_collectives")


def true(us):
    return us


def test_T15_clocks_that_are_far_apart(trace, tmp_path):
    """By 11.56 s, while one rank is 1.6 ms late; and nothing is compared that no collective ties together."""
    late = [0, 1600, 0]
    rows = ranks_of(trace, tmp_path / "tied", [true, true, lambda us: us + 11_560_000], late)
    assert [row["clock_ahead_ns"] for row in rows] == [0, 0, 11_560_000_000]
    assert [row["late_mean_ns"] for row in rows] == [1000 * us for us in late]
    assert [row["clock_residual_ns"] for row in rows] == [0, 0, 0] and [row["clock_change_ns"] for row in rows] == [0, 0, 0]
    assert [row["is_slowest"] for row in trace.table("ranks")] == [False, True, False]
    assert not ranks_of(trace, tmp_path / "loose", [true, lambda us: us + 11_560_000], late, collective="gemm")
    assert [row["late_ns"] for row in trace.table("ranks")] == [None, None]


CLOCKS = {
    "drifts by 50 ppm": (lambda us: us + us // 20000, 59 * 3_000_000),
    "is slow by 20 ppm": (lambda us: us - us // 50000, -59 * 1_200_000),
    "is set forward by 2 s": (lambda us: us + (2_000_000 if us > 20 * MINUTE else 0), 2_000_000_000),
    "is set back by 90 s": (lambda us: us - (90_000_000 if us > 45 * MINUTE else 0), -90_000_000_000),
    "is set late in the run": (lambda us: us + (700_000 if us > 54 * MINUTE else 0), 700_000_000),
}


@pytest.mark.parametrize("name", CLOCKS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_T16_a_rank_whose_clock(trace, tmp_path, name, ranks):
    """Piece by piece: who is late by how much is as with good clocks, and that the clock changed is said."""
    clock, change_ns = CLOCKS[name]
    late = [0, 400, 0][:ranks]
    rows = ranks_of(trace, tmp_path / "ranks", [true, *[clock] * (ranks == 2), true, clock][:ranks], late)
    assert [row["late_mean_ns"] for row in rows] == pytest.approx([1000 * us for us in late], abs=1000)
    assert max(row["clock_residual_ns"] for row in rows) <= 1000
    changes = [row["clock_change_ns"] for row in rows]
    assert changes[-1] - changes[0] == pytest.approx(change_ns, abs=4000)  # of two ranks nobody knows whose: half of it is each one's
    assert "piecewise for" in trace.run("--table", "rank_collectives")
    slowest = {row["process"]: row["is_slowest"] for row in trace.table("ranks")}
    assert slowest == {f"rank {rank}": rank == 1 for rank in range(ranks)}


def test_T16_noise_is_no_drift(trace, tmp_path):
    """Ends that lie some microseconds apart, to and fro, are put right by one number."""
    rows = ranks_of(trace, tmp_path / "ranks", [true, lambda us: us + 5000 + us // MINUTE * 7 % 13, true], [0, 0, 0])
    assert [row["clock_change_ns"] for row in rows] == [0, 0, 0]
    assert rows[1]["clock_ahead_ns"] == pytest.approx(5_006_000, abs=2000)
