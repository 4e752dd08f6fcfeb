# SPDX-License-Identifier: Apache-2.0
"""Rows D01 to D03 on ranks that wait for one another: who is late, in what, and how much shorter a step would be, known to the microsecond."""
import json
import os
import subprocess

import pytest

from made_trace import Trace

STEPSCOPE = os.environ["STEPSCOPE"]
STEPS, DATA, FORWARD, EXCHANGE = 6, 20, 900, 30


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


def diagnose(directory, ranks):
    write_ranks(directory, ranks)
    done = subprocess.run([STEPSCOPE, "diagnose", directory, "--json"], capture_output=True, text=True, timeout=60, check=True)
    result = json.loads(done.stdout)
    return result["verdict"], {finding["rule"]: finding for finding in result["findings"]}


@pytest.mark.parametrize("count", (2, 3, 4, 8))
def test_D01_one_rank_computes_longer(tmp_path, count):
    verdict, found = diagnose(tmp_path, [(DATA, FORWARD)] * (count - 1) + [(DATA, FORWARD + 1000)])
    assert verdict["verdict"] == "straggler-bound"
    late = found["SS602"]
    assert f"rank {count - 1}" in late["where"] and "1.000 ms behind the others" in late["evidence"] and "most in forward" in late["evidence"]
    assert late["saving_ns"] == pytest.approx(1_000_000) and "SS101" not in found
    if "SS601" in found:  # what is left is the exchange itself
        assert found["SS601"]["saving_ns"] == pytest.approx(EXCHANGE * 1000)
        assert f"waits for rank {count - 1}" in found["SS601"]["evidence"]


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
    assert verdict["verdict"] == "data-bound" and "SS602" not in found and "SS601" not in found
    assert found["SS101"]["saving_ns"] == pytest.approx((DATA + 1000) * 1000) and "(SS602)" not in found["SS101"]["evidence"]


def test_a_rank_is_measured_by_the_next_slowest(tmp_path):
    """Were the slowest as fast as the fastest, the second would still hold them up."""
    _, found = diagnose(tmp_path, [(DATA, FORWARD), (DATA, FORWARD + 400), (DATA, FORWARD + 1000)])
    assert found["SS602"]["saving_ns"] == pytest.approx(600_000) and "800.0 us behind the others" in found["SS602"]["evidence"]
