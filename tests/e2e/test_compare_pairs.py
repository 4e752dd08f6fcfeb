# SPDX-License-Identifier: Apache-2.0
"""Comparisons of any two of the inputs under tests/data, in both orders: what must be true of every answer, whatever is in the files."""
import json
import math
import os
import random
import subprocess
from pathlib import Path

import pytest

from made_trace import Trace

STEPSCOPE = os.environ["STEPSCOPE"]
DATA = Path(__file__).parent.parent / "data"
INPUTS = sorted(path for kind in ("traces/*/*", "stacks/*", "nvidia_smi/*", "made_nsys/*", "made_snapshots/*") for path in DATA.glob(kind)
                if path.is_file() and path.suffix not in (".md", ".py") and path.stat().st_size < 150_000)
STATUS = {"regression": 1, "improvement": 0, "no difference": 0}
OTHER_WAY = {"regression": "improvement", "improvement": "regression"}


def no_number(name):
    raise AssertionError(f"{name} is no JSON")


def compare(*arguments):
    done = subprocess.run([STEPSCOPE, "compare", "--json", *map(str, arguments)], capture_output=True, timeout=120, check=False)
    assert done.returncode in (0, 1, 3, 5), (done.returncode, done.stderr)
    return done.returncode, json.loads(done.stdout.decode("utf-8"), parse_constant=no_number) if done.returncode != 3 else None


def is_near(left, right, scale):
    return abs(left - right) <= 1e-9 * max(1, abs(scale))


def check_metric(metric):
    base, new, ratio = metric["base"], metric["new"], metric["change_ratio"]
    if metric["result"] == "not measured":
        return
    assert is_near(new - base, metric["delta"], max(abs(base), abs(new))), metric
    if ratio is None:
        return
    assert is_near(ratio, metric["delta"] / base, ratio * 1e3) and ratio * metric["delta"] >= 0, metric
    if metric["ci95_low_ratio"] is not None:
        ends = [metric[f"ci{end}_ratio"] for end in ("95_low", "90_low", "90_high", "95_high")]
        assert ends == sorted(ends) and ends[1] <= ratio + 1e-12 and ratio <= ends[2] + 1e-12, metric
        within = ends[1] >= -0.03 and ends[2] <= 0.03
        assert {"no difference": within or metric["p_value"] < 0.05, "inconclusive": not within or "one step" in metric["reason"]}.get(metric["result"], True), metric
    if metric["result"] in OTHER_WAY:
        assert ((ratio > 0) == (metric["better"] == "lower")) == (metric["result"] == "regression"), metric


def check_levels(rows, unit):
    """The rows of a level sum to its difference; each name stands there once."""
    for level in {row["level"] for row in rows}:
        mine = [row for row in rows if row["level"] == level]
        base, new, delta = (sum(row[f"{side}_{unit}"] for row in mine) for side in ("base", "new", "delta"))
        assert is_near(new - base, delta, max(abs(base), abs(new))), level
        assert len({row["name"] for row in mine}) == len(mine), level
        for row in mine:
            share = row["share_ratio"]
            assert share is None or share * delta * row[f"delta_{unit}"] >= 0, row


def check_answer(status, answer):
    assert status == STATUS.get(answer["verdict"]["result"], 5)
    for metric in answer["metrics"]:
        check_metric(metric)
    check_levels(answer["contributions"], "ns")
    check_levels(answer["memory"], "bytes")
    for what in {row["what"] for row in answer["functions"]}:
        assert abs(sum(row["self_change_ratio"] for row in answer["functions"] if row["what"] == what)) < 1e-6
    for row in answer["telemetry"]:
        assert row["delta"] is None or row["ci95_low"] <= row["delta"] <= row["ci95_high"], row


@pytest.mark.parametrize("seed", range(40))
def test_any_two_inputs_compare_in_both_orders(seed):
    left, right = random.Random(seed).sample(INPUTS, 2)
    status, answer = compare(left, right)
    mirrored_status, mirrored = compare(right, left)
    assert (answer is None) == (mirrored is None), (left, right)
    if answer is None:
        return
    check_answer(status, answer)
    check_answer(mirrored_status, mirrored)
    result = answer["verdict"]["result"]
    assert mirrored["verdict"]["result"] == OTHER_WAY.get(result, result), (left, right)


