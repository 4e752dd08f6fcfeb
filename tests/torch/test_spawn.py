# SPDX-License-Identifier: Apache-2.0
"""Processes that train and that the program starts itself: what the closing line and the report say of them, and their schedules."""
import re
import shutil
import subprocess

import pytest

from torch_tools import HERE, PACKAGE, environment, every_python, run, run_ranks, table

CAPTURED = "captured the operators of PyTorch; the program marked no steps, the report infers them (5 were counted by the calls of optimizers)"
WINDOW = ("captured steps 2-3 (2 steps) with operators; 2 steps before them and 1 after with steps and phases only; "
          "steps were counted by the calls of optimizers")
FORKED = "recorded up to its end, after 5 steps (counted; the program marks no steps), with operators"
FORKED_WINDOW = "recorded up to its end, after 5 steps (counted; the program marks no steps), those from 2 to 3 with operators"


def closing(done):
    """Without numbers of processes."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("stepscope: ")]
    assert len(lines) == 2 and lines[1].startswith("stepscope: report: "), done.stderr
    return re.sub(r"\bpid \d+", "pid", lines[0][len("stepscope: "):])


def trainers(tmp_path):
    return [(row["rank"], row["steps"]) for row in table(tmp_path, "ranks")]


def with_operators(tmp_path):
    return [step["step"] for step in table(tmp_path, "steps") if step["has_detail"]]


@pytest.mark.parametrize("how, sentences", [("torch.spawn", (CAPTURED, WINDOW)), ("spawn", (CAPTURED, WINDOW)), ("fork", (FORKED, FORKED_WINDOW)),
                                            ("forkserver", (FORKED, FORKED_WINDOW))])
@pytest.mark.parametrize("is_window", [False, True], ids=["all", "window"])
@every_python
def test_ranks_that_the_program_starts(tmp_path, python, how, sentences, is_window):
    """The closing line speaks for them, and not for the process that only started them."""
    done = run_ranks(tmp_path, python, HERE / "spawned.py", how, 2, options=["--steps", "2-3"] if is_window else [])
    assert done.returncode == 0, done.stderr
    assert re.sub(r"^2 of \d", "2 of 3", closing(done)) == "2 of 3 processes trained, ranks 0-1: " + sentences[is_window]
    assert trainers(tmp_path) == ([(0, 2), (1, 2)] if is_window else [(0, 5), (1, 5)])  # those that are compared
    assert [step["step"] for step in table(tmp_path, "steps")] == list(range(5)) * 2
    assert with_operators(tmp_path) == ([2, 3] * 2 if is_window else [0, 1, 2, 3, 4] * 2)
    processes = {row["rank"]: row["role"] for row in table(tmp_path, "processes") if row["role"] != "host"}
    assert processes == {0: "trainer", 1: "trainer", None: "trainer"}


@every_python
def test_jobs_one_after_the_other_are_not_compared(tmp_path, python):
    """What is started again has the same ranks: their collectives are of two jobs."""
    done = run_ranks(tmp_path, python, HERE / "spawned.py", "fork", 2, 2)
    assert done.returncode == 0, done.stderr
    assert closing(done) == "4 of 5 processes trained, rank 0 (pid), rank 0 (pid), rank 1 (pid), rank 1 (pid): " + FORKED
    ranks = table(tmp_path, "ranks")
    assert [(row["rank"], row["steps"]) for row in ranks] == [(0, 5), (0, 5), (1, 5), (1, 5)]
    assert all(row[column] is None for row in ranks for column in ("late_ns", "caused_ns", "behind_ns", "is_slowest"))
    assert table(tmp_path, "rank_collectives") == []


TRAIN = """
import os, subprocess, sys, torch
model = torch.nn.Linear(8, 8)
def train(steps, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        model(torch.ones(2, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
def in_child(call):
    child = os.fork()
    if child == 0:
        call()
        os._exit(0)
    return child
def ended(child):
    assert os.waitpid(child, 0)[1] == 0
"""


def record(tmp_path, python, code, *arguments, options=(), env=None, status=0):
    shutil.rmtree(tmp_path / "run", ignore_errors=True)
    (tmp_path / "program.py").write_text(TRAIN + code)
    done = run(tmp_path, python, "program.py", *arguments, options=options, env=env)
    assert done.returncode == status, done.stderr
    return done


def steps_by_process(tmp_path):
    """Of each process with steps, in the order of the report: the number of steps, and those with operators."""
    found = {}
    for step in table(tmp_path, "steps"):
        found.setdefault(step["process"], []).append(step)
    return [(len(steps), [step["step"] for step in steps if step["has_detail"]]) for steps in found.values()]


def roles(tmp_path):
    return sorted(row["role"] for row in table(tmp_path, "processes") if row["role"] != "host")


@every_python
def test_a_child_that_trains_has_a_schedule_of_its_own(tmp_path, python):
    """Also behind its parent's, and while a data loader's workers, which are forked, too, have none."""
    done = record(tmp_path, python, """
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(8, 8)), batch_size=2, num_workers=2, multiprocessing_context="fork")
list(data)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
train(5, optimizer)
ended(in_child(lambda: train(6, optimizer)))
ended(in_child(lambda: train(4)))
""", options=["--steps", "2-3"])
    assert steps_by_process(tmp_path) == [(5, [2, 3]), (6, [2, 3]), (4, [2, 3])]
    assert roles(tmp_path) == ["trainer"] * 3 + ["worker"] * 2
    assert closing(done) == ("3 processes, pid: captured steps 2-3 (2 steps) with operators; 2 steps before them and 1 after with steps and "
                             "phases only; steps were counted by the calls of optimizers; pid: recorded up to its end, after 6 steps (counted; "
                             "the program marks no steps), those from 2 to 3 with operators; pid: recorded up to its end, after 4 steps "
                             "(counted; the program marks no steps), those from 2 to 3 with operators, and 2 worker processes")


@every_python
def test_gradients_alone_make_a_child_a_trainer(tmp_path, python):
    record(tmp_path, python, """
def descend(steps):
    for _ in range(steps):
        model(torch.ones(2, 8)).sum().backward()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= 0.1 * parameter.grad
                parameter.grad = None
ended(in_child(lambda: descend(5)))
""", options=["--steps", "1-2"])
    assert steps_by_process(tmp_path) == [(5, [1, 2])]
    assert roles(tmp_path) == ["trainer", "trainer"]


@every_python
def test_advice_where_nothing_was_captured_in_the_whole_run(tmp_path, python):
    done = record(tmp_path, python, "ended(in_child(lambda: torch.ones(2).neg()))", options=["--steps", "2-3"])
    assert "captured no operators: the program marked no steps and PyTorch called no optimizer" in done.stderr
    done = record(tmp_path, python, "subprocess.run([sys.executable, '-c', 'import torch; torch.ones(2).neg()'], check=True)")
    assert closing(done) == ("2 processes, pid, pid: captured the operators of PyTorch; the program marked no steps, and none were counted; the "
                             "report infers steps if it can; mark steps with stepscope.step()")


@every_python
def test_auto_speaks_for_its_children_where_they_did_the_work(tmp_path, python):
    (tmp_path / "program.py").write_text("""
import multiprocessing, sys, torch
import stepscope
def work():
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
if __name__ == "__main__":
    stepscope.auto("out=run,steps=2-3")
    for _ in range(int(sys.argv[1])):
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start()
        child.join()
""")
    for children, said in (0, "mark them with stepscope_step_begin()"), (1, "captured no operators in this process; processes that it started recorded"):
        shutil.rmtree(tmp_path / "run", ignore_errors=True)
        done = subprocess.run([python, "program.py", str(children)], cwd=tmp_path, env=environment(PYTHONPATH=PACKAGE), capture_output=True,
                              text=True, timeout=300, check=True)
        assert said in done.stderr.splitlines()[-1], done.stderr
        assert ("mark them" in done.stderr) == (children == 0)


@every_python
def test_a_supervisor_is_no_rank(tmp_path, python):
    done = record(tmp_path, python, """
if len(sys.argv) == 1:
    for _ in range(2):
        subprocess.run([sys.executable, sys.argv[0], "train"], check=True)
else:
    train(4)
""")
    assert closing(done) == ("2 of 3 processes trained, pid, pid: captured the operators of PyTorch; the program marked no steps, "
                             "the report infers them (4 were counted by the calls of optimizers)")
    assert trainers(tmp_path) == [(None, 4), (None, 4)]


@every_python
def test_a_daemon_that_trains(tmp_path, python):
    done = record(tmp_path, python, """
reader, writer = os.pipe()
def detach():
    os.setsid()
    if os.fork() == 0:
        train(5)
        os.write(writer, b"x")
train(1)
ended(in_child(detach))
assert os.read(reader, 1) == b"x"
""", options=["--steps", "1-3"])
    assert "1 worker process" not in done.stderr
    assert steps_by_process(tmp_path)[-1] == (5, [1, 2, 3])


@every_python
def test_a_program_that_becomes_another_one(tmp_path, python):
    done = record(tmp_path, python, """
train(3)
if len(sys.argv) == 1:
    os.execv(sys.executable, [sys.executable, sys.argv[0], "again"])
""")
    assert closing(done).startswith("captured the operators of PyTorch; the program marked no steps, the report infers them (3 were counted by the calls of optimizers)")
    assert sum(count for count, _ in steps_by_process(tmp_path)) == 6


@every_python
def test_ranks_of_a_notebook(tmp_path, python):
    """Its launcher forks; each child sets its rank in its environment once it runs."""
    done = record(tmp_path, python, """
def rank(number):
    os.environ.update(RANK=str(number), LOCAL_RANK=str(number), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
    torch.distributed.init_process_group("gloo", init_method=f"file://{os.getcwd()}/store", rank=number, world_size=2)
    train(4)
    torch.distributed.barrier()
for child in [in_child(lambda: rank(number)) for number in range(2)]:
    ended(child)
""", "0", options=["--steps", "1-2"])
    assert closing(done).startswith("2 of 3 processes trained, ranks 0-1: recorded up to its end, after 4 steps")
    assert trainers(tmp_path) == [(0, 2), (1, 2)]  # those that are compared
    assert steps_by_process(tmp_path) == [(4, [1, 2])] * 2


@every_python
def test_ranks_are_selected_by_their_group(tmp_path, python):
    done = run_ranks(tmp_path, python, HERE / "spawned.py", "torch.spawn", 2, options=["--ranks", "1"])
    assert done.returncode == 0, done.stderr
    steps = table(tmp_path, "steps")
    assert [(step["process"], step["has_detail"]) for step in steps] == [("rank 0", False)] * 5 + [("rank 1", True)] * 5
    assert all(step["backward_ns"] > 0 for step in steps)
    assert "rank 0: captured 5 steps with steps and phases only: rank 0 is not among the selected ranks (--ranks)" in done.stderr
