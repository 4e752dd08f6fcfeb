# SPDX-License-Identifier: Apache-2.0
"""What is recorded beside spans: what threads use of the processors, the options of loaders and optimizers, the way of a batch."""
import re

import pytest

from torch_tools import every_python, run, table, warm

TRAIN = """
import os, threading, time
import torch
torch.set_num_threads(1)
{before}
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 96
    def __getitem__(self, index):
        time.sleep(0.0005)
        return torch.ones(8)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.AdamW(model.parameters())
used = []
for x in torch.utils.data.DataLoader(Data(), batch_size=4, num_workers={workers}):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    end = time.thread_time() + 0.008
    while time.thread_time() < end:
        pass
    optimizer.step()
{after}
"""
CROWD = "os.sched_setaffinity(0, {next(iter(os.sched_getaffinity(0)))})\nif os.fork() == 0:\n    end = time.time() + 20\n    while os.getppid() != 1 and time.time() < end: pass\n    os._exit(0)"


def train(tmp_path, python, before="", after="", workers=0, **options):
    (tmp_path / "train.py").write_text(TRAIN.format(before=before, after=after, workers=workers))
    done = warm(tmp_path, python, "train.py", **options)
    assert done.returncode == 0, done.stderr
    return table(tmp_path, "steps")


@pytest.mark.parametrize("budget", ["none", "1%"])
@every_python
def test_counted_steps_say_what_their_thread_used(tmp_path, python, budget):
    steps = train(tmp_path, python, budget=budget)[2:]
    assert len(steps) >= 20
    known = [row for row in steps if row["cpu_ns"] is not None]
    assert len(known) >= 0.9 * len(steps)
    for row in known:
        assert 8e6 <= row["cpu_ns"] <= row["duration_ns"]
        assert row["cpu_ns"] + row["wait_for_processor_ns"] <= row["duration_ns"]
        assert row["process_cpu_ns"] >= 0.95 * row["cpu_ns"]
    assert all(row["waits"] is None for row in steps)


@every_python
def test_a_busy_machine_shows_as_waits_for_a_processor(tmp_path, python):
    steps = train(tmp_path, python, before=CROWD)[2:]
    known = [row for row in steps if row["wait_for_processor_ns"] is not None]
    assert len(known) >= 0.8 * len(steps)
    waited, took = (sum(row[name] for row in known) for name in ("wait_for_processor_ns", "duration_ns"))
    assert 0.2 < waited / took < 0.9, waited / took


@every_python
def test_the_cost_has_the_readings(tmp_path, python):
    train(tmp_path, python)
    facts = {row["key"]: row["value"] for row in table(tmp_path, "facts")}
    (cost,) = [row for row in table(tmp_path, "cost") if row["events"] > 100]
    more = cost["events_ns"] - cost["events"] * float(facts["cost.event_ns"])
    readings = more / float(facts["cost.use_ns"])
    assert 24 * 2 < readings < 24 * 20, readings
