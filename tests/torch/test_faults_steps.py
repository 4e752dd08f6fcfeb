# SPDX-License-Identifier: Apache-2.0
"""Faults of steps and phases that were found in use, on programs with a clock of their own. A test has the fault's id in its name."""
import json
import subprocess

import pytest
from torch_tools import HERE, PACKAGE, STEPSCOPE, every_python, run, table, warm

MS = 1e6


def watched(tmp_path, python, kind, *program):
    """The program's clock, and a name for its data: a recording with operators, one without, or a trace of torch.profiler."""
    options = ("--type", "simple") if kind == "without operators" else ()
    trace = ("trace.json",) if kind == "trace" else ()
    done = warm(tmp_path, python, *program, *trace, options=options, is_observed=kind != "trace")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), trace[0] if trace else "run"


def phases_of(tmp_path, recording, *options):
    return {row["name"]: row["mean_ns"] for row in table(tmp_path, "phases", *options, recording=recording)}


def closures(tmp_path, python, place, optimizer, kind):
    clock, recording = watched(tmp_path, python, kind, HERE / "closures.py", place, optimizer)
    steps = ("--steps", "1-12")
    waits = table(tmp_path, "host_waits", *steps, recording=recording)
    return clock, phases_of(tmp_path, recording, *steps), {row["cause"]: row for row in waits}


@every_python
@pytest.mark.parametrize("optimizer", ["SGD", "LBFGS"])
@pytest.mark.parametrize("place", ["before", "between", "after"])
@pytest.mark.parametrize("kind", ["recording", "trace"])
def test_fault_F1_G7_the_optimizer_has_not_the_time_of_its_closure(tmp_path, python, place, optimizer, kind):
    clock, phases, waits = closures(tmp_path, python, place, optimizer, kind)
    own = clock["step_ns"] - clock["closure_ns"]
    assert phases["other"] > clock["slept_ns"] - 1 * MS
    assert phases["optimizer"] < own + 1 * MS
    assert waits["optimizer"]["own_ns"] < 12 * (own + 1 * MS)


@every_python
@pytest.mark.parametrize("place", ["before", "between"])
def test_fault_G5_without_operators_the_forward_is_not_the_optimizer(tmp_path, python, place):
    clock, phases, _ = closures(tmp_path, python, place, "SGD", "without operators")
    assert phases["optimizer"] < clock["step_ns"] - clock["closure_ns"] + 1 * MS


@every_python
@pytest.mark.parametrize("optimizer", ["SGD", "LBFGS"])
@pytest.mark.parametrize("place", ["before", "between", "after"])
def test_fault_G5_closures_in_steps_whose_operators_were_left_out(tmp_path, python, place, optimizer):
    """The first steps have operators, which show how long the optimizer itself works behind its closure."""
    done = warm(tmp_path, python, HERE / "closures.py", place, optimizer, options=("--steps", "0-4"))
    assert done.returncode == 0, done.stderr
    clock, phases = json.loads(done.stdout), phases_of(tmp_path, "run", "--steps", "6-12")
    assert phases["optimizer"] < clock["step_ns"] - clock["closure_ns"] + 1 * MS
    assert phases["backward"] < clock["closure_ns"] - clock["slept_ns"] + 1 * MS


@every_python
@pytest.mark.parametrize("work", ["moved", "prepared"])
@pytest.mark.parametrize("kind", ["recording", "without operators", "trace"])
def test_fault_G2_batches_that_are_fetched_ahead_are_no_evaluation(tmp_path, python, work, kind):
    clock, recording = watched(tmp_path, python, kind, HERE / "fetched_ahead.py", work)
    phases = phases_of(tmp_path, recording, "--steps", "1-11")
    assert not phases.get("evaluation") and phases["data"] == pytest.approx(clock["data_ns"], abs=2 * MS)


