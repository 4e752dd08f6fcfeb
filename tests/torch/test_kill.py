# SPDX-License-Identifier: Apache-2.0
"""P01: a training that ends in any way at any moment: the file can be read, the last step is named, status and traceback are its own.

ENDS: how many ends, of all versions of PyTorch (20)."""
import os
import random
import re
import signal
import subprocess
import time

import pytest

from torch_tools import STEPSCOPE, environment, every_python, run, table

TRAIN = """
import os, sys, torch
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
how, at = sys.argv[1], int(sys.argv[2])
def end():
    if how == "os._exit":
        os._exit(7)
    if how == "sys.exit":
        sys.exit(3)
    if how == "exception":
        raise ValueError("the loss is not finite")
for step in range(10**9):
    loss = (model(torch.randn(32, 64)) - 1).pow(2).mean()
    if step == at:
        end()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 2:
        os.write(1, b"%d " % os.getpid())
"""
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT, "SIGABRT": signal.SIGABRT}
STATUS = {"os._exit": 7, "sys.exit": 3, "exception": 1}
HOW = ["SIGKILL", "SIGTERM", "SIGINT", "os._exit", "exception", "sys.exit", "SIGKILL", "SIGABRT"]
COUNT = int(os.environ.get("ENDS", "20"))


def check_recording(tmp_path, least):
    steps = table(tmp_path, "steps")
    assert [step["step"] for step in steps] == list(range(len(steps))) and len(steps) >= least
    assert all(step["is_complete"] for step in steps[:-1])
    assert not [row for row in table(tmp_path, "ledger") if row["what"] in ("damaged", "dropped", "missing tail")]


def end_from_outside(tmp_path, python, how):
    number = SIGNALS[how]
    process = subprocess.Popen([STEPSCOPE, "run", "-o", "run", "--budget", "none", "--", python, "-c", TRAIN, how, "-1"], cwd=tmp_path,
                               env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = b""
    while not pid.endswith(b" "):
        byte = process.stdout.read(1)
        assert byte, process.communicate(timeout=180)[1]
        pid += byte
    time.sleep(random.random() / 2)  # any moment will do
    os.kill(int(pid), number)
    _, errors = process.communicate(timeout=180)
    assert process.returncode == 128 + number, errors
    if number == signal.SIGKILL:
        said = re.search(rb"was killed by SIGKILL(?: \(out of memory: [^)]*\))?, after (\d+) steps \(.*\), last op '[^']+'; recorded up to its end", errors)
        assert said, errors
        steps = table(tmp_path, "steps")
        assert int(said[1]) in (len(steps) - 1, len(steps)), (said, steps[-1])  # the last may have ended or not
    if number == signal.SIGINT:
        assert errors.count(b"Traceback (most recent call last)") == 1 and b"KeyboardInterrupt" in errors
    check_recording(tmp_path, 3)


def end_by_itself(tmp_path, python, how):
    at = random.randrange(3, 60)
    done = run(tmp_path, python, "-c", TRAIN, how, at)
    assert done.returncode == STATUS[how], done.stderr
    if how == "exception":
        bare = subprocess.run([python, "-c", TRAIN, how, str(at)], capture_output=True, text=True, env=environment(), timeout=180,
                              check=False)
        assert done.stderr.startswith(bare.stderr) and "ValueError" in bare.stderr
    check_recording(tmp_path, at)


@pytest.mark.parametrize("how", [HOW[i % len(HOW)] for i in range(COUNT // 2)])
@every_python
def test_ended_training_can_be_read(tmp_path, python, how):
    (end_from_outside if how in SIGNALS else end_by_itself)(tmp_path, python, how)


WITHOUT_OPERATORS = """
import os, signal, sys, torch
class Last(torch.nn.Module):
    def forward(self, x):
        if step == 6 and sys.argv[1] == "module":
            os.kill(os.getpid(), signal.SIGKILL)
        return x
def kill(gradient):
    if step == 6 and sys.argv[1] == "backward":
        os.kill(os.getpid(), signal.SIGKILL)
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sequential(torch.nn.Linear(4, 4), Last()))
model[0].weight.register_hook(kill)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    optimizer.zero_grad()
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    if step == 6:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("where, said", [("module", "last op '1.1'"), ("backward", r"last op 'backward\(\)'"),
                                         ("between", r"last op 'aten::[^']+' of step 3")])
@every_python
def test_a_kill_in_a_step_without_operators_names_the_last_call(tmp_path, python, where, said):
    """Or the last operator, with the step that it is of."""
    done = run(tmp_path, python, "-c", WITHOUT_OPERATORS, where, options=["--steps", "2-3"])
    assert done.returncode == 128 + signal.SIGKILL
    assert re.search(rf"was killed by SIGKILL.*, after {7 if where == 'between' else 6} steps \(.*\), {said};", done.stderr), done.stderr
    (trainer,) = [row for row in table(tmp_path, "processes") if row["role"] == "trainer"]
    assert trainer["last_open"] == {"module": "1.1", "backward": "backward()"}.get(where, trainer["last_open"])


COLLECTIVE = """
import os, signal, sys, threading, time, torch
import torch.distributed as dist
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("ranks"), rank=int(sys.argv[1]), world_size=2)
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(5):
    optimizer.zero_grad()
    model(torch.randn(2, 4)).sum().backward()
    if step == 4 and dist.get_rank() == 1:
        time.sleep(60)  # the other one is dead long before
    if step == 4:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGKILL)).start()
    dist.all_reduce(model.weight.grad)
    optimizer.step()
"""


@every_python
def test_a_rank_that_dies_in_a_collective_without_operators_says_so(tmp_path, python):
    (tmp_path / "rank.py").write_text(COLLECTIVE)
    ranks = f"{python} rank.py 1 & other=$!; {python} rank.py 0; kill $other; wait"
    done = run(tmp_path, "sh", "-c", ranks, options=["--steps", "none"])
    assert re.search(r"\(pid \d+\) was killed by SIGKILL, after 4 steps \(.*\), last op 'allreduce'", done.stderr), done.stderr
