# SPDX-License-Identifier: Apache-2.0
"""Common code of the programs with a fault: a clock of steps, a network, work. Each program: python NAME.py VARIANT."""
import json
import os
import sys
import time

import torch
from torch import nn

VARIANT = sys.argv[1] if len(sys.argv) > 1 else "fault"
RANK = int(os.environ.get("RANK", "0"))


class Clock:
    """Measures steps: tick() ends a step, finish() writes the result to $WHATIF_OUT or standard output.

    Each step has its wall time, the CPU time of this thread, and the time that the thread waited for a processor
    (schedstat). Quiet time is the wall time without that wait, so other programs on the machine do not count.
    """

    def __init__(self):
        self.rows = []
        self.file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self.last = self.now()

    def now(self):
        ran, waited, _ = os.pread(self.file, 100, 0).split()
        return time.perf_counter_ns(), int(ran), int(waited)

    def tick(self):
        now = self.now()
        self.rows.append([b - a for a, b in zip(self.last, now)])
        self.last = now

    def finish(self, skip=5):
        """Writes the means in ms, without the first `skip` steps."""
        rows = self.rows[skip:]
        wall, cpu, waited = (sum(row[i] for row in rows) / len(rows) / 1e6 for i in range(3))
        out = {"variant": VARIANT, "steps": len(rows), "mean_ms": wall, "quiet_ms": wall - waited, "thread_cpu_ms": cpu}
        if RANK == 0 and os.environ.get("WHATIF_OUT"):
            with open(os.environ["WHATIF_OUT"], "w", encoding="utf-8") as file:
                json.dump(out, file)
        elif RANK == 0:
            print(json.dumps(out))


def network(width=128, depth=3, out=10):
    torch.manual_seed(0)
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, out))


def batch(rows, width):
    return torch.randn(rows, width), torch.randint(0, 10, (rows,))


def update(model, optimizer, x, y):
    """Trains the model with one batch. Returns the loss."""
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def burn(ms):
    """Computes for this CPU time of the thread."""
    end = time.thread_time_ns() + ms * 1e6
    count = 0
    while time.thread_time_ns() < end:
        for _ in range(50):
            count += 1
    return count


def one_thread():
    torch.set_num_threads(1)
