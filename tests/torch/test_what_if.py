# SPDX-License-Identifier: Apache-2.0
"""Savings of real programs with a fault (tests/whatif), which bench/whatif measures. Here each fault is found with its cut, and its saving is roughly
right on any machine: what takes most of a step by the program's own clock saves most of it."""
import json
import subprocess
from pathlib import Path

import pytest

from torch_tools import HERE, STEPSCOPE, environment, pythons, run

newest = pytest.mark.parametrize("python", pythons()[:1])
PROGRAMS = Path(__file__).resolve().parent.parent / "whatif"
# fault: its cut, its rule, and the least and the largest saving that is right on an idle and on a busy machine
FAULTS = {
    "python_in_forward": ("host", "SS412", 0.3, 0.9),
    "closure_metric": ("host", "SS412", 0.25, 0.8),
    "grows": ("growth", "SS413", 0.2, 0.85),
    "optimizer_single": ("optimizer", "SS406", 0.25, 0.7),
    "loader_sleeps": ("workers", "SS103", 0.4, 0.85),
    "rank_computes_longer": ("rank", "SS602", 0.4, 1.0),
}


RECOMPUTES = """
import sys, time, torch
from torch.utils.checkpoint import checkpoint
blocks = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.Linear(512, 512)) for _ in range(8))
optimizer, data, times = torch.optim.SGD(blocks.parameters(), 1e-3), torch.randn(128, 512), []
for step in range(40):
    start = time.perf_counter()
    out = data
    for block in blocks:
        out = checkpoint(block, out, use_reentrant=False) if sys.argv[1] == "fault" else block(out)
    out.square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    times.append(time.perf_counter() - start)
print(sorted(times[10:])[15])
"""


def query(path, sql):
    done = subprocess.run([STEPSCOPE, "query", path, sql, "--json"], capture_output=True, text=True, timeout=60, env=environment(), check=True)
    return json.loads(done.stdout)["rows"]


def diagnosis(path):
    return json.loads(subprocess.run([STEPSCOPE, "diagnose", path, "--json"], capture_output=True, text=True, timeout=60, env=environment(), check=True).stdout)


def cuts(path):
    return {row["cut"]: row for row in query(path, "SELECT * FROM what_if") if row["place"] is None}


@newest
@pytest.mark.parametrize("program, budget", [(program, "3%") for program in FAULTS] + [("python_in_forward", "none"), ("optimizer_single", "none")])
def test_the_fault_saves_most(tmp_path, python, program, budget):
    cut, rule, least, most = FAULTS[program]
    done = run(tmp_path, python, PROGRAMS / f"{program}.py", "fault", budget=budget)
    assert done.returncode == 0, done.stderr
    row = cuts(tmp_path / "run")[cut]
    assert least < row["saving_ratio"] < most, row
    assert row["saving_low_ratio"] <= row["saving_ratio"] <= row["saving_high_ratio"]
    result = diagnosis(tmp_path / "run")
    findings = {(finding["rule"], finding["cut"]) for finding in result["findings"]}
    assert (rule, cut) in findings, result
    assert result["verdict"]["verdict"] != "healthy"
    for finding in result["findings"]:
        assert finding["saving_ratio"] is None or 0 <= finding["saving_ratio"] <= 1


@newest
def test_reads_of_values_save_nothing_without_a_device(tmp_path, python):
    done = run(tmp_path, python, PROGRAMS / "reads_values.py", "fault")
    assert done.returncode == 0, done.stderr
    assert cuts(tmp_path / "run")["sync"]["saving_ratio"] < 0.01


@newest
def test_fault_Q3_the_forward_that_is_recorded_again(tmp_path, python):
    """The replay removes the second forward alone: what it makes the caches lose stays."""
    step = {}
    for variant in ("fault", "without"):
        done = subprocess.run([python, "-c", RECOMPUTES, variant], capture_output=True, text=True, timeout=300, env=environment(), check=True)
        step[variant] = float(done.stdout)
    true = 1 - step["without"] / step["fault"]
    assert run(tmp_path, python, "-c", RECOMPUTES, "fault").returncode == 0
    row = cuts(tmp_path / "run")["recompute"]
    assert 0.05 < row["saving_ratio"] and 0.4 * true < row["saving_high_ratio"] and row["saving_low_ratio"] < true + 0.1, (row, true)
    assert row["is_choice"]


@newest
@pytest.mark.parametrize("program, cut", [("python_in_forward", "host"), ("closure_metric", "host"), ("loader_sleeps", "data")])
def test_a_recording_and_a_trace_agree(tmp_path, python, program, cut):
    """The intervals of both overlap, though another profiler wrote the trace and slowed the program down."""
    assert run(tmp_path, python, PROGRAMS / f"{program}.py", "fault").returncode == 0
    subprocess.run([python, HERE / "under_profiler.py", "trace.json", PROGRAMS / f"{program}.py", "fault"], cwd=tmp_path, env=environment(), timeout=300,
                   check=True, capture_output=True)
    recorded, traced = cuts(tmp_path / "run")[cut], cuts(tmp_path / "trace.json")[cut]
    assert recorded["saving_low_ratio"] <= traced["saving_high_ratio"] and traced["saving_low_ratio"] <= recorded["saving_high_ratio"], (recorded, traced)
