# SPDX-License-Identifier: Apache-2.0
"""Replays of our own recordings, made by tests/unit/mixed_sample.c, whose savings are known: with operators in all steps, and in one of eight. What is
known of all steps has the same saving in both; what is known of steps with operators is carried to the others."""
import json

import pytest
from test_budget import chosen, findings, make, read

STEPS = 287
KINDS = {"all": ("o" * STEPS, ()), "every 8th": (chosen(8), ("budget=3 %", "every=8"))}


def cuts(path):
    rows = json.loads(read("query", path, "SELECT * FROM what_if", "--json"))["rows"]
    return {row["cut"]: row for row in rows if row["place"] in (None, "everywhere")}


def recording(path, kinds, *options):
    steps, budget = KINDS[kinds]
    return make(path, steps, "cost=1", "noise=1", *budget, *options)


def share(every, ms, step=100):
    """Of a mean step, something that takes so many ms in every so many steps."""
    return ms / every / (step + ms / every)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("option, cut, rule", [("save=5:40", "checkpoint", "SS203"), ("evaluate=4:80", "evaluation", "SS215"),
                                               ("compile=5:50", "compile", "SS401"), ("slow=7:50", "periodic", "SS409")])
def test_what_only_some_steps_have(tmp_path, kinds, option, cut, rule):
    every, ms = map(float, option.split("=")[1].split(":"))
    run = recording(tmp_path / "run", kinds, option)
    row = cuts(run)[cut]
    assert row["saving_ratio"] == pytest.approx(share(every, ms), abs=0.006)
    assert row["saving_low_ratio"] <= share(every, ms) <= row["saving_high_ratio"]
    found = findings(run)[rule]
    assert (found["cut"], found["saving_ratio"]) == (cut, row["saving_ratio"])


@pytest.mark.parametrize("kinds", KINDS)
def test_host_time_is_carried_to_steps_without_operators(tmp_path, kinds):
    """All of a forward but its operator of 4 ms: 92 ms of 100."""
    run = recording(tmp_path / "run", kinds)
    assert cuts(run)["host"]["saving_ratio"] == pytest.approx(0.92, abs=0.01)
    assert findings(run)["SS412"]["where"] == "forward, between matmul and optimizer"


@pytest.mark.parametrize("kinds", KINDS)
def test_fault_F2_steps_that_grow(tmp_path, kinds):
    run = recording(tmp_path / "run", kinds, "grow=0.5")
    grown_ms = 0.5 * (STEPS + 3) / 2
    row = cuts(run)["growth"]
    assert row["saving_ratio"] == pytest.approx(grown_ms / (100 + grown_ms), abs=0.02)
    assert findings(run)["SS413"]["cut"] == "growth"


@pytest.mark.parametrize("options", [(), ("slow=7:50",), ("odd=0.03:60",), ("first=900",), ("save=5:40",)])
def test_steps_that_do_not_grow(tmp_path, options):
    for seed in range(5):
        assert "growth" not in cuts(recording(tmp_path / str(seed), "every 8th", *options, f"seed={seed}"))


def test_chance_is_no_period(tmp_path):
    for seed in range(10):
        assert "periodic" not in cuts(recording(tmp_path / str(seed), "every 8th", "odd=0.04:60", f"seed={seed}"))


@pytest.mark.parametrize("kinds", KINDS)
def test_savings_are_of_quiet_time(tmp_path, kinds):
    """Others take 40 of 100 ms: that is a finding of its own, and the other savings are the same as on a quiet machine."""
    quiet, busy = recording(tmp_path / "quiet", kinds, "save=5:40"), recording(tmp_path / "busy", kinds, "save=5:40", "delay=40")
    assert cuts(busy)["processors"]["saving_ratio"] == pytest.approx(40 / 108, abs=0.01)
    assert "processors" not in cuts(quiet)
    assert findings(busy)["SS806"]["cut"] == "processors"
    assert cuts(busy)["nothing removed"]["step_ns"] == pytest.approx(68e6, rel=0.02)
    assert cuts(busy)["checkpoint"]["saving_ratio"] == pytest.approx(cuts(quiet)["checkpoint"]["saving_ratio"], abs=0.02)
    assert "processor" not in json.loads(read("diagnose", busy, "--json"))["verdict"]["verdict"]
    without, = [row for row in json.loads(read("whatif", busy, "--without", "processors,checkpoint", "--json"))["rows"] if row["saving_ns"]]
    assert without["saving_ns"] == pytest.approx(40e6 + 68e6 * cuts(busy)["checkpoint"]["saving_ratio"], rel=0.02)


def test_no_saving_is_larger_than_the_step(tmp_path):
    run = recording(tmp_path / "run", "every 8th", "save=5:40", "compile=5:50", "evaluate=4:80", "slow=7:50", "grow=0.5", "delay=10")
    answer = json.loads(read("diagnose", run, "--json"))
    assert 0 < answer["verdict"]["saving_ratio"] <= 1
    for row in cuts(run).values():
        if row["saving_ratio"] is not None:
            assert 0 <= row["saving_low_ratio"] <= row["saving_ratio"] <= row["saving_high_ratio"] <= 1
