# SPDX-License-Identifier: Apache-2.0
"""Schedules of programs that mark no steps: what the program counts while it runs, against what the report finds afterwards."""
import json

import pytest

from test_steps import IN_THREADS, NAMES, script, skip_what_is_newer
from torch_tools import every_python, run, table, warm

# A step whose end is known later than it comes: the window opens in the middle of the next one.
LATE = {"skipped_by_hand": [3]}
# The generator learns in some steps only: those end before its update.
DIFFERENT = {"n_critic"}

EXPLICIT = """
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train():
    optimizer.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    optimizer.step()
for _ in range({before}):
    train()
import stepscope
for number in range(10, 16):
    with stepscope.step(number):
        train()
"""


def differences(tmp_path):
    return [row["sentence"] for row in table(tmp_path, "ledger") if "count of its steps differed" in row["sentence"]]


@pytest.mark.parametrize("name", [*NAMES, *IN_THREADS])
@every_python
def test_a_list_of_steps_takes_those_the_report_finds(tmp_path, python, name):
    skip_what_is_newer(python, name)
    done = (run if name == "plain" else warm)(tmp_path, python, script(name), name, options=["--steps", "2-3"])
    assert done.returncode == 0, done.stderr
    truth = len(json.loads(done.stdout.splitlines()[-1])["steps"])
    steps = table(tmp_path, "steps")
    assert [step["step"] for step in steps] == list(range(truth))
    assert [step["step"] for step in steps if step["has_detail"]] == LATE.get(name, [2, 3][:max(truth - 2, 0)])
    assert bool(differences(tmp_path)) == (name in DIFFERENT)
    if truth:
        assert "; steps were counted by " in done.stderr
    else:
        assert "captured no operators: the program marked no steps and PyTorch called no optimizer" in done.stderr


@every_python
def test_a_schedule_has_the_actions_of_torch(tmp_path, python):
    done = warm(tmp_path, python, script("evaluation_per_epoch"), "evaluation_per_epoch",
               options="--wait 1 --warmup 1 --active 2 --repeat 2 --skip-first 1".split())
    assert done.returncode == 0, done.stderr
    assert [step["capture"] for step in table(tmp_path, "steps")] == [
        "none", "none", "warmup", "record", "save", "none", "warmup", "record", "save", "none", "none", "none"]
    assert differences(tmp_path) == []


@every_python
def test_steps_without_operators_know_what_calls_tell(tmp_path, python):
    """Batches, backwards and updates are calls of PyTorch's functions; what else a forward is made of is not seen."""
    done = warm(tmp_path, python, script("slow_parts"), "slow_parts", options=["--steps", "none"])
    assert done.returncode == 0, done.stderr
    steps = table(tmp_path, "steps")
    assert len(steps) == 6
    assert all(step["duration_ns"] >= 60e6 and step["optimizer_ns"] > 0 for step in steps)
    assert all(step["data_ns"] >= 20e6 and step["backward_ns"] >= 20e6 for step in steps)  # what the script slept in them
    # the first step is what shows that the program has an optimizer
    assert [(step["forward_ns"], step["other_ns"]) for step in steps[1:]] == [(None, None)] * 5
    assert not [row for row in table(tmp_path, "ops") if row["name"] == "aten::addmm"]


ACTIVE = """
import torch, stepscope
from stepscope import _native
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1) if {optimizer} else None
seen = []
def train():
    model.zero_grad()
    model(torch.randn(8, 4)).pow(2).mean().backward()
    if optimizer:
        optimizer.step()
for _ in range(7):
    if {marks}:
        stepscope.step()
    train()
    seen.append(_native.active())
print([active & 2 for active in seen], [active & 16 for active in seen])
"""


@pytest.mark.parametrize("optimizer, marks, expected", [
    (True, False, "[0, 0, 2, 2, 0, 0, 0] [16, 16, 0, 0, 16, 16, 16]"),   # the step that follows
    (False, True, "[0, 0, 0, 2, 2, 0, 0] [16, 16, 16, 0, 0, 16, 16]"),
    (False, False, "[0, 0, 0, 2, 2, 0, 0] [0, 0, 0, 0, 0, 0, 0]")])
@every_python
def test_records_are_looked_at_only_where_nothing_else_tells_of_steps(tmp_path, python, optimizer, marks, expected):
    """Where there is neither an optimizer nor a mark, operators are what steps are counted by."""
    done = warm(tmp_path, python, "-c", ACTIVE.format(optimizer=optimizer, marks=marks), options=["--steps", "3-4"])
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == expected


BACKWARDS = """
import torch
model = torch.nn.Linear(4, 2)
for _ in range(6):
    model(torch.randn(8, 4)).sum().backward()
"""


@every_python
def test_a_backward_is_the_last_thing(tmp_path, python):
    done = run(tmp_path, python, "-c", BACKWARDS, options=["--steps", "1-2"])
    assert done.returncode == 0, done.stderr
    assert [bool(step["has_detail"]) for step in table(tmp_path, "steps")] == [False, True, True, False, False, False]


@every_python
def test_marked_steps_win(tmp_path, python):
    """Also when they come after some that were counted: those are not numbered, and what was captured of them stays."""
    for before in (0, 4):
        (tmp_path / "train.py").write_text(EXPLICIT.format(before=before))
        done = run(tmp_path, python, "train.py", options=["--wait", "2", "--active", "2", "--repeat", "1", "--out", f"run{before}"])
        assert done.returncode == 0, done.stderr
        assert "captured steps 12-13 (2 steps) with operators" in done.stderr
        assert ("; 4 steps before the first marked step were counted separately" in done.stderr) == (before > 0)
        assert "counted by" not in done.stderr


@every_python
def test_marked_steps_are_the_reports(tmp_path, python):
    (tmp_path / "train.py").write_text(EXPLICIT.format(before=4))
    assert run(tmp_path, python, "train.py", options=["--steps", "12-13"]).returncode == 0
    steps = table(tmp_path, "steps")
    assert [step["step"] for step in steps] == [10, 11, 12, 13, 14, 15]
    assert [step["step"] for step in steps if step["has_detail"]] == [12, 13]


@every_python
def test_losses_are_the_same_with_a_schedule(tmp_path, python):
    (tmp_path / "train.py").write_text(EXPLICIT.format(before=9).split("import stepscope")[0]
                                       + "print(sum(p.sum() for p in model.parameters()).item().hex())\n")
    seeded = ["-c", "import torch; torch.manual_seed(0); exec(open('train.py').read())"]
    results = {warm(tmp_path, python, *seeded, options=["--out", f"run{i}", *options]).stdout
               for i, options in enumerate((["--enabled", "false"], ["--steps", "3-4"], ["--wait", "2"], []))}
    assert len(results) == 1 and results != {""}