@pytest.mark.parametrize("seed", range(20))
def test_a_kept_run_compares_as_the_run_did(tmp_path, seed):
    left, right = random.Random(100 + seed).sample(INPUTS, 2)
    kept = ["--history", tmp_path / "history.db", "--series", "all"]
    done = subprocess.run([STEPSCOPE, "history", *kept, "--name", "base", "add", left], capture_output=True, timeout=120, check=False)
    status, answer = compare(left, right)
    if done.returncode:
        assert (done.returncode, status) == (3, 3), (left, done.stderr)
        return
    kept_status, again = compare(*kept, "--baseline", "base", right)
    assert kept_status == status, (left, right)
    if not answer:
        return
    for document in (answer, again):
        document["verdict"]["damage"] = None  # it names the run
        document["runs"][0]["run"] = "base"
    assert again == answer, (left, right)


def test_the_median_step_is_that_of_the_report(tmp_path):
    """Of an even number of steps the two in the middle are far apart: of 10 and 20 ms in turns it is 15."""
    trace = Trace()
    for number in range(40):
        trace.step(number, 30000 * number, 10000 + number % 2 * 10000)
    path = trace.write(tmp_path / "turns.json")
    done = subprocess.run([STEPSCOPE, "report", path, "--table", "step_time", "--json"], capture_output=True, timeout=60, check=True)
    _, answer = compare(path, path)
    metric = next(metric for metric in answer["metrics"] if metric["metric"] == "step_time")
    assert json.loads(done.stdout)["rows"][0]["p50_ns"] == 15_000_000 and is_near(metric["base"], 15_000_000, 15_000_000)


def written(path, durations, gaps=None):
    """A trace of steps of so many microseconds, with so many behind each."""
    trace, start = Trace(), 0
    for number, duration in enumerate(durations):
        trace.step(number, start, round(duration))
        start += round(duration) + (round(gaps[number]) if gaps else 0)
    return trace.write(path)


def in_turns(path, count, kinds, seed=0):
    """Steps that take turns, and scatter by 0.2 %."""
    chance = random.Random(f"{count} {kinds} {seed}")
    return written(path, [10000 * kinds[number % len(kinds)] * (1 + chance.gauss(0, 0.002)) for number in range(count)])


def metric_of(answer, name):
    return next(metric for metric in answer["metrics"] if metric["metric"] == name)


@pytest.mark.parametrize("count", [60, 64, 200, 201])
@pytest.mark.parametrize("kinds", [(2, 1), (2, 1, 1), (2, 2, 1), (2, 1, 1, 1), (2, 2, 1, 1)])
def test_steps_that_take_turns_are_compared_whatever_their_number(tmp_path, count, kinds):
    base, slow = in_turns(tmp_path / "base.json", count, kinds), in_turns(tmp_path / "slow.json", count, [1.2 * kind for kind in kinds])
    status, answer = compare(base, in_turns(tmp_path / "same.json", count, kinds, seed=1))
    assert (status, answer["verdict"]["result"]) == (0, "no difference"), answer["verdict"]
    status, answer = compare(base, slow)
    assert (status, answer["verdict"]["result"], answer["verdict"]["metric"]) == (1, "regression", "step_time")
    assert abs(answer["verdict"]["change_ratio"] - 0.2) < 0.01 and "uneven" not in answer["verdict"]["noise"]


@pytest.mark.parametrize("count", [60, 64, 200, 201])
def test_what_is_slower_on_average_fails(tmp_path, count):
    """Each fourth step is slower by half; the one in the middle is not."""
    base, new = (in_turns(tmp_path / f"{kind}.json", count, (kind, 1, 1, 1)) for kind in (2, 3))
    status, answer = compare(base, new)
    assert (status, answer["verdict"]["result"], answer["verdict"]["metric"]) == (1, "regression", "step_time_mean")
    assert metric_of(answer, "step_time")["result"] == "no difference"
    assert abs(answer["verdict"]["change_ratio"] - 0.2) < 0.01
    assert "longer on average" in answer["verdict"]["sentence"] and "although the median step is unchanged" in answer["verdict"]["sentence"]
    status, answer = compare(new, base)
    assert (status, answer["verdict"]["result"]) == (0, "no difference")


