# SPDX-License-Identifier: Apache-2.0
"""Comparisons of any two of the inputs under tests/data, in both orders: what must be true of every answer, whatever is in the files."""
import json
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
