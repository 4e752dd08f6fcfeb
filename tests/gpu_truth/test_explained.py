# SPDX-License-Identifier: Apache-2.0
"""`stepscope compare` explains the difference of two traces by the cut that removes their one fault.

tests/data/gpu_truth/SOURCES.md describes the traces.
"""
import functools
import json
import os
import subprocess
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parent.parent / "data" / "gpu_truth"
STEPSCOPE = os.environ.get("STEPSCOPE", "build-test/src/stepscope")
MOST_UNEXPLAINED = 0.1  # of the difference
# (trace, the same with one fault): the cuts that may have the largest part of the difference
PAIRS = {("base", "gap"): {"host"}, ("base", "loader"): {"data"}, ("base", "pageable"): {"data", "copy"}, ("graph", "base"): {"launch"},
         ("base", "fp32"): {"precision"}, ("graph", "fp32"): {"precision"},
         ("tiny_graph", "tiny"): {"launch", "optimizer"}}


@functools.lru_cache(maxsize=None)
def compared(base, new):
    paths = [str(DATA / f"{name}.json.zst") for name in (base, new)]
    done = subprocess.run([STEPSCOPE, "compare", "--json", *paths], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def difference(found):
    return sum(row["part_ns"] for row in found["explained_by"]) + found["unexplained_ns"]


def pairs(both_ways=True):
    return [pytest.param(*pair, PAIRS[pair if pair in PAIRS else pair[::-1]], id="-".join(pair))
            for pair in [*PAIRS, *(pair[::-1] for pair in PAIRS if both_ways)]]


@pytest.mark.parametrize("base, new, cuts", pairs())
def test_the_cut_of_the_fault_has_the_largest_part(base, new, cuts):
    rows = compared(base, new)["explained_by"]
    assert rows[0]["cut"] in cuts
    assert abs(rows[0]["part_ns"]) == max(abs(row["part_ns"]) for row in rows)


@pytest.mark.parametrize("base, new, cuts", pairs())
def test_a_tenth_of_the_difference_is_unexplained_at_most(base, new, cuts):
    found = compared(base, new)
    assert cuts and abs(found["unexplained_ns"]) <= MOST_UNEXPLAINED * abs(difference(found))


@pytest.mark.parametrize("base, new, cuts", pairs())
def test_the_difference_is_that_of_the_steps(base, new, cuts):
    found = compared(base, new)
    mean = next(row for row in found["metrics"] if row["metric"] == "step_time_mean")
    assert cuts and difference(found) == pytest.approx(mean["delta"], rel=0.15)  # the steps of fp32 scatter by a tenth


@pytest.mark.parametrize("base, new, cuts", pairs())
def test_changes_have_signs_and_intervals(base, new, cuts):
    there, back = compared(base, new), compared(new, base)
    assert cuts
    for row in there["explained_by"]:
        assert row["change_ns"] == pytest.approx(row["new_saving_ns"] - row["base_saving_ns"], abs=0.02)
        assert row["change_low_ns"] <= row["change_ns"] <= row["change_high_ns"]
    assert there["unexplained_ns"] == pytest.approx(-back["unexplained_ns"], abs=0.02)


@pytest.mark.parametrize("new, base, cuts", pairs(both_ways=False))
def test_a_promised_saving_came(base, new, cuts):
    promised = [row for row in compared(base, new)["explained_by"] if row["promised_ns"]]
    assert promised and cuts & {row["cut"] for row in promised}
    for row in promised:
        assert row["promised_ns"] == row["base_saving_ns"] and row["came_ns"] > 0
    if len(promised) == 1:
        assert promised[0]["came_ns"] == pytest.approx(promised[0]["promised_ns"], rel=0.15)
    assert "came" in compared(base, new)["verdict"]["promised"]


@pytest.mark.parametrize("base, new", [pytest.param("base", name, id=name) for name in ("gap", "loader", "fp32")])
def test_nothing_came_of_a_cost_that_is_still_there(base, new):
    found = compared(base, new)
    assert found["verdict"]["promised"] is None and not any(row["promised_ns"] for row in found["explained_by"])


def test_the_rate_of_bf16_is_a_part_of_its_own():
    """The cut `precision` gives the rate of TF32. The base has bf16, which is twice as fast."""
    rows = {(row["cut"], row["place"]): row["part_ns"] for row in compared("base", "fp32")["explained_by"]}
    assert 0 < rows["precision", "bf16"] < rows["precision", None]


def test_the_same_trace_has_no_difference():
    copy = compared("gap", "gap")
    assert copy["unexplained_ns"] == pytest.approx(0, abs=1) and not any(row["part_ns"] for row in copy["explained_by"])
    assert copy["verdict"]["by_cut"] is None


def test_a_side_without_a_replay_is_named(tmp_path):
    events = [{"ph": "X", "pid": 1, "tid": 1, "name": "ProfilerStep#1", "cat": "user_annotation", "ts": 0, "dur": 100}]
    short = tmp_path / "short.json"
    short.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    done = subprocess.run([STEPSCOPE, "compare", "--json", str(DATA / "base.json.zst"), str(short)], capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)
    assert found["unexplained_ns"] is None and found["explained_by"] == []
    assert found["unexplained_reason"] == "new cannot be replayed: a replay needs two complete steps"
    assert found["verdict"]["by_cut"] == found["unexplained_reason"]


def test_a_base_of_the_history_keeps_its_savings(tmp_path):
    kept = ["--history", str(tmp_path / "history.db"), "--series", "all"]
    subprocess.run([STEPSCOPE, "history", *kept, "--name", "slow", "add", str(DATA / "loader.json.zst")], check=True, capture_output=True)
    new = str(DATA / "base.json.zst")
    done = subprocess.run([STEPSCOPE, "compare", "--json", *kept, "--baseline", "slow", new], capture_output=True, text=True, check=False)
    assert json.loads(done.stdout)["explained_by"] == compared("loader", "base")["explained_by"]