def test_what_takes_longer_from_step_to_step_fails(tmp_path):
    base, new = (written(tmp_path / f"{gap}.json", [10000 + number % 7 for number in range(60)], [gap] * 60) for gap in (0, 5000))
    status, answer = compare(base, new)
    assert (status, answer["verdict"]["result"], answer["verdict"]["metric"]) == (1, "regression", "step_period")
    assert "the time between step starts is 50.0 % longer" in answer["verdict"]["sentence"]
    assert answer["verdict"]["cause"] == "between steps +5.000 ms"


def test_one_pause_between_steps_is_no_regression(tmp_path):
    """As of a checkpoint; nor are the steps that a profiler leaves out."""
    durations = [10000 + number % 7 for number in range(60)]
    base, pause = (written(tmp_path / f"{gap}.json", durations, [10] * 30 + [gap] + [10] * 29) for gap in (10, 1000000))
    assert compare(base, pause)[1]["verdict"]["result"] == "no difference"
    trace = Trace()
    for number in range(60):
        at = number + 10 * (number // 10)  # ten of twenty steps
        trace.step(at, at * 10010, durations[number])
    status, answer = compare(base, trace.write(tmp_path / "some.json"))
    assert (status, answer["verdict"]["result"]) == (0, "no difference"), answer["verdict"]
    assert abs(metric_of(answer, "step_period")["change_ratio"]) < 0.001


def test_some_slow_steps_are_named_where_they_are_no_verdict(tmp_path):
    """One of ten by a fifth: 2 % on average, which may be chance."""
    base, new = (in_turns(tmp_path / f"{kind}.json", 60, [1] * 9 + [kind]) for kind in (1, 1.2))
    status, answer = compare(base, new)
    assert (status, answer["verdict"]["result"]) == (0, "no difference")
    assert metric_of(answer, "step_time_p95")["result"] == "regression" and "but step time p95 changed by" in answer["verdict"]["sentence"]


def noise(kind, chance, count=60):
    """Steps, and what is behind them, of runs that differ by 0.7 %."""
    level = 10000 * (1 + chance.gauss(0, 0.007))
    steps = [level * (1 + chance.gauss(0, 0.02)) for _ in range(count)]
    gaps = [100] * count
    if kind == "hiccups":
        steps = [step * (5 if chance.random() < 0.02 else 1) for step in steps]
    elif kind == "heavy tail":
        steps = [level * (1 + 0.05 * (chance.paretovariate(1.5) - 1)) for _ in steps]
    elif kind == "bursts":
        for _ in range(chance.choice([0, 1, 1, 2, 3])):
            first = chance.randrange(count)
            steps[first:first + 5] = [2 * step for step in steps[first:first + 5]]
    elif kind == "two kinds":
        steps = [step * chance.choice([1, 2]) for step in steps]
    elif kind == "in turns":
        steps = [step * (2 - number % 2) for number, step in enumerate(steps)]
    elif kind == "log-normal":
        steps = [level * math.exp(chance.gauss(0, 0.3)) for _ in steps]
    elif kind == "pauses":
        gaps = [30000 if chance.random() < 0.02 else chance.expovariate(0.01) for _ in steps]
    return steps, gaps


@pytest.mark.parametrize("kind", ["normal", "hiccups", "heavy tail", "bursts", "two kinds", "in turns", "log-normal", "pauses"])
def test_runs_that_only_differ_by_chance_are_no_regression(tmp_path, kind):
    """One in forty is one by chance; the mean may not add to that what it has of few long steps."""
    results = []
    for number in range(40):
        chance = random.Random(f"{kind} {number}")
        base, new = (written(tmp_path / f"{side}.json", *noise(kind, chance)) for side in ("base", "new"))
        results.append(compare(base, new)[1]["verdict"]["result"])
    assert results.count("regression") <= 2, results


def test_steps_that_take_no_time_have_no_verdict(tmp_path):
    sides = []
    for name, duration in (("base.json", 10), ("new.json", 20)):
        trace = Trace()
        for number in range(6):
            trace.step(number, 100 * number, 0)
            trace.op("aten::mm", 100 * number, duration)
        sides.append(trace.write(tmp_path / name))
    status, answer = compare(*sides)
    assert status == 5 and answer["verdict"]["result"] == "not measured"
    assert next(metric for metric in answer["metrics"] if metric["metric"] == "step_time")["reason"] == "6 of 6 steps take no time"


@pytest.mark.parametrize("size", (8 << 30, 70 << 30, 141 << 30))
def test_fault_V_G1_equal_memory_of_a_large_device_passes(tmp_path, size):
    """One run a side: the peak of an allocator is no time, so no noise of a per cent is assumed of it."""
    for name, bytes_ in (("base", size), ("same", size), ("more", size + (600 << 20))):
        trace = Trace()
        for step in range(40):
            trace.step(step, 1000 * step, 1000)
        trace.memory(20, bytes_, bytes_, 4096)
        trace.write(tmp_path / f"{name}.json")

    def judged(new):
        _, answer = compare("--tier", "default", tmp_path / "base.json", tmp_path / f"{new}.json")
        return {row["limit"]: row["result"] for row in answer["limits"]}

    assert judged("same")["+500 MiB"] == "kept" and judged("more")["+500 MiB"] == "broken"


@pytest.mark.parametrize("runs", (1, 3))
def test_fault_V_C2_a_limit_is_about_the_mean_as_well(tmp_path, runs):
    """Each tenth step takes six times as long: the median step is the same, and the mean is 50 % longer."""
    chance = random.Random(5)
    for number in range(runs):
        for name, slow in (("base", 1), ("new", 6)):
            trace, at = Trace(), 0
            for step in range(200):
                length = round(1000 * (slow if step % 10 == 9 else 1) * chance.gauss(1, 0.005))
                trace.step(step, at, length)
                at += length
            trace.write(tmp_path / f"{name}{number}.json")
    sides = [tmp_path / f"{name}{number}.json" for name in ("base", "new") for number in range(runs)]
    status, answer = compare("--tier", "nightly", *sides[:runs], "--", *sides[runs:])
    row, = [row for row in answer["limits"] if row["check"] == "step_time"]
    assert status == 1 and (row["metric"], row["result"]) == ("step_time_mean", "broken") and row["message"].startswith("mean step time: increased by ")


def test_fault_V_C6_memory_that_certainly_grew_is_in_the_answer(tmp_path):
    for name, bytes_ in (("base", 10 << 30), ("new", 13 << 30)):
        trace = Trace()
        for step in range(40):
            trace.step(step, 1000 * step, 1000)
        trace.memory(20, bytes_, bytes_, 4096)
        trace.write(tmp_path / f"{name}.json")
    _, answer = compare(tmp_path / "base.json", tmp_path / "new.json")
    assert answer["verdict"]["result"] == "no difference" and "; but peak memory of a device changed by +" in answer["verdict"]["sentence"]


@pytest.mark.parametrize("count", (4, 6, 7))
def test_fault_T6m_the_first_of_few_steps_is_the_warm_up(tmp_path, count):
    for name, length in (("base", 15000), ("new", 11600)):
        trace, at = Trace(), 0
        for step in range(count):
            duration = 450_000 if step == 0 else length + 100 * (step % 3)
            trace.step(step, at, duration)
            at += duration
        trace.write(tmp_path / f"{name}.json")
    _, answer = compare(tmp_path / "base.json", tmp_path / "new.json")
    assert answer["verdict"]["result"] == "improvement" and [row["warm_up_steps"] for row in answer["runs"]] == [1, 1]
    mean, = [row for row in answer["metrics"] if row["metric"] == "step_time_mean"]
    assert mean["change_ratio"] == pytest.approx(-0.22, abs=0.02)
