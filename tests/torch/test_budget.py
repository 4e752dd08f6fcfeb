# SPDX-License-Identifier: Apache-2.0
"""The budget: operators in some steps only, the same program, and tables that stand for all of it."""
import json
import re
import subprocess

import pytest

from torch_tools import STEPSCOPE, every_python, table, warm

TRAIN = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(6)])
optimizer = torch.optim.Adam(model.parameters())
{before}
for step in range(160):
    optimizer.zero_grad()
    loss = model(torch.randn(4, 8)).pow(2).mean()
    loss.backward()
    optimizer.step()
    {after}
print(loss.item().hex())
"""
WINDOW = ("from stepscope import profile, schedule; p = profile(schedule=schedule(wait=60, warmup=0, active=20, repeat=1)); p.__enter__()", "p.step()")


def record(tmp_path, python, before="", after="", options=(), budget="3%"):
    (tmp_path / "train.py").write_text(TRAIN.format(before=before, after=after))
    done = warm(tmp_path, python, "train.py", options=options, budget=budget)
    assert done.returncode == 0, done.stderr
    return done


def with_operators(tmp_path):
    return [row["step"] for row in table(tmp_path, "steps") if row["has_detail"]]


@every_python
def test_tables_stand_for_the_run(tmp_path, python):
    """Each step runs the same operators, so what some of them tell of the run is what all of them do."""
    done = record(tmp_path, python, budget="50%")
    chosen = with_operators(tmp_path)
    assert len(table(tmp_path, "steps")) == 160 and 3 <= len(chosen) < 160, chosen
    # the first step was seen before anybody knew that there are steps
    assert re.search(rf"captured operators of {len(chosen)} of 160 steps(?: \(1 of \d+(?: to \d+)?\))?: all would cost ", done.stderr), (done.stderr, chosen)
    (linear,) = [row for row in table(tmp_path, "ops") if row["name"] == "aten::addmm"]
    assert linear["calls"] == 160 * 6


@every_python
def test_the_program_is_the_same(tmp_path, python):
    outputs = set()
    for budget in ("3%", "none", "100%"):
        outputs.add(record(tmp_path, python, budget=budget, options=["--out", f"run{budget}"]).stdout)
    assert len(outputs) == 1 and outputs.pop().strip()


@every_python
def test_what_a_profiler_asks_for_is_whole(tmp_path, python):
    record(tmp_path, python, *WINDOW)
    assert set(with_operators(tmp_path)) >= set(range(60, 80))


@every_python
def test_memory_has_operators_in_all_steps_and_says_what_they_cost(tmp_path, python):
    done = record(tmp_path, python, options=["--with", "memory"])
    assert with_operators(tmp_path) == list(range(160))
    assert re.search(r"captured all 160 steps \(0-159\) with operators, which --with memory needs: they cost (?:about |less than )", done.stderr), done.stderr


@every_python
def test_a_program_without_steps_is_recorded_whole(tmp_path, python):
    (tmp_path / "infer.py").write_text("import torch\nmodel = torch.nn.Linear(8, 8)\nwith torch.no_grad():\n    for _ in range(50):\n"
                                       "        model(torch.randn(4, 8))\n")
    assert warm(tmp_path, python, "infer.py", budget="3%").returncode == 0
    (linear,) = [row for row in table(tmp_path, "ops") if row["name"] == "aten::addmm"]
    assert linear["calls"] == 50


BY_HAND = """
import torch
model = torch.nn.Linear(8, 8)
for step in range(80):
    model(torch.randn(4, 8)).pow(2).mean().backward()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter -= 0.1 * parameter.grad
            parameter.grad = None
"""


@every_python
def test_what_cannot_be_measured_is_not_printed(tmp_path, python):
    """Without an optimizer only operators tell of steps: PyTorch calls us in all of them, so steps without operators are no measure."""
    (tmp_path / "by_hand.py").write_text(BY_HAND)
    for options in ([], ["--steps", "none", "--out", "none"]):
        assert warm(tmp_path, python, "by_hand.py", options=options, budget="3%").returncode == 0
        (run,) = table(tmp_path, "run", recording=options[3] if options else "run")
        assert run["cost"].startswith("cost not measured: PyTorch's callbacks also ran in the steps without operators"), run["cost"]
        assert run["overhead_ratio"] is None
    assert record(tmp_path, python, options=["--out", "with"]).returncode == 0
    assert "callbacks also ran in the steps" not in table(tmp_path, "run", recording="with")[0]["cost"]


TWO_RATES = """
import torch
models = [torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(6)]) for _ in range(2)]
optimizers = [torch.optim.Adam(model.parameters()) for model in models]
for step in range(160):
    for model, optimizer in zip(models[:1 + (step % 5 == 4)], optimizers):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).pow(2).mean().backward()
        optimizer.step()
"""


@every_python
def test_the_report_says_its_own_count(tmp_path, python):
    """The program cannot know that an optimizer will be called once more in a step: there its count of what has operators differs."""
    (tmp_path / "two.py").write_text(TWO_RATES)
    done = warm(tmp_path, python, "two.py", budget="40%")
    (run,) = table(tmp_path, "run")
    said = re.search(r"captured operators of (\d+) of (\d+) steps[^\n]*; steps were counted by the calls of optimizers", done.stderr)
    steps = [row for row in table(tmp_path, "steps")]
    whole, count = sum(row["has_detail"] for row in steps), len(steps)
    assert (int(said[1]), int(said[2])) != (whole, count), "the counts are the same: this test says nothing"
    assert run["capture"].startswith(f"{said[0]}; of the steps that the report finds, {whole} of {count} have all their operators"), run["capture"]


@every_python
def test_compare_tells_in_which_steps_operators_are(tmp_path, python):
    """Of real recordings; what their times say is the machine's."""
    ways = {"simple": ["--type", "simple"], "default": [], "all": ["--budget", "none"]}
    for name, options in ways.items():
        record(tmp_path, python, options=[*options, "--out", name])
    for base, new, kinds in (("simple", "default", ("none", "some, and the others are compared")), ("all", "default", ("all", "some, and the others are compared")),
                             ("simple", "all", ("none", "all"))):
        done = subprocess.run([STEPSCOPE, "compare", base, new, "--json"], cwd=tmp_path, capture_output=True, text=True, check=False)
        answer = json.loads(done.stdout)
        (kind,) = [row for row in answer["differences"] if row["fact"] == "steps with operators"]
        assert (kind["base"], kind["new"]) == kinds
        said = f"{answer['verdict']['sentence']} {answer['verdict']['noise']}"
        assert ("operators were recorded" in said) == ("all" in (base, new)), said
        assert (answer["verdict"]["result"] == "not comparable") == ("record both sides with --budget none" in said), said
        if {base, new} == {"simple", "all"}:
            assert answer["verdict"]["result"] == "not comparable"
