# SPDX-License-Identifier: Apache-2.0
"""Where the operators of older steps were removed again (keep_size), tables tell of what is left, and that it is not all."""
import json
import subprocess

import pytest
from torch_tools import STEPSCOPE, environment, every_python, table, warm

MARKED = """
import torch, stepscope

torch.set_num_threads(1)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.Adam(model.parameters())
for n in range(1200):
    with stepscope.step(n):
        model(torch.randn(8, 32)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        if n % 10 == 0:
            stepscope.flush()
"""
PHASES = "data_ns", "forward_ns", "backward_ns", "optimizer_ns", "communication_ns", "checkpoint_ns", "evaluation_ns", "other_ns"


def record(tmp_path, python, program, *arguments, **options):
    (tmp_path / "train.py").write_text(program)
    settings = [word for name, value in options.items() for word in (f"--{name}", value)]
    done = warm(tmp_path, python, "train.py", *arguments, options=settings)
    assert done.returncode == 0, done.stderr


@every_python
def test_phases_are_those_of_the_steps_whose_operators_are_left(tmp_path, python):
    record(tmp_path, python, MARKED, keep_size="256K", **{"with": "shapes"})
    steps = table(tmp_path, "steps")
    left = [step for step in steps if step["has_detail"]]
    assert len(steps) == 1200 and 10 < len(left) < 600
    assert all(step[name] is None for step in steps if not step["has_detail"] for name in PHASES)
    assert all(step[name] > 0 for step in left for name in ("forward_ns", "backward_ns", "optimizer_ns"))
    phases = {row["name"]: row for row in table(tmp_path, "phases")}
    assert abs(sum(row["ratio"] for row in phases.values()) - 1) < 1e-6
    for name in ("forward", "backward", "optimizer"):
        mean = sum(step[f"{name}_ns"] for step in left) / len(left)
        assert phases[name]["steps"] == len(left) and abs(phases[name]["mean_ns"] / mean - 1) < 1e-6
    shown = subprocess.run([STEPSCOPE, "report", "run"], cwd=tmp_path, env=environment(COLUMNS=200), capture_output=True, text=True, check=True)
    assert f"phases are known in {len(left)} of 1200 steps" in shown.stdout and "older events were removed later" in shown.stdout


UNMARKED = """
import sys, time, torch, stepscope

torch.set_num_threads(1)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.Adam(model.parameters()) if sys.argv[1] == "optimizer" else None
if hasattr(optimizer, "register_step_post_hook"):  # behind the hook in which we count: another step's end is nearer to that
    optimizer.register_step_post_hook(lambda *_: time.sleep(0.02) if n == 1150 else None)
for n in range(1200):
    model.zero_grad()
    stepscope.metric("step", n)
    model(torch.randn(8, 32)).sum().backward()
    if optimizer:
        optimizer.step()
    else:
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.01 * weight.grad
    if n % 10 == 0:
        stepscope.flush()
"""


def query(tmp_path, sql):
    done = subprocess.run([STEPSCOPE, "query", "run", sql, "--json"], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"]


@every_python
def test_steps_have_the_numbers_that_the_program_counted(tmp_path, python):
    record(tmp_path, python, UNMARKED, "optimizer", keep_size="256K", **{"with": "shapes"})
    steps = table(tmp_path, "steps")
    assert 10 < len(steps) < 1000 and [step["step"] for step in steps] == list(range(1200 - len(steps), 1200))
    assert all(step["has_detail"] for step in steps)
    told = [row for row in query(tmp_path, "SELECT value, step FROM series_values WHERE name = 'step'") if row["step"] is not None]
    assert len(told) == len(steps) and all(row["value"] == row["step"] for row in told)


@every_python
def test_it_is_said_where_nobody_counted_the_steps_before(tmp_path, python):
    record(tmp_path, python, UNMARKED, "by hand", keep_size="256K", **{"with": "shapes"})
    steps = table(tmp_path, "steps")
    assert 10 < len(steps) < 1000 and [step["step"] for step in steps] == list(range(len(steps)))
    assert any("counted from the first one that is still whole" in row["sentence"] for row in table(tmp_path, "ledger"))


LOADER = """
import torch, stepscope
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.Adam(model.parameters())
if __name__ == "__main__":
    batches = DataLoader(TensorDataset(torch.randn(9600, 32)), batch_size=8, num_workers=2)
    for n, (batch,) in enumerate(batches):
        optimizer.zero_grad()
        model(batch).sum().backward()
        optimizer.step()
        if n % 10 == 0:
            stepscope.flush()
"""


@every_python
def test_workers_are_looked_at_where_the_loop_is(tmp_path, python):
    """What was removed of the process that trains is still there of workers, which record less."""
    record(tmp_path, python, LOADER, keep_size="256K", **{"with": "shapes"})
    loop, *workers = table(tmp_path, "data_loader")
    assert 10 < loop["batches"] < 1000 and loop["startup_ns"] is None and loop["ready"] is None
    assert len(workers) == 2 and all(worker["startup_ns"] is None for worker in workers)
    # up to as many as two workers prefetch had been made before
    assert loop["batches"] - 6 <= sum(worker["batches"] for worker in workers) <= loop["batches"] + 6


HELD = """
import sys, torch, stepscope

torch.set_num_threads(1)
model = torch.nn.Linear(32, 32)
optimizer = torch.optim.Adam(model.parameters()) if sys.argv[1] == "optimizer" else None
beside = [torch.zeros_like(weight) for weight in model.parameters() for _ in range(2)]
for n in range(1200):
    model.zero_grad()
    model(torch.randn(8, 32)).sum().backward()
    if optimizer:
        optimizer.step()
    else:
        with torch.no_grad():
            for k, weight in enumerate(model.parameters()):
                for state in beside[2 * k:2 * k + 2]:
                    state.mul_(0.9).add_(weight.grad)
                weight -= 0.01 * state
    if n % 10 == 0:
        stepscope.flush()
"""


@pytest.mark.parametrize("by", ["optimizer", "hand"])
@every_python
def test_what_is_held_is_told_of_in_what_is_left(tmp_path, python, by):
    """Parameters and state are made once, so their allocations are removed first."""
    record(tmp_path, python, HELD, by, keep_size="256K", **{"with": "memory"})
    peaks = {row["category"]: row["peak_bytes"] for row in table(tmp_path, "memory") if row["category"]}
    parameters = 4 * (32 * 32 + 32)
    assert peaks["parameter"] == peaks["gradient"] == parameters and 2 * parameters <= peaks["optimizer state"] < 2 * parameters + 64
    shown = subprocess.run([STEPSCOPE, "report", "run", "--table", "memory"], cwd=tmp_path, env=environment(COLUMNS=400), capture_output=True, text=True)
    assert "were alive before the rest of the recording" in shown.stdout
