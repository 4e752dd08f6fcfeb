# SPDX-License-Identifier: Apache-2.0
"""What happens rarely is recorded in steps without operators, too, and no table multiplies it."""
import json
import subprocess

import pytest

from torch_tools import STEPSCOPE, environment, every_python, is_before, table, warm

TRAIN = """
import gc, sys
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(3)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
def step(batch):
    optimizer.zero_grad()
    model(batch).pow(2).mean().backward()
    optimizer.step()
gc.collect()
gc.freeze()
gc.disable()
"""
SOME = ("--cost-every", "8")


def record(tmp_path, python, program, options=SOME):
    (tmp_path / "train.py").write_text(TRAIN + program)
    done = warm(tmp_path, python, "train.py", options=options, budget="3%" if "--steps" in options else None)
    assert done.returncode == 0, done.stderr
    return done


def query(tmp_path, sql):
    done = subprocess.run([STEPSCOPE, "query", "run", "--json", sql], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"]


def with_operators(tmp_path):
    return [row["step"] for row in table(tmp_path, "steps") if row["has_detail"]]


def diagnose(tmp_path, *options):
    done = subprocess.run([STEPSCOPE, "diagnose", "run", "--json", *options], cwd=tmp_path, env=environment(), capture_output=True, text=True,
                          check=True)
    return {check["rule"]: check["result"] for check in json.loads(done.stdout)["checks"]}


def row_of(rows, key, name):
    (row,) = [row for row in rows if row[key].startswith(name)]
    return row


@every_python
def test_collections_of_all_steps_are_counted_once(tmp_path, python):
    record(tmp_path, python, "for n in range(100):\n    step(torch.randn(4, 8))\n    if n % 3 == 1:\n        gc.collect()\nstep(torch.randn(4, 8))\n")
    steps = table(tmp_path, "steps")
    assert len(steps) == 101 and all(row["has_rare"] for row in steps)
    assert 5 <= len(with_operators(tmp_path)) < 40
    found = query(tmp_path, "SELECT count(*) AS count, sum(dur_ns) AS ns FROM spans WHERE name = 'garbage collection 2' AND step IS NOT NULL")[0]
    assert found["count"] == 33
    waits = row_of(table(tmp_path, "host_waits"), "cause", "garbage collection")
    assert waits["known_steps"] == 101 and not waits["is_least"]
    assert waits["step_own_ns"] == found["ns"]
    assert waits["step_ratio"] == pytest.approx(found["ns"] / sum(row["duration_ns"] for row in steps))
    ops = row_of(table(tmp_path, "ops"), "name", "garbage collection 2")
    assert ops["calls"] == 33 and ops["self_ns"] == found["ns"]
    # what all steps run is the run's
    assert row_of(table(tmp_path, "ops"), "name", "aten::addmm")["calls"] == 303
    report = json.loads(subprocess.run([STEPSCOPE, "report", "run", "--json"], cwd=tmp_path, env=environment(), capture_output=True, text=True,
                                       check=True).stdout)
    assert not report.get("defects")


AUTOMATIC = """
import time
kept, seen, began = [], [0, 0, 0], 0
def count(phase, info):
    seen[info["generation"]] += phase == "start"
class Node:
    def __init__(self):
        self.me = self
for n in range(60):
    step(torch.randn(4, 8))
    if n == 1:
        gc.callbacks.append(count)
        gc.set_threshold(50, 3, 3)
        gc.enable()
    kept.append([Node() for _ in range(200)])
    kept[-3:] = []
gc.disable()
gc.callbacks.remove(count)
step(torch.randn(4, 8))
print(*seen)
"""


@every_python
def test_automatic_collections_are_those_that_python_tells_of(tmp_path, python):
    truth = [int(number) for number in record(tmp_path, python, AUTOMATIC).stdout.split()]
    assert truth[2] >= 3
    for generation, count in enumerate(truth):
        found = query(tmp_path, f"SELECT count(*) AS count FROM spans WHERE name = 'garbage collection {generation}' AND step IS NOT NULL")
        assert found[0]["count"] == count, generation


COMPILE = """
model = torch.compile(model, backend="aot_eager", dynamic=False)
for n in range(80):
    step(torch.randn(5 if n == 37 else 4, 8))
    if n == 0:
        gc.collect()  # tells us of the compiler, which was imported when it was needed
"""


@every_python
def test_a_recompilation_in_a_step_without_operators_is_found(tmp_path, python):
    if is_before(python, 2, 2):
        pytest.skip("this PyTorch does not tell of compilations")
    record(tmp_path, python, COMPILE, options=("--cost-every", "16"))
    steps = {row["step"]: row for row in table(tmp_path, "steps")}
    assert len(steps) == 80 and not steps[37]["has_detail"] and steps[37]["has_rare"]
    waits = row_of(table(tmp_path, "host_waits", "--steps", "37-37"), "cause", "compilation")
    assert waits["count"] in (1, 2) and 0 < waits["step_own_ns"] <= steps[37]["duration_ns"]  # of the backward, when it is run
    (found,) = query(tmp_path, "SELECT count(*) AS count FROM spans WHERE name = 'torch.compile' AND step IS NOT NULL")
    ops = row_of(table(tmp_path, "ops"), "name", "torch.compile")
    assert ops["calls"] == found["count"] >= waits["count"]
    # the phases that calls tell are there all the same
    for phase in ("backward_ns", "optimizer_ns"):
        assert all(0 < row[phase] < row["duration_ns"] for row in steps.values()), phase


LOADER = """
from torch.utils.data import DataLoader, TensorDataset
data = TensorDataset(torch.randn(60, 8))
for epoch in range(2):
    for batch, in DataLoader(data, batch_size=2, num_workers=2):
        step(batch)
torch.save(model.state_dict(), "model.pt")
step(torch.randn(2, 8))
"""


@every_python
def test_what_happens_once_an_epoch_is_not_multiplied(tmp_path, python):
    record(tmp_path, python, LOADER)
    assert len(table(tmp_path, "steps")) == 61 and 3 <= len(with_operators(tmp_path)) < 30
    waits = table(tmp_path, "host_waits")
    assert row_of(waits, "cause", "starting workers")["count"] == 2
    assert row_of(waits, "cause", "stopping workers")["count"] == 2
    assert row_of(waits, "cause", "torch.save")["count"] == 1
    (loop,) = [row for row in table(tmp_path, "data_loader") if row["part"] == "loop"]
    starts = query(tmp_path, "SELECT sum(dur_ns) AS ns FROM spans WHERE name = 'DataLoader: start of workers'")
    assert loop["workers_ns"] in (None, starts[0]["ns"])
    ops = {row["name"]: row for row in table(tmp_path, "ops")}
    assert ops["DataLoader: start of workers"]["calls"] <= 2  # the first may be before the first step
    assert ops["aten::addmm"]["calls"] == 61 * 3


@every_python
def test_what_operators_tell_of_few_steps_is_at_least_so_much(tmp_path, python):
    chosen = "for n in range(64):\n    step(torch.randn(4, 8))\n"
    record(tmp_path, python, chosen, options=(*SOME, "--out", "first"))
    (rare, *_, often) = [row["step"] for row in table(tmp_path, "steps", recording="first") if row["has_detail"] and row["step"] > 3]
    assert rare != often
    record(tmp_path, python, f"for n in range(64):\n    step(torch.randn(4, 8))\n    if n == {rare - 1}:\n        torch.randn(3).cumsum(0)\n")
    assert rare in with_operators(tmp_path)
    rows = table(tmp_path, "ops")
    assert row_of(rows, "name", "aten::cumsum")["calls"] == 1 and row_of(rows, "name", "aten::cumsum")["is_least"]
    assert row_of(rows, "name", "aten::addmm")["calls"] == 192 and not row_of(rows, "name", "aten::addmm")["is_least"]


@every_python
def test_rules_look_at_all_steps(tmp_path, python):
    """With fewer than 20 steps with operators, in none of which a collection lies."""
    program = "gc.unfreeze()\nfor n in range(64):\n    step(torch.randn(4, 8))\n    if n in range(40, 50):\n        gc.collect()\n"
    record(tmp_path, python, program, options=("--cost-every", "64"))
    assert len(with_operators(tmp_path)) < 20
    checks = diagnose(tmp_path)
    assert checks["SS202"] == "found" and checks["SS401"] == "nothing", checks


@every_python
def test_steps_that_nobody_asked_for_have_none_of_it(tmp_path, python):
    record(tmp_path, python, "for n in range(20):\n    step(torch.randn(4, 8))\n    gc.collect()\n", options=("--steps", "5-7"))
    assert [row["step"] for row in table(tmp_path, "steps") if row["has_rare"]] == [5, 6, 7]
    found = query(tmp_path, "SELECT count(*) AS count FROM spans WHERE name = 'garbage collection 2'")
    assert found[0]["count"] == 3
    waits = row_of(table(tmp_path, "host_waits"), "cause", "garbage collection")
    assert waits["known_steps"] == 3 and waits["count"] == 3
    checks = diagnose(tmp_path)
    assert checks["SS202"] == checks["SS401"] == "cannot tell", checks
