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

from run_tools import ACTOR, AS_USERS_HAVE_IT, environment

STEPSCOPE = os.environ["STEPSCOPE"]
SAMPLE = os.path.join(os.environ["BUILD"], "tests", "unit", "mixed_sample")
BUDGET = {1: (), 2: ("budget=9 %", "every=2"), 8: ("budget=3 %", "every=8")}
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


def test_what_is_rare_is_a_part_of_the_steps_that_are_compared(tmp_path):
    """It is known of all steps, operators of some: their parts sum to the step, and none is less than nothing."""
    kinds = chosen(8)
    base = make(tmp_path / "base", kinds, "step=10", "cost=1", "garbage=5", *BUDGET[8])
    new = make(tmp_path / "new", kinds, "step=10", "cost=1", "garbage=2", *BUDGET[8])
    answer = json.loads(read("compare", base, new, "--long", "--json"))
    parts = [row for row in answer["contributions"] if row["level"] == "operator"]
    assert parts and all(row["base_ns"] >= 0 and row["new_ns"] >= 0 for row in parts), parts
    for side, step in (("base_ns", 10.4e6), ("new_ns", 11e6)):
        assert sum(row[side] for row in parts) == pytest.approx(step, rel=0.01), parts
    garbage = next(row for row in parts if row["name"].startswith("garbage"))
    assert garbage["base_ns"] == pytest.approx(2e6 / 5, rel=0.02) and garbage["new_ns"] == pytest.approx(2e6 / 2, rel=0.02), garbage


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
    assert f"from {287 - steps} of 287 steps (those without operators)" in said
    assert re.search(rf"recording cost 2\.\d % \({steps} steps with operators compared with their neighbours: 1[78]\.\d \+- 0\.\d % each\)", said)
    assert f"from {steps} of 287 steps (those with operators); sums are multiplied by" in said


def test_a_run_that_was_killed_says_it_too(tmp_path):
    """The recorder says it at its end, which this one did not reach; its facts and its steps say the same."""
    kinds = chosen(4, 100) + chosen(8)[:100]
    made = make(tmp_path / "run", kinds, "budget=3 %", "every=8", "range=4 to 8")
    assert f"capture    operators of {kinds.count('o')} of 200 steps (1 of 4 to 8)" in read("report", made)
    made = make(tmp_path / "older", chosen(8), "budget=3 %", "every=8")
    assert f"capture    operators of {chosen(8).count('o')} of 287 steps (1 of 8)" in read("report", made)
    assert "capture " not in read("report", make(tmp_path / "asked", chosen(8), "budget=none: --steps"))


def test_two_counts_are_told_apart(tmp_path):
    """Steps that the recorder counted may end elsewhere than those of the report."""
    kinds, said = chosen(8), "captured operators of {} of {} steps (1 of 8): all would cost 18 %"
    whole = kinds.count("o")
    other = f"; of the steps that the report finds, {whole} of 287 have all their operators"
    for counts, tail in (((whole, 287), ""), ((whole + 9, 287), other), ((whole, 280), other)):
        text = " ".join(read("report", make(tmp_path / str(counts), kinds, "budget=3 %", "every=8", "capture=" + said.format(*counts),
                                                "capture_steps={} of {}".format(*counts))).split())
        assert f"capture {said.format(*counts)}{tail} ended " in text, text


@pytest.mark.parametrize("options", [(), *((slow,) for slow in SLOW), ("first=2000",)])
@pytest.mark.parametrize("every", [2, 8])
def test_no_rule_finds_the_recorder(tmp_path, every, options):
    """What is found is found of the run in which nothing was recorded, too. SS410 counts slow steps, of which fewer are left; SS412 needs operators."""
    make(tmp_path / "without", "." * 287, "noise=1", *options)
    make(tmp_path / "with", chosen(every), "cost=18", "noise=1", "budget=3 %", f"every={every}", *options)
    found = set(findings(tmp_path / "with")) - {"SS412"}
    assert found | {"SS410"} == set(findings(tmp_path / "without")) | {"SS410"} and found <= set(findings(tmp_path / "without"))


def test_what_recurs_is_found_though_some_of_it_has_operators(tmp_path):
    found = findings(make(tmp_path / "run", chosen(4, seed=3), "cost=18", "noise=1", "slow=7:50", "budget=3 %"))
    assert found["SS409"]["where"].startswith("every 7 steps")


@pytest.mark.parametrize("every", [1, 2, 8])
@pytest.mark.parametrize("odd", ["0", "0.03:60"])
def test_what_recurs_is_found_on_a_machine_that_others_use(tmp_path, every, odd):
    """Steps that are slow by chance, and a slow first one, are no proof that nothing recurs."""
    kinds = chosen(every) if every > 1 else "." * 287
    for seed in range(10):
        made = make(tmp_path / str(seed), kinds, "cost=18", "noise=3", "slow=10:60", "first=300", f"odd={odd}", f"seed={seed}", *BUDGET[every])
        where = findings(made)["SS409"]["where"]
        assert re.fullmatch(r"every 10 steps, from step \d?9", where), (seed, where)


