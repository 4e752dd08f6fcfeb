# SPDX-License-Identifier: Apache-2.0
"""Programs that use torch.profiler themselves: `profiled_steps.py NAME [without_schedule]` prints, as one line of JSON, of each step that its step()
marks how long it was at least and at most, by the program's own stamps; what the weights are, and which steps its own events show. Used by
test_profiler_steps.py."""
import json
import sys
import threading
import time

import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

steps = []
shown = []
has_schedule = sys.argv[2:] != ["without_schedule"]
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(96, 16)), batch_size=8)


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


class Profiler:
    """torch.profiler's, with a stamp before and behind each start() and step()."""

    def __init__(self, **how):
        self.its = profile(activities=[ProfilerActivity.CPU],
                           schedule=schedule(**how or {"wait": 2, "warmup": 1, "active": 3}) if has_schedule else None)

    def __enter__(self):
        self.before = now()
        self.its.start()
        self.behind = now()
        return self

    def step(self, is_step=True):
        end = now()
        self.its.step()
        before, behind, self.before, self.behind = self.before, self.behind, end, now()
        if is_step:
            steps.append([end - behind, self.behind - before])

    def __exit__(self, *_):
        self.its.stop()
        if not has_schedule:
            shown.extend(event.name for event in self.its.events() if event.name.startswith("ProfilerStep"))


def train(batch, updates=True):
    model(batch).pow(2).mean().backward()
    if updates:
        optimizer.step()
        optimizer.zero_grad()


def evaluate():
    with torch.no_grad():
        model(torch.randn(8, 16)).sum()


def accumulated():
    with Profiler() as prof:
        for number, (batch,) in enumerate(batches):
            train(batch, number % 3 == 2)
            prof.step()


def two_updates():
    """Of each batch, in two epochs."""
    with Profiler() as prof:
        for _ in range(2):
            for (batch,) in batches:
                train(batch)
                train(batch)
                prof.step()


def part():
    """Three of nine; an evaluation is behind them, still in the profiler's block."""
    for number in range(9):
        if number == 3:
            prof = Profiler(wait=0, warmup=1, active=1).__enter__()
        train(torch.randn(8, 16))
        if 3 <= number < 6:
            prof.step()
        if number == 5:
            evaluate()
            prof.__exit__()


def called_first():
    with Profiler() as prof:
        for number, (batch,) in enumerate(batches):
            prof.step(number > 0)
            if number == 6:
                break
            train(batch)


def no_more():
    """step() is called three times, the training goes on."""
    with Profiler() as prof:
        for number, (batch,) in enumerate(batches):
            train(batch)
            if number < 3:
                prof.step()


def never():
    with Profiler():
        for (batch,) in batches:
            train(batch)


def two_profilers():
    for _ in range(2):
        with Profiler(wait=1, warmup=1, active=1, repeat=1) as prof:
            for _ in range(5):
                train(torch.randn(8, 16))
                prof.step()


def of_evaluations():
    for (batch,) in batches:
        train(batch)
    model.eval()
    with Profiler() as prof:
        for _ in range(4):
            evaluate()
            prof.step(False)
    model.train()
    train(batch)


def of_another_thread():
    """Which evaluates, while this one trains."""
    def check():
        with Profiler() as prof:
            for _ in range(4):
                evaluate()
                prof.step(False)
    thread = threading.Thread(target=check)
    thread.start()
    for (batch,) in batches:
        train(batch)
    thread.join()


def without_steps():
    with torch.autograd.profiler.profile(), record_function("ProfilerStep#foo"):
        for (batch,) in batches:
            with record_function("ProfilerStep#"):
                train(batch)


def nothing_trains():
    with Profiler() as prof:
        for _ in range(5):
            evaluate()
            prof.step()


def marked_otherwise():
    import stepscope
    with Profiler() as prof:
        for number, (batch,) in enumerate(batches):
            with stepscope.step(100 + number):
                train(batch)
            prof.step(False)


if __name__ == "__main__":
    torch.manual_seed(1)
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()
    print(json.dumps({"steps": steps, "weights": sum(p.double().sum() for p in model.parameters()).item().hex(), "shown": shown}))
