# SPDX-License-Identifier: Apache-2.0
"""Runs in which some steps have operators, which makes these longer: nothing is said of the program that is the recorder's. Recordings are made
by tests/unit/mixed_sample.c, with durations that are known."""
import itertools
import json
import os
import random
import re
import subprocess

import pytest

STEPSCOPE = os.environ["STEPSCOPE"]
SAMPLE = os.path.join(os.environ["BUILD"], "tests", "unit", "mixed_sample")
SLOW = ("slow=4:30", "slow=8:30", "slow=10:30", "slow=2:60")


def chosen(every, count=287, seed=1):
    """One of each block of `every` steps at a random place, behind the first three."""
    draw = random.Random(seed)
    places = {first + draw.randrange(every) for first in range(0, count, every)}
    return "".join("o" if step in places and step >= 3 else "." for step in range(count))


def make(path, steps, *options):
    subprocess.run([SAMPLE, path, steps, "torch=2.13", *options], check=True)
    return path


def read(*arguments):
    done = subprocess.run([STEPSCOPE, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120)
    assert "error" not in done.stderr, done.stderr
    return done.stdout


def report(path):
    return json.loads(read("report", path, "--json"))


def findings(path):
    return {row["rule"]: row for row in json.loads(read("diagnose", path, "--json"))["findings"]}


def checks(path):
    return {row["rule"]: row for row in json.loads(read("diagnose", path, "--json"))["checks"]}


def verdict(base, new, *options):
    return json.loads(read("compare", base, new, *options, "--json"))["verdict"]


@pytest.mark.parametrize("every", [2, 4, 8, 16])
def test_the_step_time_is_that_of_steps_without_operators(tmp_path, every):
    answer = report(make(tmp_path / "run", chosen(every), "step=100", "cost=18", "noise=1", "budget=3 %", f"every={every}"))
    steps = chosen(every).count("o")
    assert answer["step_time_ns"]["count"] == 287 - steps
    assert abs(answer["step_time_ns"]["mean"] - 100e6) < 1e6 and answer["step_time_ns"]["max"] < 102e6
    assert answer["step_time_ns"]["outliers"] == 0
    window = answer["window"]
    assert (window["operator_steps"], window["operators_every"]) == (steps, every)
    assert window["overhead_low_ratio"] <= 0.18 * steps / 287 <= window["overhead_high_ratio"]
    assert abs(window["overhead_all_ratio"] - 0.18) < 0.02 and abs(window["overhead_ratio"] - 0.18 * steps / 287) < 0.005
    matmul = next(row for row in answer["ops"] if row["name"] == "matmul")
    assert (matmul["calls"], matmul["step_mean_ns"], matmul["mean_ns"]) == (287, 4e6, 4e6)
    assert abs(matmul["self_cpu_ns"] - 287 * 4e6) < 287


def test_the_report_says_from_which_steps(tmp_path):
    said = " ".join(read("report", make(tmp_path / "run", chosen(8), "cost=18", "noise=1", "budget=3 %", "every=8")).split())
    steps = chosen(8).count("o")
    assert f"from {287 - steps} of 287 steps, those without operators" in said
    assert re.search(rf"recording cost 2\.\d % \({steps} steps with operators against their neighbours, 1[78]\.\d % each \+- 0\.\d\)", said)
    assert f"from {steps} of 287 steps, those with operators: sums are theirs times" in said


@pytest.mark.parametrize("options", [(), *((slow,) for slow in SLOW), ("first=2000",)])
@pytest.mark.parametrize("every", [2, 8])
def test_no_rule_finds_the_recorder(tmp_path, every, options):
    """What is found is found of the run in which nothing was recorded, too; SS410 counts slow steps, of which fewer are left."""
    make(tmp_path / "without", "." * 287, "noise=1", *options)
    make(tmp_path / "with", chosen(every), "cost=18", "noise=1", "budget=3 %", f"every={every}", *options)
    found = set(findings(tmp_path / "with"))
    assert found | {"SS410"} == set(findings(tmp_path / "without")) | {"SS410"} and found <= set(findings(tmp_path / "without"))


def test_what_recurs_is_found_though_some_of_it_has_operators(tmp_path):
    found = findings(make(tmp_path / "run", chosen(4, seed=3), "cost=18", "noise=1", "slow=7:50", "budget=3 %"))
    assert found["SS409"]["where"].startswith("every 7 steps")


def test_of_few_steps_with_operators_rules_cannot_tell(tmp_path):
    kinds = "....o...o.."
    found = checks(make(tmp_path / "run", kinds, "budget=3 %"))
    said = "operators of 2 of 11 steps; --budget none records all"
    assert found["SS201"]["reason"] == said
    assert {found[rule]["result"] for rule in ("SS202", "SS204", "SS401")} == {"nothing"}  # which are not about operators
    assert said in " ".join(read("report", tmp_path / "run").split())


SIDES = {
    "all": ("o" * 287, "cost=18", "budget=none", "seed=5"),
    "none": ("." * 287, "seed=7"),
    "every 2nd": (chosen(2), "cost=18", "budget=9 %", "every=2", "seed=9"),
    "every 8th": (chosen(8), "cost=18", "budget=3 %", "every=8", "seed=11"),
}


@pytest.mark.parametrize("pair", list(itertools.permutations(SIDES, 2)), ids=" against ".join)
def test_recording_alone_is_no_difference(tmp_path, pair):
    for name in pair:
        make(tmp_path / name, *SIDES[name], "noise=1")
    answer = verdict(tmp_path / pair[0], tmp_path / pair[1])
    if set(pair) == {"all", "none"}:
        assert (answer["result"], answer["is_comparable"]) == ("not comparable", False)
        assert "in all steps of the" in answer["sentence"] and "--budget none" in answer["sentence"]
    else:
        assert answer["result"] == "no difference"


@pytest.mark.parametrize("base,new", [("all", "every 8th"), ("every 8th", "all"), ("every 2nd", "every 8th"), ("none", "every 8th")])
def test_a_slower_program_is_found_through_the_recording(tmp_path, base, new):
    make(tmp_path / "base", *SIDES[base], "noise=1")
    make(tmp_path / "new", *SIDES[new], "noise=1", "step=110")
    answer = verdict(tmp_path / "base", tmp_path / "new")
    assert answer["result"] == "regression" and abs(answer["change_ratio"] - 0.1) < 0.015


@pytest.mark.parametrize("first,second", [("all", "every 8th"), ("every 8th", "all"), ("every 8th", "every 2nd"), ("all", "none")])
def test_kept_runs_are_of_a_kind_too(tmp_path, first, second):
    for name in (first, second):
        make(tmp_path / name, *SIDES[name], "noise=1")
    history = ("--history", tmp_path / "history.db", "--series", "s")
    read("history", "add", tmp_path / first, *history)
    answer = json.loads(read("compare", "--baseline", "last", tmp_path / second, *history, "--json"))["verdict"]
    assert answer["result"] == ("not comparable" if second == "none" else "no difference")


def test_a_tier_does_not_judge_the_recorder(tmp_path):
    for name in ("all", "none", "every 8th"):
        make(tmp_path / name, *SIDES[name], "noise=1")
    for new, status in (("every 8th", 0), ("none", None)):
        done = subprocess.run([STEPSCOPE, "compare", "--tier", "default", tmp_path / "all", tmp_path / new], capture_output=True, text=True, check=False)
        assert done.returncode == status if status is not None else done.returncode != 1, done.stdout
