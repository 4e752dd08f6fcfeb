# SPDX-License-Identifier: Apache-2.0
"""PyTorch calls us only while operators are recorded: what happens where that changes, in whatever program and at whatever moment. The environment
may ask for more with SWITCHES."""
import json
import os
import re
import subprocess

import pytest

from torch_tools import HERE, PACKAGE, STEPSCOPE, every_python, is_before, run, table, warm

SWITCHES = int(os.environ.get("SWITCHES", 40))  # the suite `slow` makes more
SCHEDULES = {"list": ["--steps", "3,5,7-9,20,31,40-2000"], "none": ["--steps", "none"], "alternating": ["--wait", "1", "--active", "1"],
             "inputs": ["--with", "shapes", "--cost-every", "1"]}  # without inputs in most of these steps
bare = {}  # kind and Python -> what the program says without us


def switching(tmp_path, python, kind, **more):
    arguments = (kind, SWITCHES, 7, *(() if more.get("is_observed", True) else ("bare",)))
    done = warm(tmp_path, python, HERE / "switching.py", *arguments, env={"PYTHONPATH": PACKAGE}, timeout=100 + SWITCHES, **more)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["problems"] == []
    if is_before(python, 2, 6):  # whose profilers lose other events each time (2.3)
        said = {key: value for key, value in said.items() if "events" not in key}
    return said


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", ["alone", "threads"])
@every_python
def test_switching_changes_nothing(tmp_path, python, kind, schedule):
    """Losses to the last bit, events of PyTorch's profilers, and all begins and ends of ours."""
    if (kind, python) not in bare:
        bare[kind, python] = switching(tmp_path, python, kind, is_observed=False)
    budget = None if "--cost-every" in SCHEDULES[schedule] else "none"
    assert switching(tmp_path, python, kind, options=SCHEDULES[schedule], budget=budget) == bare[kind, python]
    assert not [row for row in table(tmp_path, "ledger") if row["what"] in ("unmatched end", "open", "dropped", "damaged")]
    steps = table(tmp_path, "steps")
    assert len(steps) > SWITCHES / 4 and all(step["is_complete"] for step in steps)
    assert [row for row in table(tmp_path, "ops") if row["name"] == "aten::addmm"]  # in windows, if nowhere else


@every_python
def test_switching_beside_forks(tmp_path, python):
    """Children that call operators, that train, and workers of loaders, of a process whose other threads are busy: none hangs."""
    if is_before(python, 2, 0):
        pytest.skip("without us, too, a child of 1.13 hangs where another thread held a lock")
    said = switching(tmp_path, python, "forks", options=SCHEDULES["alternating"])
    assert said["ends of children"] == [0] and set(said["batches"]) == {28.0}
    assert not [row for row in table(tmp_path, "ledger") if row["what"] in ("unmatched end", "dropped", "damaged")]


IN_A_MODULE = """
import torch
class Trainer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
    def forward(self, x):
        for _ in range(3):
            self.optimizer.zero_grad()
            self.net(x).pow(2).mean().backward()
            self.optimizer.step()
trainer = Trainer()
torch.nn.functional.linear(torch.randn(8, 4), trainer.net.weight).sum().backward()
trainer.optimizer.step()
for _ in range(3):
    trainer(torch.randn(8, 4))
"""

LEFT_ELSEWHERE = """
import threading, torch
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
def pieces():
    with torch.autograd.profiler.record_function("left"):
        yield
for _ in range(9):
    some = [pieces() for _ in range(100)]
    for each in some:
        next(each)
    thread = threading.Thread(target=lambda: [each.close() for each in some])
    thread.start()
    thread.join()
    net(torch.randn(8, 4)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.mark.parametrize("program", [IN_A_MODULE, LEFT_ELSEWHERE], ids=["in_a_module", "left_elsewhere"])
@every_python
def test_no_step_is_missed(tmp_path, python, program):
    """Where a module's call is around several steps, and behind ranges that are left in another thread than they were entered in."""
    done = warm(tmp_path, python, "-c", program, options=["--steps", "5-6"])
    assert done.returncode == 0, done.stderr
    steps = table(tmp_path, "steps")
    assert [step["step"] for step in steps] == list(range(9 + (program is IN_A_MODULE)))
    assert [step["step"] for step in steps if step["has_detail"]] == [5, 6]
    assert all(step["backward_ns"] and step["optimizer_ns"] for step in steps)
    if program is IN_A_MODULE:
        assert {row["module"] for row in table(tmp_path, "modules")} == {"net"}  # of which calls were noted


@pytest.mark.parametrize("schedule", ["none", "all"])
@every_python
def test_functions_are_as_without_us(tmp_path, python, schedule):
    """Documentation, copies, what raises, odd names, ranges in pieces, and backwards of all kinds."""
    program = HERE / "wrapped.py"
    alone, ours = (warm(tmp_path, python, program, is_observed=is_observed, options=SCHEDULES.get(schedule, ())) for is_observed in (False, True))
    assert alone.returncode == ours.returncode == 0, alone.stderr + ours.stderr
    assert ours.stdout == alone.stdout
    assert not [row for row in table(tmp_path, "ledger") if row["what"] in ("unmatched end", "open", "dropped", "damaged")]
    assert len(table(tmp_path, "steps")) >= 6


WINDOWS = """
import torch
from stepscope import profile, schedule
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
for _ in range(40):
    step()
with profile(schedule=schedule(wait=5, warmup=1, active=4, repeat=2)) as profiler:
    for _ in range(30):
        step()
        profiler.step()
"""


@every_python
def test_the_last_line_counts_the_steps_that_a_profiler_asked_for(tmp_path, python):
    done = run(tmp_path, python, "-c", WINDOWS, budget="0.01%", env={"PYTHONPATH": PACKAGE})
    said = re.search(r"captured operators of (\d+) of 30 steps", done.stderr)
    assert done.returncode == 0 and said, done.stderr
    steps = [step for step in table(tmp_path, "steps") if step["is_complete"]]
    assert int(said[1]) == sum(step["has_detail"] for step in steps) >= 8


SLOW = """
import time, torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number in range(320):
    optimizer.zero_grad()
    model(torch.ones(2, 8)).sum().backward()
    if number % 16 == 7:
        time.sleep(0.06)
    optimizer.step()
"""


@every_python
def test_time_in_a_phase_that_is_not_known_is_not_put_into_another(tmp_path, python):
    """Of a step without operators backward and optimizer are known, and the sleep is in neither."""
    assert run(tmp_path, python, "-c", SLOW, budget="0.01%").returncode == 0
    done = subprocess.run([STEPSCOPE, "diagnose", tmp_path / "run", "--json"], capture_output=True, text=True, check=True, timeout=100)
    found = [row["evidence"] for row in json.loads(done.stdout)["findings"] if row["rule"] in ("SS409", "SS410")]
    assert found and not [evidence for evidence in found if "goes to" in evidence]
