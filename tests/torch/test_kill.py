# SPDX-License-Identifier: Apache-2.0
"""A training that is killed, at any moment: the file can be read, the last step is named, the status is the signal's."""
import os
import random
import re
import signal
import subprocess
import time

import pytest

from torch_tools import STEPSCOPE, environment, every_python, table

TRAIN = """
import os, torch
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(10**9):
    loss = (model(torch.randn(32, 64)) - 1).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 2:
        os.write(1, b"%d " % os.getpid())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
@every_python
def test_killed_training_can_be_read(tmp_path, python, number):
    process = subprocess.Popen([STEPSCOPE, "run", "-o", "run", "--", python, "-c", TRAIN], cwd=tmp_path,
                               env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    pid = b""
    while not pid.endswith(b" "):
        pid += process.stdout.read(1)
    time.sleep(random.random() / 2)  # any moment will do
    os.kill(int(pid), number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number, errors
    if number == signal.SIGKILL:
        assert re.search(rb"was killed by SIGKILL(, last op '[^']+')?; recorded up to its end", errors), errors  # or between two
    steps = table(tmp_path, "steps")
    assert [step["step"] for step in steps] == list(range(len(steps))) and len(steps) >= 3
    assert all(step["is_complete"] for step in steps[:-1])
    assert not [row for row in table(tmp_path, "ledger") if row["what"] in ("damaged", "dropped", "missing tail")]
