# SPDX-License-Identifier: Apache-2.0
"""The simulation knows the truth, stepscope reads its traces, and the replay in Python agrees with both."""
import json
import os
import subprocess

import pytest

pytest.importorskip("numpy", reason="numpy comes with PyTorch (tools/setup test)")
import cases  # noqa: E402
import gpusim_trace  # noqa: E402
import shares  # noqa: E402
from gpusim import Params, simulate, truth  # noqa: E402
from kinds import base_of, calibrate, cut_of, with_fault  # noqa: E402
from replay import measured, plain, replay, usual  # noqa: E402
from replay_cuts import savings  # noqa: E402
from replay_trace import load  # noqa: E402

STEPSCOPE = os.environ.get("STEPSCOPE", "build-test/src/stepscope")
# kind: the cut of the replay that removes it
CUTS = {"item": "sync", "sync_call": "sync", "data_const": "data", "h2d_pageable": "copies", "malloc": "malloc", "dtype": "dtype", "clone": "clone",
        "py_gap": "python", "gc": "irregular"}


def trace_of(p, folder):
    return gpusim_trace.write(simulate(p, emit=True), str(folder / ("ranks" if p.ranks > 1 else "trace.json")))


def test_a_run_without_a_cost_has_the_same_chance():
    p = Params(seed=2, steps=6, fault={"callback": 5000.0})
    assert truth(p, set()) == 0 and truth(p, {"malloc"}) == 0
    assert simulate(with_fault(Params(seed=2, steps=6), "callback", 5000.0)).step_us == simulate(p).step_us
    gain = simulate(p).step_us - simulate(Params(seed=2, steps=6)).step_us
    assert abs(truth(p, {"py"}) - gain / simulate(p).step_us) < 1e-9


@pytest.mark.parametrize("target", (0.05, 0.3))
def test_a_fault_costs_the_wanted_share(target):
    base = base_of("py_gap", 4, {"steps": 8})
    size, saving = calibrate(base, "py_gap", target)
    assert abs(saving - target) < 0.06 * target
    assert truth(with_fault(base, "py_gap", size), cut_of("py_gap")) == saving


@pytest.mark.parametrize("options", ({}, {"sync_end": False, "warm": 12}, {"device": False}, {"ranks": 2}), ids=("sync", "async", "cpu", "ranks"))
def test_stepscope_reads_the_steps_of_the_simulation(options, tmp_path):
    p = Params(seed=2, steps=6, **options)
    command = [STEPSCOPE, "report", trace_of(p, tmp_path), "--table", "steps", "--limit", "100", "--json"]
    rows = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=60).stdout)["rows"]
    times = sorted(row["duration_ns"] / 1000 for row in rows)
    assert times == pytest.approx(sorted(us for steps in simulate(p).steps for us in steps), abs=0.01)


@pytest.mark.parametrize("kind", CUTS)
def test_the_replay_without_a_cost_is_the_simulation_without_it(kind, tmp_path):
    base = base_of(kind, 2, {"steps": 12, "sync_end": kind != "dtype", "warm": 3 if kind != "dtype" else 12})
    p = with_fault(base, kind, calibrate(base, kind, 0.1)[0])
    t = load(trace_of(p, tmp_path))
    ends = measured(t)
    mean = (ends[-1] - ends[0]) / (len(ends) - 1)
    assert t.violations == 0
    assert replay(t, plain(t)).first == pytest.approx(mean, rel=1e-6)
    assert replay(t, usual(t)).first == pytest.approx(mean, rel=0.01)
    step, found = savings(t, names=[CUTS[kind]])
    assert step == pytest.approx(simulate(p).step_us, rel=0.03)
    assert found[CUTS[kind]] == pytest.approx(truth(p, cut_of(kind)), abs=0.02)


def test_cases_are_the_same_each_time():
    for part, number in (("single", 108), ("healthy", 18), ("pair", 1)):
        found = list(cases.cases_of(part, [2]))
        assert len(found) == number and found == list(cases.cases_of(part, [2]))
        assert cases.training(found[-1]) == cases.training(found[-1])
    assert {case["kind"] for case in cases.cases_of("single", [2], ["gc"])} == {"gc"}


def test_a_case_has_its_truth_and_the_answer(tmp_path):
    row = cases.measure({"part": "single", "seed": 2, "kind": "malloc", "target": 0.1}, STEPSCOPE, str(tmp_path))
    assert 0.09 < row["true"] < 0.11 and row["out"]["verdict"]
    promised = {key: true for key, _, true in shares.promises(row)}
    assert all(0 <= true < 1 for true in promised.values())


def row_of(true, found, verdict="healthy", kind="malloc", **more):
    """A measured case whose findings are (cut, promised, true)."""
    findings = [{"rule": "SS206", "cut": cut, "s": promised} for cut, promised, _ in found]
    return {"part": "single", "seed": 2, "kind": kind, "variant": {}, "true": true,
            "out": {"verdict": verdict, "sentence": f"it is {verdict}", "saving": sum(promised for _, promised, _ in found), "findings": findings,
                    "rule_truth": {cut: most for cut, _, most in found}}, **more}


def test_shares_count_what_the_claims_say():
    rows = [row_of(0.1, [("alloc", 0.1, 0.1)], "host-bound"),
            row_of(0.1, [("alloc", 0.18, 0.1)], "host-bound"),     # above 1.5 x truth + 2 points
            row_of(0.1, [("alloc", 0.029, 0.1)]),                  # below half - 2 points, and healthy
            row_of(0.06, [("alloc", 0.019, 0.06)]),                # too small to count
            row_of(0.01, [], part="healthy"),
            row_of(0.1, [("alloc", 0.3, 0.1)], part="pair", kind2="item", true2=0.04, both=0.2)]
    found = {(share.text, share.group): (share.found, share.count) for share in shares.shares(rows)}
    assert found["faults of 5 % and more named", "all"] == (3, 4)
    assert found["faults of 10 % and more named", "sync"] == (3, 3)
    assert found["promises above 1.5 x truth + 2 points", "all"] == (1, 3)
    assert found["promises below half of the truth - 2 points", "all"] == (1, 3)
    assert found["'healthy' with 10 % and more to save", "all"] == (1, 3)
    assert found["healthy trainings called healthy", "all"] == (1, 1)
    assert found["faults of pairs of 5 % and more named", "all"] == (1, 1)
    assert found["together above the possible + 5 points", "all"] == (1, 1)
    assert [text for _, text in shares.wrong_cases(rows)] == [
        "alloc promises 18.0 %, at most 10.0 % are true", "alloc promises 2.9 %, at most 10.0 % are true", "it is healthy",
        "malloc of 6.0 % is not named", "alloc promises 30.0 %, at most 10.0 % are true", "it is healthy", "together 30.0 %, at most 20.0 % are possible"]


def test_a_share_of_right_answers_is_claimed_by_the_wrong_ones():
    right = shares.Share("faults named", "all", 9, 10, at_least=92, is_right=True)
    assert right.wrong() == ("faults not named, all", 10.0, 8)
    assert shares.Share("promises too high", "all", 1, 20, at_most=3).wrong() == ("promises too high, all", 5.0, 3)
    assert shares.Share("promises too high", "all", 1, 20).wrong() is None
