# SPDX-License-Identifier: Apache-2.0
"""Inputs of operators in a part of the steps that a budget chose: what the recording holds, and what tables make of it."""
import json
import re
import subprocess

import pytest

from torch_tools import STEPSCOPE, environment, every_python, table, warm

STEPS = 200
TRAIN = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(6)])
optimizer = torch.optim.Adam(model.parameters())
{before}
for step in range({steps}):
    optimizer.zero_grad()
    loss = model(torch.randn({batch}, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    {after}
"""
PRODUCTS = ("aten::addmm", "aten::mm")
EVERY = ["--with", "shapes", "--cost-every"]


def record(tmp_path, python, options=(), batch="4", steps=STEPS, before="", after="", budget=None, env=None, out="run"):
    (tmp_path / "train.py").write_text(TRAIN.format(batch=batch, steps=steps, before=before, after=after))
    done = warm(tmp_path, python, "train.py", options=[*options, "--out", out], budget=budget, env=env)
    assert done.returncode == 0, done.stderr
    return done


def query(tmp_path, text, recording="run"):
    done = subprocess.run([STEPSCOPE, "query", recording, text, "--json"], cwd=tmp_path, env=environment(), capture_output=True, text=True,
                          check=True, timeout=180)
    return json.loads(done.stdout)["rows"]


def steps_by_inputs(tmp_path, recording="run"):
    """Numbers of the steps with operators: those in which each product has inputs, and those in which none has."""
    rows = query(tmp_path, "SELECT step, count(*) AS calls, count(inputs) AS sized FROM spans WHERE name IN ('aten::addmm', 'aten::mm') "
                           "AND step IS NOT NULL GROUP BY step", recording)
    assert all(row["sized"] in (0, row["calls"]) for row in rows), rows
    return [row["step"] for row in rows if row["sized"]], [row["step"] for row in rows if not row["sized"]]


def flops_of(tmp_path, recording="run"):
    return {row["name"]: row["flops"] for row in table(tmp_path, "ops", recording=recording) if row["name"] in PRODUCTS}


@pytest.mark.parametrize("lean", ["none", "tls,engine,object"])
@every_python
def test_a_quarter_of_the_chosen_steps_has_inputs(tmp_path, python, lean):
    done = record(tmp_path, python, [*EVERY, "2"], env={"STEPSCOPE_LEAN": lean})
    sized, bare = steps_by_inputs(tmp_path)
    assert 20 <= len(sized) <= 30 and 70 <= len(bare) <= 80, (sized, bare)
    assert f"operators of {len(sized) + len(bare)} of {STEPS} steps (1 of 2), inputs of {len(sized)} (1 of 8)" in done.stderr


@pytest.mark.parametrize("every", ["1", "4"])
@every_python
def test_flop_of_the_run_are_those_without_a_budget(tmp_path, python, every):
    record(tmp_path, python, [*EVERY, every])
    record(tmp_path, python, ["--with", "shapes"], budget="none", out="all")
    sized, bare = steps_by_inputs(tmp_path)
    assert len(sized) >= 8 and len(bare) >= 30
    whole, part = flops_of(tmp_path, "all"), flops_of(tmp_path)
    assert set(part) == set(PRODUCTS) and part == pytest.approx(whole, rel=1e-9)
    of_modules = [{row["module"]: row["flops"] for row in table(tmp_path, "modules", recording=recording)} for recording in ("run", "all")]
    assert of_modules[0] == pytest.approx(of_modules[1], rel=1e-9) and of_modules[0]
    of_steps = [{row["flops"] for row in table(tmp_path, "steps", recording=recording) if row["has_detail"]} for recording in ("run", "all")]
    assert of_steps[0] == of_steps[1] and len(of_steps[0]) == 1 and None not in of_steps[0]


@every_python
def test_of_alternating_sizes_nothing_wrong_is_said(tmp_path, python):
    """Whatever the table of operations says is what all steps compute, and so is what it says of each step."""
    batch = "4 if step // 3 % 2 else 8"
    record(tmp_path, python, [*EVERY, "2"], batch=batch)
    record(tmp_path, python, ["--with", "shapes"], batch=batch, budget="none", out="all")
    truth = {row["step"]: row["flops"] for row in table(tmp_path, "steps", recording="all")}
    said = {row["step"]: row["flops"] for row in table(tmp_path, "steps") if row["flops"] is not None}
    assert len(set(truth.values())) == 2 and len(said) >= 20
    assert {step: truth[step] for step in said} == said
    assert set(said) == set(steps_by_inputs(tmp_path)[0])
    assert set(flops_of(tmp_path).values()) == {None}
    root = table(tmp_path, "modules")[0]
    assert root["flops"] is None and root["uncounted_operators"] > 0


@every_python
def test_by_shape_the_steps_with_inputs_stand_for_the_run(tmp_path, python):
    record(tmp_path, python, [*EVERY, "2"])
    rows = [row for row in table(tmp_path, "ops", "--by", "shape") if row["name"] == "aten::addmm"]
    assert [row["shape"] for row in rows] == ["[8] [4, 8] [8, 8] [] []"]
    assert rows[0]["calls"] == pytest.approx(STEPS * 6, abs=1)
    by_name = sum(row["calls"] for row in table(tmp_path, "ops") if row["name"] == "aten::addmm")
    assert rows[0]["calls"] == pytest.approx(by_name, abs=1)
    text = subprocess.run([STEPSCOPE, "report", "run", "--table", "ops", "--by", "shape"], cwd=tmp_path, env=environment(), capture_output=True,
                          text=True, check=True).stdout
    sized = steps_by_inputs(tmp_path)[0]
    early = sum(step < 3 for step in sized)  # stand for themselves
    times = re.search(rf"from {len(sized)} of {STEPS} steps \(those with inputs\); sums are multiplied by ([0-9.]+)", re.sub(r"\s+", " ", text))
    assert float(times[1]) == pytest.approx((STEPS - early) / (len(sized) - early), rel=0.01), text


@every_python
def test_as_torch_prints_it_only_calls_with_inputs_are_by_shape(tmp_path, python):
    record(tmp_path, python, [*EVERY, "2"])
    done = subprocess.run([STEPSCOPE, "report", "run", "--style", "torch", "--by", "shape", "--json"], cwd=tmp_path, env=environment(),
                          capture_output=True, text=True, check=True)
    rows = [row for row in json.loads(done.stdout)["rows"] if row["key"] == "aten::addmm"]
    assert len(rows) == 1 and rows[0]["count"] == 6 * len(steps_by_inputs(tmp_path)[0])


@every_python
def test_a_trace_that_we_export_says_the_same(tmp_path, python):
    record(tmp_path, python, [*EVERY, "2"])
    subprocess.run([STEPSCOPE, "export", "run", "-o", "trace.json"], cwd=tmp_path, env=environment(), capture_output=True, check=True)
    steps = [[(row["step"], row["flops"], row["uncounted_operators"]) for row in table(tmp_path, "steps", recording=each) if row["has_detail"]]
             for each in ("run", "trace.json")]
    assert steps[0] == steps[1]


@every_python
def test_what_is_asked_for_has_inputs(tmp_path, python):
    record(tmp_path, python, ["--with", "shapes", "--steps", "20-40"])
    assert steps_by_inputs(tmp_path) == (list(range(20, 41)), [])
    record(tmp_path, python, ["--with", "shapes", "--wait", "20", "--active", "9", "--repeat", "1"], steps=40, out="schedule")
    assert steps_by_inputs(tmp_path, "schedule") == (list(range(20, 29)), [])


@every_python
def test_without_a_budget_all_steps_have_inputs(tmp_path, python):
    record(tmp_path, python, ["--with", "shapes"], budget="none", steps=40)
    assert steps_by_inputs(tmp_path) == (list(range(40)), [])


@pytest.mark.parametrize("wanted", ["record_shapes=True", "with_flops=True"])
@every_python
def test_windows_have_inputs(tmp_path, python, wanted):
    before = f"from stepscope import profile, schedule; p = profile(schedule=schedule(wait=60, warmup=0, active=20, repeat=1), {wanted}); p.__enter__()"
    record(tmp_path, python, [*EVERY, "2"], before=before, after="p.step()")
    assert set(steps_by_inputs(tmp_path)[0]) >= set(range(60, 80))


IN_THREADS = """
import sys
import threading
import torch
sys.setswitchinterval(1e-5)
torch.set_num_threads(1)
is_over = False

def other():
    with torch.no_grad():
        while not is_over:
            torch.mm(torch.ones(3, 5), torch.ones(5, 7))

model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
threads = [threading.Thread(target=other) for _ in range(2)]
for thread in threads:
    thread.start()
for step in range(400):
    optimizer.zero_grad()
    model(torch.randn(4, 8)).sum().backward()
    optimizer.step()
is_over = True
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("lean", ["none", "tls,engine,object"])
@every_python
def test_other_threads_have_their_own_inputs_or_none(tmp_path, python, lean):
    """PyTorch's records of the steps without inputs hold anything where inputs lie in others: nothing of that is read, whenever a step begins."""
    (tmp_path / "threads.py").write_text(IN_THREADS)
    done = warm(tmp_path, python, "threads.py", options=[*EVERY, "1"], budget=None, env={"STEPSCOPE_LEAN": lean})
    assert done.returncode == 0, done.stderr
    shapes = {row["shape"] for row in query(tmp_path, "SELECT DISTINCT shape FROM spans WHERE name = 'aten::mm'")}
    assert "[3, 5] [5, 7]" in shapes and shapes <= {"[3, 5] [5, 7]", "[8, 4] [4, 8]", "[4, 8] [8, 8]", None}, shapes
    assert query(tmp_path, "SELECT count(*) AS n FROM spans WHERE name = 'aten::mm' AND shape IS NULL")[0]["n"] > 0
