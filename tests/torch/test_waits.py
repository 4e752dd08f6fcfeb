# SPDX-License-Identifier: Apache-2.0
"""What holds up the loop is named, as often as the script did it."""

import subprocess
from pathlib import Path

import pytest

from test_start import plain
from torch_tools import STEPSCOPE, environment, every_python, run, table, version, warm

PACKAGE = Path(STEPSCOPE).resolve().parent.parent / "python"

HELD_UP = """
import gc, io, json, time, torch
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(48, 16)), batch_size=8)
gc.collect()
gc.disable()
for step, (batch,) in enumerate(data):
    loss = model(batch).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    loss.item()
    if loss > 1e9:
        break
    if step % 2:
        gc.collect()
        torch.save(model.state_dict(), "model.pt")
        torch.load("model.pt")
print("done")
"""


@every_python
def test_causes_have_their_lines(tmp_path, python):
    (tmp_path / "held.py").write_text(HELD_UP + """
model.eval()
with torch.no_grad():
    model(torch.randn(8, 16))
model.train()
(model(torch.randn(8, 16)) ** 2).mean().backward()
optimizer.step()
""")
    done = run(tmp_path, python, "held.py", options=["--with", "lines"])
    assert done.returncode == 0, done.stderr
    where = {cause: row["where"] for cause, row in causes(tmp_path).items()}
    lines = (tmp_path / "held.py").read_text().splitlines()
    for cause, text in (("torch.save", "torch.save("), ("torch.load", "torch.load("), ("evaluation", "model(torch.randn(8, 16))")):
        assert where[cause].startswith("held.py("), (cause, where)
        assert text in lines[int(where[cause].split("(")[1].split(")")[0]) - 1]
    assert where["garbage collection"]


@every_python
def test_what_was_not_recorded_is_not_measured(tmp_path, python):
    (tmp_path / "held.py").write_text(HELD_UP)
    done = warm(tmp_path, python, "held.py", options=["--steps", "none", "--with", "shapes,memory,lines"])
    assert done.returncode == 0, done.stderr
    for name in ("ops", "modules", "lines", "stacks", "memory", "memory_peak", "memory_largest", "memory_steps", "memory_growth", "data_loader",
                 "host_waits", "collectives"):
        text = subprocess.run([STEPSCOPE, "report", "run", "--table", name], cwd=tmp_path, env=environment(), capture_output=True,
                              text=True, check=True).stdout
        assert "not measured, because no operators were recorded in the steps" in text, name
    assert not [row for row in table(tmp_path, "steps") if row["has_detail"]]
    assert sum(row["checkpoint_ns"] > 0 for row in table(tmp_path, "steps")) == 2  # the third file is behind the last step