@every_python
@pytest.mark.parametrize("end", ["checkpoint", "nothing"])
@pytest.mark.parametrize("kind", ["recording", "without operators", "trace"])
def test_fault_G4_a_callback_behind_an_evaluation_is_no_part_of_it(tmp_path, python, end, kind):
    clock, recording = watched(tmp_path, python, kind, HERE / "callback.py", end)
    between = {row["part"]: row["total_ns"] for row in table(tmp_path, "between_steps", recording=recording)}
    assert between["between steps: evaluation"] < clock["evaluation_ns"] + 5 * MS
    assert between["between steps: other"] > 3 * 300 * MS - 5 * MS  # the last one is behind the last step
    assert all(row["duration_ns"] < 250 * MS for row in table(tmp_path, "steps", recording=recording)[1:])


@every_python
def test_fault_G3_a_worker_belongs_to_the_loader_that_started_it(tmp_path, python):
    done = run(tmp_path, python, HERE / "two_loaders_of_one_seed.py")
    assert done.returncode == 0, done.stderr
    batches = {}
    for row in table(tmp_path, "data_loader"):
        if row["part"].startswith("worker "):
            batches.setdefault(row["loader"][:2], []).append(row["batches"])
    assert batches == {"0:": [2, 2], "1:": [10, 10]}


@every_python
@pytest.mark.parametrize("option", ["record_shapes", "profile_memory", "with_stack"])
@pytest.mark.parametrize("who", ["stepscope", "torch"])
def test_fault_G9_the_first_range_of_a_window_has_its_own_length(tmp_path, python, option, who):
    """The option starts the recording again, so each of its windows is a turn of the training."""
    done = warm(tmp_path, python, HERE / "ranges_of_windows.py", who, option, env={"PYTHONPATH": PACKAGE}, is_observed=False)
    assert done.returncode == 0, done.stderr
    for window, (stamp, (shown,)) in enumerate(json.loads(done.stdout)):
        query = [STEPSCOPE, "query", tmp_path / f"{window}.json", "--csv", "select dur_ns from spans where name = 'forward_pass'"]
        read = subprocess.run(query, capture_output=True, text=True, timeout=60, check=True).stdout.split()[1]
        assert shown <= stamp and float(read) == pytest.approx(shown, abs=1000)


def generations(tmp_path, recording):
    """The times of the generations."""
    query = [STEPSCOPE, "query", tmp_path / recording, "--csv", "select dur_ns from spans where name = 'generation' and kind = 'range'"]
    return [int(line) for line in subprocess.run(query, capture_output=True, text=True, timeout=60, check=True).stdout.split()[1:]]


@every_python
@pytest.mark.parametrize("kind, how", [(kind, how) for kind in ("recording", "without operators", "trace") for how in (
    "train", "eval", "graph", "ranges", "micro") if (kind, how) != ("without operators", "graph")])
def test_fault_F13_a_generation_has_its_time(tmp_path, python, kind, how):
    clock, recording = watched(tmp_path, python, kind, HERE / "generates.py", how)
    times = generations(tmp_path, recording)
    known = 7 if kind == "without operators" else 8  # its first step has no calls of modules
    assert sum(times) == pytest.approx(sum(clock["generate_ns"][-known:]), abs=16 * MS, rel=0.15 if kind == "recording" else 0.3)
    if kind != "without operators":
        row, = [row for row in table(tmp_path, "ops", recording=recording) if row["name"] == "generation"]
        assert (row["kind"], row["total_ns"], row["calls"]) == ("range", sum(times), len(times))
    steps = [row["duration_ns"] for row in table(tmp_path, "steps", recording=recording)]
    assert len(steps) == 8 and sum(steps[-known:]) > 0.98 * sum(clock["generate_ns"][-known:] + clock["reward_ns"][-known:])


@every_python
@pytest.mark.parametrize("how", ["scores", "evaluates"])
@pytest.mark.parametrize("kind", ["recording", "without operators", "trace"])
def test_fault_F13_what_is_no_generation(tmp_path, python, how, kind):
    _, recording = watched(tmp_path, python, kind, HERE / "generates.py", how)
    assert not generations(tmp_path, recording)
