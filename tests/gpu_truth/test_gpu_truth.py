# SPDX-License-Identifier: Apache-2.0
"""Causes, savings and the step without the profiler, on traces of one GPU whose true step times are known.

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
TRUTH = {name: row for name, row in json.loads((DATA / "truth.json").read_text()).items() if isinstance(row, dict)}
GRAPHS = ("graph", "tiny_graph")
MS = 1e6

# trace: the cuts that may come first
FIRST_CUT = {"base": {"launch"}, "compile": {"launch"}, "tiny": {"launch", "optimizer"}, "loader": {"data"}, "gap": {"host"},
             "pageable": {"data", "copy"}, "item": {"launch"}, "empty": {"launch"}, "fp32": {"precision"}}
# (trace, cuts): the trace whose program does not have these costs
SAVINGS = {("loader", "data"): "base", ("gap", "host"): "base", ("fp32", "precision"): "base", ("pageable", "data,copy,host"): "base",
           ("tiny", "optimizer,launch"): "tiny_graph"}


def claims(*cases):
    """Returns the cases as parameters with readable ids."""
    words = [case if isinstance(case, tuple) else (case,) for case in cases]
    names = ["-".join(map(str, case)) for case in words]
    return [pytest.param(*case, id=name) for case, name in zip(words, names)]


def call(*words):
    done = subprocess.run([STEPSCOPE, *words], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def path_of(name):
    return str(DATA / f"{name}.json.zst")


@functools.lru_cache(maxsize=None)
def diagnosis(name):
    return call("diagnose", "--json", path_of(name))


@functools.lru_cache(maxsize=None)
def what_if(name):
    """Returns the rows of the table what_if by cut; a row of a single place has its place as well."""
    rows = call("query", path_of(name), "SELECT * FROM what_if", "--json")["rows"]
    return {row["cut"] if row["place"] in (None, "everywhere") else f"{row['cut']}:{row['place']}": row for row in rows}


def saving_ns(name, cuts):
    """Returns the time that a step saves without these cuts together."""
    if "," not in cuts:
        return what_if(name)[cuts]["saving_ns"]
    rows = call("whatif", path_of(name), "--without", cuts, "--json")["rows"]
    return next(row["saving_ns"] for row in rows if row["cut"] == cuts)


def step_ms(name):
    """Returns the true step time: the mean of two processes without a profiler."""
    return sum(TRUTH[name]["step_ms"]) / len(TRUTH[name]["step_ms"])


def untraced_ms(name):
    """Returns the mean step times of the traced process before and after the recording."""
    steps = TRUTH[name]["traced_step_ms"]
    after = sum(steps[13:15]) / 2
    return [after] if name in GRAPHS else [sum(steps[2:6]) / 4, after]  # graphs are captured before


def cuts_of(name):
    """Returns the findings with a cut, the most important first."""
    return [finding for finding in diagnosis(name)["findings"] if finding.get("cut")]


def test_all_traces_are_here():
    assert {path.name.split(".")[0] for path in DATA.glob("*.json.zst")} == set(TRUTH)
    assert set(FIRST_CUT) | set(GRAPHS) == set(TRUTH)


# ---- causes ----

@pytest.mark.parametrize("name", claims(*FIRST_CUT))
def test_the_first_cut_is_the_cause(name):
    assert cuts_of(name) and cuts_of(name)[0]["cut"] in FIRST_CUT[name]


@pytest.mark.parametrize("name", claims(*GRAPHS))
def test_a_step_in_one_graph_is_healthy(name):
    assert diagnosis(name)["verdict"]["verdict"] == "healthy"


@pytest.mark.parametrize("name", claims("fp32"))
def test_fault_Q2_precision_is_a_choice_of_a_compute_bound_program(name):
    assert diagnosis(name)["verdict"]["verdict"] == "compute-bound"
    severities = [finding["severity"] for finding in cuts_of(name) if finding["cut"] == "precision"]
    assert severities and "problem" not in severities


@pytest.mark.parametrize("name, cut, least_ms, most_ms", claims(("item", "sync", 0, 2), ("empty", "alloc", 5, 27)))
def test_a_smaller_cause_is_among_the_findings(name, cut, least_ms, most_ms):
    savings = [finding["saving_ns"] / MS for finding in cuts_of(name) if finding["cut"] == cut]
    assert savings and least_ms <= max(savings) <= most_ms


# ---- the step without the profiler ----

def interval_ms(name):
    found = diagnosis(name)["step_without_profiler_ns"]
    return found["low"] / MS, found["high"] / MS


@pytest.mark.parametrize("name", claims(*sorted(TRUTH)))
def test_fault_Q1_the_step_without_the_profiler_is_known_within_20_per_cent(name):
    low, high = interval_ms(name)
    assert 0 < low <= high and (high - low) / 2 <= 0.2 * (high + low) / 2


def test_the_step_without_the_profiler_holds_untraced_steps_in_10_of_11():
    held = [name for name in TRUTH if any(interval_ms(name)[0] <= ms <= interval_ms(name)[1] for ms in untraced_ms(name))]
    assert len(held) >= 10, sorted(set(TRUTH) - set(held))


# ---- savings ----

@pytest.mark.parametrize("name, cuts", claims(*SAVINGS))
def test_a_saving_is_within_a_quarter_of_the_true_one(name, cuts):
    true_ms = step_ms(name) - step_ms(SAVINGS[name, cuts])
    assert saving_ns(name, cuts) / MS == pytest.approx(true_ms, rel=0.25)


@pytest.mark.parametrize("name, cut", claims(("base", "launch")))
def test_a_step_as_one_graph_takes_the_time_of_the_real_graph(name, cut):
    assert what_if(name)[cut]["step_ns"] / MS == pytest.approx(step_ms("graph"), rel=0.05)


# ---- the report ----

def test_the_report_has_the_savings_of_the_table():
    rows = call("report", path_of("gap"), "--table", "what_if", "--json")["rows"]
    assert call("report", path_of("gap"), "--json")["what_if"] == rows
    assert [row["saving_ns"] for row in rows[1:]] == sorted((row["saving_ns"] for row in rows[1:]), reverse=True)
    text = subprocess.run([STEPSCOPE, "report", path_of("gap")], capture_output=True, text=True, timeout=120, check=True).stdout
    assert "A step without each cost" in text and rows[1]["cut"] == "host"