def test_chance_is_no_period(tmp_path):
    for seed in range(40):
        made = make(tmp_path / str(seed), "." * 287, "noise=3", "first=300", "odd=0.04:60", f"seed={seed}")
        assert "SS409" not in findings(made)


def test_of_few_steps_with_operators_rules_cannot_tell(tmp_path):
    kinds = "....o...o.."
    found = checks(make(tmp_path / "run", kinds, "budget=3 %"))
    said = "operators were recorded in 2 of 11 steps; --budget none records all"
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


def test_the_sides_are_told_by_how_many_steps_they_have(tmp_path):
    make(tmp_path / "all", "o" * 287, "cost=1", "noise=5", "budget=none", "seed=5")
    for every, words in (("1", "nearly all steps"), ("2", "every 2nd step"), ("8", "every 8th step"), ("2 to 16", "every 2nd to 16th step")):
        make(tmp_path / every, chosen(4), "cost=1", "noise=5", "budget=3 %", f"every={every.split()[0]}", f"range={every}", "seed=9")
        assert f"in all steps of the base and in {words} of the new side; their cost" in verdict(tmp_path / "all", tmp_path / every)["sentence"]


def gate(*arguments):
    done = subprocess.run([STEPSCOPE, "compare", *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120)
    return done.returncode, " ".join(done.stdout.split())


@pytest.mark.parametrize("all_first", [True, False])
def test_of_a_bound_nothing_is_taken_off(tmp_path, all_first):
    """What operators cost is not told by a report, so compare does not know it either."""
    make(tmp_path / "all", "o" * 287, "cost=1", "noise=5", "budget=none", "seed=5")
    make(tmp_path / "some", chosen(8), "cost=1", "noise=5", "budget=3 %", "every=8", "seed=9")
    assert report(tmp_path / "some")["window"]["overhead_all_ratio"] is None
    names = ("all", "some") if all_first else ("some", "all")
    sides = [tmp_path / name for name in names]
    history = ("--history", tmp_path / "history.db", "--series", "s")
    read("history", "add", sides[0], *history)
    for operands in (sides, ["--tier", "default", *sides], ["--baseline", "last", sides[1], *history]):
        status, text = gate(*operands)
        assert status == 5 and text.startswith("not comparable: operators were recorded in "), text
        assert "in all steps of the" in text and "in every 8th step of the" in text and "subtracted" not in text
        assert re.search(r"their cost is only known to be less than \d\.\d %: record both sides with --budget none, or both without it", text), text
        assert "to settle both sides recorded with --budget none, or both without it" in text
    answer = json.loads(read("compare", *sides, "--tier", "default", "--json"))
    assert (answer["verdict"]["result"], answer["verdict"]["is_comparable"]) == ("not comparable", False)
    assert {row["result"] for row in answer["metrics"] if row["metric"] in ("step_time", "step_time_mean", "step_time_p95")} == {"not comparable"}
    assert {row["result"] for row in answer["limits"] if row["metric"] == "step_time"} == {"not comparable"}


def test_a_small_bound_widens_the_answer(tmp_path):
    """Of changes that do not count (--smallest) nobody needs to know whether they are the recorder's."""
    make(tmp_path / "all", "o" * 287, "cost=0.1", "noise=0.5", "budget=none", "seed=5")
    make(tmp_path / "some", chosen(8), "cost=0.1", "noise=0.5", "budget=3 %", "every=8", "seed=9")
    assert report(tmp_path / "some")["window"]["overhead_all_ratio"] is None
    status, text = gate(tmp_path / "all", tmp_path / "some")
    assert status == 0 and text.startswith("no difference") and "subtracted" not in text
    assert re.search(r"operators were recorded in all steps of the base: their cost, less than 0\.\d %, is included in its times", text), text
    narrow = verdict(tmp_path / "some", tmp_path / "some2") if make(tmp_path / "some2", chosen(8), "cost=0.1", "noise=0.5", "budget=3 %", "every=8",
                                                                   "seed=13") else None
    wide = verdict(tmp_path / "all", tmp_path / "some")
    assert wide["ci95_high_ratio"] - wide["ci95_low_ratio"] > narrow["ci95_high_ratio"] - narrow["ci95_low_ratio"]
    assert gate("--smallest", "0.05", tmp_path / "all", tmp_path / "some")[0] == 5


def test_the_doubt_of_the_cost_is_in_the_answer(tmp_path):
    """No number of runs makes it less: what to do is to record alike."""
    make(tmp_path / "all", "o" * 287, "cost=18", "noise=25", "budget=none", "seed=5")
    make(tmp_path / "some", chosen(8), "cost=18", "noise=25", "budget=3 %", "every=8", "seed=9")
    answer = verdict(tmp_path / "all", tmp_path / "some")
    taken = re.search(r"in all steps of the base: their cost, (\d+\.\d) % \(\+- (\d+\.\d)\), was subtracted from its times", answer["noise"])
    assert abs(float(taken[1]) - 18) < float(taken[2]) and float(taken[2]) > 3
    assert answer["result"] == "inconclusive" and answer["ci95_high_ratio"] - answer["ci95_low_ratio"] > 2 * float(taken[2]) / 100
    assert answer["needed"] == "both sides recorded with --budget none, or both without it"


@pytest.mark.parametrize("base,new", list(itertools.permutations(("all", "every 2nd", "every 8th"), 2)))
def test_recording_is_no_part_of_a_step(tmp_path, base, new):
    """Operators are of longer steps than the compared ones, and sum to these all the same, on both sides."""
    for name in (base, new):
        make(tmp_path / name, *SIDES[name], "noise=1")
    answer = json.loads(read("compare", tmp_path / base, tmp_path / new, "--long", "--json"))
    rows = [row for row in answer["contributions"] if row["level"] == "operator"]
    assert {row["name"] for row in rows} == {"matmul", "(in no operation or range)"}
    for side in ("base_ns", "new_ns"):
        assert abs(sum(row[side] for row in rows) - 100e6) < 1e6 and all(row[side] > 0 for row in rows)
    assert all(abs(row["delta_ns"]) < 1.5e6 for row in rows)


def test_a_tier_does_not_judge_the_recorder(tmp_path):
    for name in ("all", "none", "every 8th"):
        make(tmp_path / name, *SIDES[name], "noise=1")
    for new, status in (("every 8th", 0), ("none", None)):
        done = subprocess.run([STEPSCOPE, "compare", "--tier", "default", tmp_path / "all", tmp_path / new], capture_output=True, text=True, check=False)
        assert done.returncode == status if status is not None else done.returncode != 1, done.stdout


def without_pool(directory):
    """Nobody can open what the ranks would share: a folder lies there."""
    about = os.stat(directory)
    path = f"/dev/shm/stepscope.{os.getuid()}.share.{about.st_dev:x}.{about.st_ino:x}"
    os.mkdir(path)
    return path


@pytest.mark.parametrize("is_shared", [True, False])
def test_four_ranks_of_different_cost(tmp_path, is_shared):
    """With what they share they have operators in the same steps, as the one that pays most; without it the steps of one are some of another's."""
    directory, blocked = tmp_path / "run", None
    directory.mkdir()
    try:
        blocked = None if is_shared else without_pool(directory)
        done = subprocess.run([STEPSCOPE, "run", "--out", directory, "--pool", "64M", "--", ACTOR, "ranks", "4", "together", "640", "1000", "2", "40",
                               "800", "8000"], cwd=tmp_path, env=environment(tmp_path, **AS_USERS_HAVE_IT), capture_output=True, text=True, check=False,
                              timeout=300)
    finally:
        if blocked:
            os.rmdir(blocked)
    assert done.returncode == 0, done.stderr
    chosen_by = {}
    for row in json.loads(read("report", directory, "--table", "steps", "--json"))["rows"]:
        chosen_by.setdefault(row["process"], set())
        if row["has_detail"]:
            chosen_by[row["process"]].add(row["step"])
    assert len(chosen_by) == 4
    first, second, third, last = (chosen_by[name] for name in sorted(chosen_by))
    window = report(directory)["window"]
    assert window["steps"] == 640 and window["operator_steps"] == len(first & second & third & last) >= 3
    settled = set(range(128, 640))
    assert last & settled <= third & settled <= first & settled
    if is_shared:
        same = [begin for begin in range(128, 640, 64) if len({frozenset(chosen & set(range(begin, begin + 64))) for chosen in chosen_by.values()}) == 1]
        assert len(same) >= 4, chosen_by
        assert len(first & settled) < 256
    else:
        assert len(first & settled) > 400 and len(last & settled) < 128
    (ops,) = [row for row in json.loads(read("report", directory, "--json"))["ops"] if row["name"] == "add"]
    assert ops["calls"] > 0


@pytest.mark.parametrize("every", [2, 8])
@pytest.mark.parametrize("cost", [1, 5, 18])
def test_the_printed_cost_is_near_the_true_one(tmp_path, every, cost):
    """Within a third of it or half a point, or below the bound, in 9 of 10."""
    right = 0
    for seed in range(10):
        kinds = chosen(every, seed=seed)
        made = make(tmp_path / str(seed), kinds, f"cost={cost}", "noise=4", "slow=10:30", f"seed={seed}", *BUDGET[every])
        truth = cost / 103 * kinds.count("o") / 287
        said = " ".join(read("report", made).split())
        number = re.search(r"recording cost (less than )?(\d+\.\d) %", said)
        printed = float(number[2]) / 100
        right += printed >= truth if number[1] else abs(printed - truth) <= max(truth / 3, 0.005)
    assert right >= 9
