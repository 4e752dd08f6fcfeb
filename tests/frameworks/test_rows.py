# SPDX-License-Identifier: Apache-2.0
"""Rows of the guides that people profile by, on real frameworks. A test has the number of its row: guide 0 is a Trainer of transformers, 2 and
3 are several ranks, 4 is Lightning. rows.py has the programs, each with a clock of its own."""
import json
import os
import subprocess
from pathlib import Path

import pytest

STEPSCOPE = os.environ.get("STEPSCOPE", "build/src/stepscope")
PYTHON = os.environ.get("FRAMEWORKS_PYTHON", ".venv-frameworks/bin/python")
PROGRAM = Path(__file__).parent / "rows.py"
KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "HOME")
MS = 1e6
STEPS = 12  # of rows.py
SIMPLE = ("--type", "simple")
HOOK = "[Callback]Plot.on_validation_epoch_end"

pytestmark = pytest.mark.skipif(not Path(PYTHON).exists(), reason="no .venv-frameworks: tools/setup all")


def record(tmp_path, *program, options=(), name="run", ranks=1):
    """Returns the clocks of the processes, by rank."""
    launcher = ["-m", "torch.distributed.run", "--nproc_per_node", str(ranks)] if ranks > 1 else []
    environment = {key: os.environ[key] for key in KEPT if key in os.environ}
    done = subprocess.run([STEPSCOPE, "run", "-o", name, *options, "--", PYTHON, *launcher, str(PROGRAM), *map(str, program)], cwd=tmp_path,
                          env={**environment, "OMP_NUM_THREADS": "1"}, timeout=300, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return sorted((json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"rank"')), key=lambda one: one["rank"])


def ask(tmp_path, *words):
    done = subprocess.run([STEPSCOPE, *words, "--json"], cwd=tmp_path, timeout=120, capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def table(tmp_path, name, *options, run="run"):
    return ask(tmp_path, "report", run, "--table", name, *options)["rows"]


def phases(tmp_path, *options, run="run"):
    return {row["name"]: row["ratio"] for row in table(tmp_path, "phases", *options, run=run)}


def findings(tmp_path, rule, run="run"):
    return [row for row in ask(tmp_path, "diagnose", run)["findings"] if row["rule"] == rule]


# ---- guide 0 and 1: the wait for data with accumulation ----

@pytest.mark.parametrize("accumulation, options", [(1, ()), (4, ()), (4, SIMPLE), (4, ("--steps", "4-7"))],
                         ids=("default", "accumulation", "accumulation-simple", "accumulation-some steps"))
def test_row_0_58_the_wait_for_data_is_data(tmp_path, accumulation, options):
    clock, = record(tmp_path, "hf", accumulation, options=options)
    found = phases(tmp_path, "--steps", "1-11")
    assert found["data"] == pytest.approx(clock["data_ns"] / clock["step_ns"], abs=0.1)
    assert not found.get("evaluation")
    assert not sum(row["total_ns"] for row in table(tmp_path, "between_steps") if "evaluation" in row["part"])


@pytest.mark.parametrize("options", [(), ("--steps", "4-7")], ids=("default", "some steps"))
def test_row_1_54_the_share_of_the_wait_is_that_of_the_loader(tmp_path, options):
    clock, = record(tmp_path, "hf", 4, options=options)
    steps = [row for row in table(tmp_path, "steps") if row["step"] in range(1, STEPS)]
    waited = sum(row["data_ns"] for row in steps) / sum(row["duration_ns"] for row in steps)
    assert waited == pytest.approx(clock["data_ns"] / clock["step_ns"], abs=0.1)
    assert findings(tmp_path, "SS101") and ask(tmp_path, "diagnose", "run")["verdict"]["verdict"] == "data-bound"


# ---- guide 0 and 2: a slow rank ----

def slow_rank(tmp_path, delay_ms):
    """A slow rank costs what it holds the others up: at most its delay."""
    step_ns = record(tmp_path, "straggler", delay_ms, ranks=2)[0]["step_ns"]
    found = findings(tmp_path, "SS602")
    assert found and "rank 1" in found[0]["where"]
    assert 0.3 * delay_ms * MS <= found[0]["saving_ns"] <= 1.1 * delay_ms * MS + 0.02 * step_ns


def test_row_0_71_ranks_that_wait_for_a_slow_one_are_found(tmp_path):
    slow_rank(tmp_path, 60)


def test_row_2_44_a_straggler_costs_no_more_than_its_delay(tmp_path):
    slow_rank(tmp_path, 100)
    assert ask(tmp_path, "diagnose", "run")["verdict"]["verdict"] == "straggler-bound"


# ---- guide 3: its schedule ----

def test_row_3_31_the_schedule_does_not_hide_communication(tmp_path):
    record(tmp_path, "communication", ranks=2, name="all", options=("--budget", "none"))
    schedule = ("--profiling-frequency", "10", "--warmup", "2", "--active", "1")
    record(tmp_path, "communication", ranks=2, options=schedule)
    whole, part = phases(tmp_path, run="all")["communication"], phases(tmp_path)["communication"]
    assert whole > 0.2 and part == pytest.approx(whole, abs=0.15)
    verdicts = [ask(tmp_path, "diagnose", name)["verdict"]["verdict"] for name in ("all", "run")]
    assert verdicts[0] == verdicts[1] == "communication-bound"


# ---- guide 4 ----

RECORDINGS = pytest.mark.parametrize("options", [(), SIMPLE, ("--steps", "20-29")], ids=("default", "simple", "some steps"))


@RECORDINGS
def test_row_4_12_and_4_34_a_callback_that_draws_is_named(tmp_path, options):
    clock, = record(tmp_path, "callback", options=options)
    ranges = {row["name"]: row for row in table(tmp_path, "between_ranges")}
    assert ranges[HOOK]["total_ns"] == pytest.approx(sum(clock["slept_ns"]), abs=20 * MS)
    found = findings(tmp_path, "SS214")
    assert [row["where"] for row in found] == [HOOK]
    assert found[0]["severity"] == "problem"
    if not options:  # otherwise no cut removes the callback yet, because it is in no step with operators
        assert ask(tmp_path, "diagnose", "run")["verdict"]["verdict"] == "host-bound"
    evaluation = sum(row["total_ns"] for row in table(tmp_path, "between_steps") if "evaluation" in row["part"])
    assert evaluation < 0.2 * sum(clock["slept_ns"])
    assert not [row for row in table(tmp_path, "ledger") if row["what"] in ("unmatched end", "open")]


@RECORDINGS
def test_row_4_3_and_4_4_each_hook_has_its_time(tmp_path, options):
    record(tmp_path, "callback", options=options)
    rows = {row["name"]: row for row in table(tmp_path, "ops", "--limit", "1000")}
    for hook in ("[Strategy]SingleDeviceStrategy.training_step", "[LightningModule]Model.optimizer_step", "[Callback]Plot.on_train_batch_end"):
        assert rows[hook]["calls"] >= (8 if "--steps" in options else 50) and rows[hook]["total_ns"] > 0


def test_row_4_21_and_4_37_few_workers_are_too_few(tmp_path):
    clocks = [record(tmp_path, "loader", workers, name=f"workers{workers}")[0]["step_ns"] for workers in (2, 4)]
    found = findings(tmp_path, "SS101", run="workers2")
    assert found and "workers" in found[0]["advice"] and "do not help" not in found[0]["advice"]
    assert clocks[1] < 0.8 * clocks[0]
    answer = ask(tmp_path, "compare", "workers2", "workers4")
    assert answer["verdict"]["result"] in ("improvement", "inconclusive")  # on a busy machine only the fastest steps are compared
    assert answer["explained_by"][0]["cut"] in ("data", "workers") and answer["explained_by"][0]["part_ns"] < -0.5 * (clocks[0] - clocks[1])


@pytest.mark.parametrize("milliseconds, options", [(0, ()), (0, SIMPLE), (0, ("--steps", "10-19")), (20, ()), (20, SIMPLE)],
                         ids=("small", "small-simple", "small-some steps", "large", "large-simple"))
def test_row_4_27_a_large_optimizer_is_found_and_no_other(tmp_path, milliseconds, options):
    record(tmp_path, "optimizer", milliseconds, options=options)
    savings = [row["saving_ratio"] for row in findings(tmp_path, "SS402")]
    assert any(saving > 0.2 for saving in savings) == bool(milliseconds)
    assert (phases(tmp_path)["optimizer"] > 0.2) == bool(milliseconds)