@every_python
def test_each_stretch_of_a_schedule_begins_with_its_first_step(tmp_path, python):
    (tmp_path / "long.py").write_text(HELD_UP.replace("48", "640"))
    done = warm(tmp_path, python, "long.py", options=["--wait", "10", "--active", "10"])
    assert done.returncode == 0, done.stderr
    assert [row["has_detail"] for row in table(tmp_path, "steps")] == [step // 10 % 2 == 1 for step in range(80)]
    (cost,) = table(tmp_path, "cost")  # of the program alone
    # where one stretch ends and the next one begins; a step that the machine held up is compared with none
    assert 3 <= cost["on_steps"] == cost["off_steps"] <= 7
    report = subprocess.run([STEPSCOPE, "report", "run"], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True).stdout
    said = " ".join(report.split())
    assert f"{cost['on_steps']} steps with operators compared with their neighbours" in said and "of the CPU time" not in report


def causes(tmp_path):
    return {row["cause"].split(" (")[0].split(",")[0]: row for row in table(tmp_path, "host_waits")}


@every_python
def test_causes_are_named_and_counted(tmp_path, python):
    (tmp_path / "held.py").write_text(HELD_UP)
    done = run(tmp_path, python, "held.py")
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    rows = causes(tmp_path)
    assert rows["reading a value of a tensor"]["count"] >= 12  # also those of the loader
    assert rows["garbage collection"]["count"] >= 4  # those of imports, too
    assert rows["torch.save"]["count"] == rows["torch.load"]["count"] == 3
    assert rows["optimizer"]["count"] == 6 and rows["waiting for data"]["count"] == 7
    assert all(0 <= row["step_own_ns"] <= row["own_ns"] <= row["total_ns"] for row in rows.values())
    assert 0 < sum(row["step_ratio"] for row in rows.values()) < 1


STOPPED = """
import multiprocessing.util, time, torch
class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 3
    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.ones(4)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
spent_ns = 0
def slow_to_end(worker):  # it ends when it is told to
    multiprocessing.util.Finalize(None, time.sleep, (0.2,), exitpriority=1)
loader = torch.utils.data.DataLoader(Slow(), num_workers=1, worker_init_fn=slow_to_end, multiprocessing_context="fork")
for _ in range(3):
    loop = iter(loader)
    model(next(loop)).sum().backward()
    begin = time.perf_counter_ns()
    del loop
    spent_ns += time.perf_counter_ns() - begin
    optimizer.step()
print(spent_ns)
for batch in loader:  # to its end
    pass
"""


@every_python
def test_a_loop_that_is_left_waits_for_its_workers(tmp_path, python):
    (tmp_path / "stopped.py").write_text(STOPPED)
    done = run(tmp_path, python, "stopped.py")
    rows, steps = causes(tmp_path), table(tmp_path, "steps")
    row = rows["stopping workers of a data loader"]
    assert row["count"] == 4 and 3 * 200e6 <= row["step_own_ns"] <= int(done.stdout), done.stderr
    held_up = sum(rows[cause]["step_own_ns"] for cause in ("waiting for data", "starting workers of a data loader")) + row["step_own_ns"]
    assert len(steps) == 3 and sum(step["data_ns"] for step in steps) >= held_up, "all three are the phase data"


@every_python
def test_a_loop_that_is_left_waits_for_its_workers_where_no_operators_are(tmp_path, python):
    (tmp_path / "stopped.py").write_text(STOPPED)
    done = warm(tmp_path, python, "stopped.py", options=["--steps", "none"])
    assert done.returncode == 0, done.stderr
    assert [step["data_ns"] >= 200e6 for step in table(tmp_path, "steps")] == [True] * 3  # each stops a worker, that sleeps so long then


SAME = """
import gc, inspect, pickle, sys, torch
print(inspect.signature(torch.save), torch.save.__name__, torch.save.__module__, torch.save.__doc__[:20])
print(pickle.loads(pickle.dumps(torch.save)) is torch.save, torch.load is torch.serialization.load, repr(torch.load).split(" at ")[0])
class Bad:
    def __reduce__(self):
        raise KeyError("no")
def store(thing, file="x.pt"):
    torch.save(thing, file)
try:
    store(1, "/nowhere/x")
except Exception as error:
    print(type(error).__name__)
store(Bad())
"""


@every_python
def test_functions_in_their_places_look_the_same(tmp_path, python):
    (tmp_path / "same.py").write_text(SAME)
    ours, theirs = run(tmp_path, python, "same.py"), plain(tmp_path, python, "same.py")
    assert ours.stdout == theirs.stdout
    assert ours.returncode == theirs.returncode == 1
    assert theirs.stderr in ours.stderr


COMPILED = """
import torch
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model, backend="eager")
for step in range(4):
    loss = compiled(torch.randn(8, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@every_python
def test_compilation_is_named(tmp_path, python):
    if version(python).startswith("1."):
        pytest.skip("1.13 has no torch.compile")
    (tmp_path / "compiled.py").write_text(COMPILED)
    done = warm(tmp_path, python, "compiled.py")
    assert done.returncode == 0, done.stderr
    assert causes(tmp_path)["compilation"]["count"] >= 1


# Steps are counted from the middle of a file on, in which a call of an optimizer begins that goes on behind it.
COUNTED_FROM_INSIDE = """
import io, time, torch, stepscope
from torch.autograd.profiler import record_function
stepscope.init("out=first")
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
call = record_function("Optimizer.step#SGD.step")
class File(io.BytesIO):
    is_new = True
    def write(self, data):
        if self.is_new:
            self.is_new = False
            stepscope.shutdown()
            stepscope.init("steps=none,out=run")
            model(torch.randn(8, 16)).sum().backward()
            call.__enter__()
        return super().write(data)
torch.save(1, File())
time.sleep(0.5)
call.__exit__(None, None, None)
for _ in range(2):
    begin = time.perf_counter_ns()
    model(torch.randn(8, 16)).sum().backward()
    optimizer.step()
    print(time.perf_counter_ns() - begin)
"""


@every_python
def test_a_file_that_was_begun_before_the_counting_ends_nothing(tmp_path, python):
    done = plain(tmp_path, python, "-c", COUNTED_FROM_INSIDE, PYTHONPATH=PACKAGE)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    steps = table(tmp_path, "steps")
    assert len(steps) == 3 and steps[0]["optimizer_ns"] >= 500e6
    assert all(step["optimizer_ns"] <= int(saw) for step, saw in zip(steps[1:], done.stdout.split())), (steps, done.stdout)


@every_python
def test_what_a_compiler_traces_is_no_work_of_the_loop(tmp_path, python):
    """AOTAutograd traces a backward within the forward: that is compilation, and cuts nothing."""
    if version(python).startswith("1."):
        pytest.skip("1.13 has no torch.compile")
    (tmp_path / "compiled.py").write_text(COMPILED.replace('"eager"', '"aot_eager"'))
    done = warm(tmp_path, python, "compiled.py", options=("--with", "memory,lines"))
    assert done.returncode == 0, done.stderr
    report = subprocess.run([STEPSCOPE, "report", "run", "--strict"], cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert report.returncode == 0, report.stderr
    compilation = causes(tmp_path)["compilation"]
    assert compilation["where"].startswith("compiled.py("), "our own code, which measures it, is no line of the program's"
    (row,) = [row for row in table(tmp_path, "ops") if row["name"] == "torch.compile"]
    assert row["calls"] == compilation["count"] >= 2 and not row["incomplete_calls"]
    assert row["max_ns"] == compilation["max_ns"]
    steps = table(tmp_path, "steps")
    assert steps[0]["forward_ns"] > steps[0]["backward_ns"], steps[0]
    modules = table(tmp_path, "modules")
    assert sum(row["self_ratio"] for row in modules) <= 1
    assert modules[0]["backward_ns"] <= sum(step["backward_ns"] for step in steps)
    assert modules[0]["allocated_bytes"] >= 4 * 8 * 4, "tensors that tracing makes in the first call are of the call, too"
